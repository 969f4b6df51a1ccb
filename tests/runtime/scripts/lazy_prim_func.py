import tilelang
import tilelang.language as T
import torch

N = 1000


def add(n, block):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return kernel


program = add(N, 256)
returns = tilelang.compile(program, out_idx=-1, target="cuda")
in_place = tilelang.compile(program)
a = torch.randn(N, device="cuda")
b = torch.randn(N, device="cuda")
c = torch.full((N,), float("nan"), device="cuda")
in_place(a, b, c)
torch.testing.assert_close(c, a + b)
torch.testing.assert_close(returns(a, b), a + b)
assert returns(a, b).is_cuda
assert "cuda" in str(returns.target)
print("lazy ok")
