import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def total(n):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                O[0] = A[i]

    return kernel


total(64)(torch.randn(64, device="cuda"))
print("ran")
