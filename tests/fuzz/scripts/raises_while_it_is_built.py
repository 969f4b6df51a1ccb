# exit: 1
# says: ZeroDivisionError | raises_while_it_is_built.py:8
import tilelang
import tilelang.language as T


def k():
    size = 1 // 0
    return size
