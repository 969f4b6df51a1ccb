# exit: 2
# says: bad_indentation.py | Python cannot parse
import tilelang
import tilelang.language as T


def k():
x = 1
