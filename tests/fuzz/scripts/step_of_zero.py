# exit: 1
# says: step_of_zero.py:10
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.serial(0, 64, 0):
            O[i] = 1.0
