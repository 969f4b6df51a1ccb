# exit: 2
# says: unclosed_bracket.py | Python cannot parse
import tilelang
import tilelang.language as T


k = T.prim_func(
