# exit: 2
# says: missing_name_at_the_top.py:7 | BLOCK
import tilelang
import tilelang.language as T


k = BLOCK + 1
