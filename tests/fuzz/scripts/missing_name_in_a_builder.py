# exit: 2
# says: tilelab: missing_name_in_a_builder.py | BLOCK
import tilelang
import tilelang.language as T


def k():
    @T.prim_func
    def kernel(O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(BLOCK):
                O[i] = 1.0

    return kernel
