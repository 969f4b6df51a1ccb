# exit: 1
# says: copy_of_a_number.py:10
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        T.copy(3, O)
