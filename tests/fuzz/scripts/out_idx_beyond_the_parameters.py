# exit: 2
# says: out_idx 7 names no parameter
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[7])
def k():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i]

    return kernel
