import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import autotune


@autotune(configs=[{"block": 64}, {"block": 128}], warmup=1, rep=1)
@tilelang.jit(out_idx=[-1])
def double(n, block=None):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2

    return kernel


kernel = double(512)
x = torch.randn(512, device="cuda")
torch.testing.assert_close(kernel(x), x * 2)
assert kernel.config in ({"block": 64}, {"block": 128}), kernel.config
assert kernel.latency > 0
print("autotune ok", kernel.get_tuner_result()["latency"])
