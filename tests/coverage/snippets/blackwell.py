"""Block-scaled products, their scale factors and their tensor memory; tfloat32; unpacked float4; draws in parallel loops."""

import ml_dtypes
import numpy as np
import tilelang.language as T
from snippet import add, snippet

from tilelab.sim.random import rng_init

rng = np.random.default_rng(7)
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def fp4(*shape):
    return FP4[rng.integers(0, len(FP4), shape)].astype(ml_dtypes.float4_e2m1fn)


def packed(codes):
    four = codes.astype(np.uint32).reshape(codes.shape[0], -1, 4)
    return (four << (8 * np.arange(4, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)


def in_chunks(words):
    rows, per_row = words.shape
    out = np.zeros(words.size, np.uint32)
    for k in range(per_row):
        for r in range(rows):
            out[k * rows + r % 32 * (rows // 32) + r // 32] = words[r, k]
    return out.reshape(rows, per_row)


def sm120(m, n, k, layout, general):
    def build():
        @T.prim_func
        def kernel(
            A: T.Tensor((m, k), T.float4_e2m1fn), B: T.Tensor((n, k), T.float4_e2m1fn), SFA: T.Tensor((m, k // 64), "uint32"),
            SFB: T.Tensor((n, k // 64), "uint32"), C: T.Tensor((m, n), "float32"),
        ):  # fmt: skip
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((m, k), T.float4_e2m1fn)
                b = T.alloc_shared((n, k), T.float4_e2m1fn)
                sa = T.alloc_shared((m, k // 64), "uint32")
                sb = T.alloc_shared((n, k // 64), "uint32")
                c = T.alloc_fragment((m, n), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.copy(SFA, sa)
                T.copy(SFB, sb)
                T.clear(c)
                if general:
                    T.gemm_blockscaled(
                        a, b, c, sa, sb, transpose_B=True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=16, sf_layout=layout
                    )
                else:
                    T.mma_gemm_blockscaled(
                        a, b, c, sa, sb, transpose_B=True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=16, sf_layout=layout
                    )
                T.copy(c, C)

        return kernel

    return build


for layout, general in ((None, True), ("rowmajor", False), ("blockscaled_chunk_kmajor", False)):
    m, n, k = 64, 96, 128
    a, b = fp4(m, k), fp4(n, k)
    sa, sb = (rng.uniform(0.5, 4, (r, k // 16)).astype(ml_dtypes.float8_e4m3fn) for r in (m, n))
    x, y = (v.astype(np.float32) * np.repeat(s.astype(np.float32), 16, axis=1) for v, s in ((a, sa), (b, sb)))
    wa, wb = packed(sa.view(np.uint8)), packed(sb.view(np.uint8))
    if layout == "blockscaled_chunk_kmajor":
        wa, wb = in_chunks(wa), in_chunks(wb)
    add(f"scaled_{layout}", sm120(m, n, k, layout, general), {"A": a, "B": b, "SFA": wa, "SFB": wb}, {"C": x @ y.T},
        ["gemm_blockscaled" if general else "mma_gemm_blockscaled"], rtol=1e-5, atol=1e-3)  # fmt: skip


def sm100(m, n, k, step, per, alias):
    group = per * 4

    def build():
        @T.prim_func
        def kernel(
            A: T.Tensor((m, k), T.float8_e4m3fn), B: T.Tensor((n, k), T.float8_e4m3fn), SFA: T.Tensor((k // group * m,), "uint32"),
            SFB: T.Tensor((k // group * n,), "uint32"), C: T.Tensor((m, n), "float32"),
        ):  # fmt: skip
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((m, step), T.float8_e4m3fn)
                b = T.alloc_shared((n, step), T.float8_e4m3fn)
                sa = T.alloc_shared((m,), "uint32")
                sb = T.alloc_shared((n,), "uint32")
                c = T.alloc_tmem((m, n), "float32")
                ta = T.alloc_tmem((m, m // 128 * 4), "uint32")
                tb = T.alloc_tmem((m, n // 128 * 4), "uint32")
                done = T.alloc_barrier(1)
                out = T.alloc_fragment((m, n), "float32")
                if alias:
                    T.annotate_layout({c: T.make_blockscaled_gemm_layout(c, a)})
                t = T.get_thread_binding()
                for i in T.serial(k // step):
                    T.copy(A[0, i * step], a)
                    T.copy(B[0, i * step], b)
                    if i * step % group == 0:
                        T.copy(SFA[i * step // group * m], sa)
                        T.copy(SFB[i * step // group * n], sb)
                        T.sync_threads()
                        if t < 32:
                            T.tcgen05_sf_warp_transpose(sa)
                            T.tcgen05_sf_warp_transpose(sb)
                            T.fence_proxy_async()
                            T.tcgen05_cp_warpx4(sa, ta)
                            T.tcgen05_cp_warpx4(sb, tb)
                    T.sync_threads()
                    if t < 32:
                        if alias:
                            T.tcgen05_mma_blockscaled(
                                a, b, c, ta, tb, transpose_B=True, mbar=done, clear_accum=i == 0, k_start=i * step,
                                sf_a_granularity_k=per, sf_b_granularity_k=per,
                            )  # fmt: skip
                        else:
                            T.tcgen05_gemm_blockscaled(
                                a, b, c, ta, tb, transpose_B=True, mbar=done, clear_accum=i == 0, k_start=i * step,
                                sf_a_granularity_k=per, sf_b_granularity_k=per,
                            )  # fmt: skip
                    T.mbarrier_wait_parity(done, i % 2)
                T.copy(c, out)
                T.copy(out, C)

        return kernel

    return build


for name, (m, n, k, step, per), alias in (("wide", (128, 256, 1024, 256, 128), False), ("fine", (128, 128, 128, 64, 32), True)):
    a, b = (rng.standard_normal((r, k)).astype(ml_dtypes.float8_e4m3fn) for r in (m, n))
    ea, eb = (rng.integers(122, 132, (r, k // per)).astype(np.uint8) for r in (m, n))
    x, y = (v.astype(np.float32) * np.repeat(2.0 ** (e.astype(np.float32) - 127), per, axis=1) for v, e in ((a, ea), (b, eb)))
    add(f"tensor_memory_{name}", sm100(m, n, k, step, per, alias),
        {"A": a, "B": b, "SFA": packed(ea).T.reshape(-1), "SFB": packed(eb).T.reshape(-1)}, {"C": x @ y.T},
        ["tcgen05_mma_blockscaled" if alias else "tcgen05_gemm_blockscaled", "tcgen05_sf_warp_transpose", "tcgen05_cp_warpx4"], rtol=1e-4, atol=0.05)  # fmt: skip


def cut(x):
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


ta, tb = (rng.standard_normal((64, 64)).astype(np.float32) for _ in "ab")


@snippet(cut(ta) @ cut(tb) + cut(ta), covers=["tfloat32"], rtol=1e-5, atol=1e-4, A=ta, B=tb)
def tensor_floats():
    @T.prim_func
    def k(A: T.Tensor((64, 64), T.tfloat32), B: T.Tensor((64, 64), T.tfloat32), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), T.tfloat32)
            b = T.alloc_shared((64, 64), T.tfloat32)
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            for i, j in T.Parallel(64, 64):
                c[i, j] += T.cast(a[i, j], "float32")
            T.copy(c, O)

    return k


nibbles = fp4(64, 64)


@snippet(nibbles.astype(np.float32), covers=["float4_e2m1_unpacked"], A=nibbles)
def unpacked_float4():
    @T.prim_func
    def k(A: T.Tensor((64, 64), T.float4_e2m1fn), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((64, 64), T.float4_e2m1_unpacked)
            loaded = T.alloc_barrier(32)
            T.tma_copy(A, s, barrier=loaded)
            T.barrier_arrive(loaded)
            T.barrier_wait(loaded, 0)
            T.copy(s, O)

    return k


def drawn(n0, n1, threads, bits):
    """Each thread's own sequence: runs of neighbours as long as one vector access, dealt to the threads in turn."""
    total, width = n0 * n1, 128 // bits
    while width > 1 and (n1 % width or total % (width * threads)):
        width //= 2
    words, floats = np.zeros(total, np.uint32), np.zeros(total, np.float64)
    for t in range(threads):
        state = rng_init("curandStatePhilox4_32_10_t", 42, 0, t * 16)
        for turn in range(-(-total // (width * threads))):
            mine = [i for i in range((turn * threads + t) * width, (turn * threads + t + 1) * width) if i < total]
            for i in mine:
                words[i] = state.rand().item()
            for i in mine:
                floats[i] = state.rand_float(bits, vector=width > 1).item()
    return {"A": words.reshape(n0, n1), "B": floats.reshape(n0, n1).astype(f"float{bits}")}


def parallel_draws(n0, n1, threads, bits):
    def build():
        @T.prim_func
        def k(A: T.Tensor((n0, n1), "uint32"), B: T.Tensor((n0, n1), f"float{bits}")):
            with T.Kernel(1, threads=threads):
                t = T.get_thread_binding()
                T.rng_init(42, 0, t * 16)
                for i, j in T.Parallel(n0, n1):
                    A[i, j] = T.rng_rand()
                    B[i, j] = T.rng_rand_float(bit=bits)

        return k

    return build


for n0, n1, threads, bits in ((4, 100, 64, 32), (8, 64, 32, 32), (1, 128, 1, 32), (3, 5, 32, 32), (4, 32, 32, 64)):
    add(f"draws_{n0}_{n1}_{threads}_{bits}", parallel_draws(n0, n1, threads, bits), {}, drawn(n0, n1, threads, bits),
        ["rng_init", "rng_rand", "rng_rand_float"])  # fmt: skip
