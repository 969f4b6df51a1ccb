import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


kernel = matmul(256, 192, 128, 64, 64, 32)
a = torch.randn(256, 128, device="cuda").half()
b = torch.randn(128, 192, device="cuda").half()
c = kernel(a, b)
torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-2)
source = kernel.get_kernel_source()
assert "__global__" in source, source[:200]
profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
profiler.assert_allclose(lambda x, y: x @ y, rtol=1e-2, atol=5e-2)
latency = profiler.do_bench()
assert latency > 0
print(f"gemm ok, latency {latency}, {latency:.3f} ms")
