# exit: 1
# says: no_annotations.py
import tilelang
import tilelang.language as T


@T.prim_func
def k(A, O):
    with T.Kernel(1, threads=64):
        T.copy(A, O)
