# exit: 2
# says: endless_recursion_at_the_top.py | RecursionError
import tilelang
import tilelang.language as T


def again(n):
    return again(n + 1)


k = again(0)
