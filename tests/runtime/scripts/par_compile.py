import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def shift(n, by):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                B[i] = A[i] + by

    return kernel


kernels = shift.par_compile([{"n": 64, "by": 1}, {"n": 64, "by": 5}])
x = torch.arange(64, dtype=torch.int32, device="cuda")
assert [int((k(x) - x)[0]) for k in kernels] == [1, 5]
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
kernels[0](x)
end.record()
torch.cuda.synchronize()
print("par_compile ok", start.elapsed_time(end))
