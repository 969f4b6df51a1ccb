# exit: 2
# says: missing_name_in_the_kernel.py:10 | BLOCK
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(BLOCK):
            O[i] = 1.0
