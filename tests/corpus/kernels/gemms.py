"""Matrix products: tails, transposes, dtypes, schedules, layouts."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(A, B, block_M: int = 64, block_N: int = 64, block_K: int = 32, num_stages: int = 2, threads: int = 128):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        a = T.alloc_shared((block_M, block_K), T.float16)
        b = T.alloc_shared((block_K, block_N), T.float16)
        c = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], a)
            T.copy(B[k * block_K, bx * block_N], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * block_M, bx * block_N])
    return C


def gemm_oracle(A, B):
    return {"out0": (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float16)}


@tilelang.jit(out_idx=[-1])
def gemm_transposed(M, N, K, ta=False, tb=True, in_dtype="bfloat16"):
    a_shape, b_shape = ((K, M) if ta else (M, K)), ((N, K) if tb else (K, N))
    a_tile, b_tile = ((32, 64) if ta else (64, 32)), ((64, 32) if tb else (32, 64))

    @T.prim_func
    def main(A: T.Tensor(a_shape, in_dtype), B: T.Tensor(b_shape, in_dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared(a_tile, in_dtype)
            b = T.alloc_shared(b_tile, in_dtype)
            c = T.alloc_fragment((64, 64), "float32")
            for k in T.Pipelined(K // 32, num_stages=0):
                if ta:
                    T.copy(A[k * 32, by * 64], a)
                else:
                    T.copy(A[by * 64, k * 32], a)
                if tb:
                    T.copy(B[bx * 64, k * 32], b)
                else:
                    T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb, clear_accum=(k == 0), policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C[by * 64, bx * 64])

    return main


def gemm_tn_oracle(A, B):
    return {"out0": A.astype(np.float64).T @ B.astype(np.float64).T}


def gemm_nt_oracle(A, B):
    return {"out0": A.astype(np.float64) @ B.astype(np.float64).T}


@tilelang.jit
def gemm_int8(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.int8]
    B: T.Tensor[[N, K], T.int8]
    C = T.empty((M, N), T.int32)
    with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 64), T.int8)
        b = T.alloc_shared((64, 64), T.int8)
        c = T.alloc_fragment((64, 64), T.int32)
        T.clear(c)
        for k in T.serial(K // 64):
            T.copy(A[by * 64, k * 64], a)
            T.copy(B[bx * 64, k * 64], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 64, bx * 64])
    return C


def gemm_int8_oracle(A, B):
    return {"out0": A.astype(np.int32) @ B.astype(np.int32).T}


@tilelang.jit
def gemm_layout(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 128, M // 128, threads=128) as (bx, by):
        a = T.alloc_shared((128, 32), T.float16)
        b = T.alloc_shared((32, 128), T.float16)
        c = T.alloc_fragment((128, 128), T.float32)
        T.annotate_layout({a: tilelang.layout.make_swizzled_layout(a), b: tilelang.layout.make_swizzled_layout(b)})
        T.use_swizzle(panel_size=4)
        T.clear(c)
        for k in T.Pipelined(K // 32, num_stages=3):
            T.copy(A[by * 128, k * 32], a)
            T.copy(B[k * 32, bx * 128], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 128, bx * 128])
    return C


def gemm_f32_oracle(A, B):
    return {"out0": A.astype(np.float64) @ B.astype(np.float64)}


@tilelang.jit
def gemm_bias_relu(A, B, bias):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    bias: T.Tensor[[N], T.float32]
    C = T.empty((M, N), T.float16)
    with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((32, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        out = T.alloc_shared((64, 64), T.float16)
        T.clear(c)
        for k in T.Pipelined(K // 32, num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.max(c[i, j] + bias[bx * 64 + j], 0.0)
        T.copy(c, out)
        T.copy(out, C[by * 64, bx * 64])
    return C


def gemm_bias_relu_oracle(A, B, bias):
    return {"out0": np.maximum(A.astype(np.float64) @ B.astype(np.float64) + bias, 0).astype(np.float16)}


@tilelang.jit
def gemm_split_k(A, B, C, splits: int = 4):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C: T.Tensor[[M, N], T.float32]
    with T.Kernel(N // 64, M // 64, splits, threads=128) as (bx, by, bz):
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((32, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        T.clear(c)
        for k in T.Pipelined(K // splits // 32, num_stages=2):
            T.copy(A[by * 64, bz * (K // splits) + k * 32], a)
            T.copy(B[bz * (K // splits) + k * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.atomic_add(C[by * 64, bx * 64], c)


def gemm_split_k_inputs(rng):
    a, b = rng.standard_normal((64, 256), dtype=np.float32), rng.standard_normal((256, 128), dtype=np.float32)
    return {"A": a.astype(np.float16), "B": b.astype(np.float16), "C": np.zeros((64, 128), np.float32)}


def gemm_split_k_oracle(A, B, C):
    return {"C": C + A.astype(np.float64) @ B.astype(np.float64)}


@tilelang.jit
def gemm_persistent(A, B, workers: int = 6):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((32, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        for by, bx in T.Persistent([M // 64, N // 64], workers, w):
            T.clear(c)
            for k in T.serial(K // 32):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])
    return C


@tilelang.jit
def gemm_hand_schedule(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((32, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        T.clear(c)
        for k in T.Pipelined(K // 32, order=[0, 1, 2], stage=[0, 0, 1]):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])
    return C


@tilelang.jit
def gemm_float8(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float8_e4m3fn]
    B: T.Tensor[[N, K], T.float8_e4m3fn]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 64), T.float8_e4m3fn)
        b = T.alloc_shared((64, 64), T.float8_e4m3fn)
        c = T.alloc_fragment((64, 64), T.float32)
        T.clear(c)
        for k in T.Pipelined(K // 64, num_stages=2):
            T.copy(A[by * 64, k * 64], a)
            T.copy(B[bx * 64, k * 64], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 64, bx * 64])
    return C


@tilelang.jit
def gemv(A, x):
    M, K = T.const("M, K")
    A: T.Tensor[[M, K], T.float16]
    x: T.Tensor[[K], T.float16]
    y = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as b:
        a = T.alloc_fragment((8, 64), T.float32)
        v = T.alloc_shared((64,), T.float16)
        s = T.alloc_fragment((8,), T.float32)
        T.clear(s)
        for k in T.serial(T.ceildiv(K, 64)):
            T.copy(A[b * 8, k * 64], a)
            T.copy(x[k * 64], v)
            for i, j in T.Parallel(8, 64):
                a[i, j] *= v[j]
            T.reduce_sum(a, s, dim=1, clear=False)
        T.copy(s, y[b * 8])
    return y


def gemv_oracle(A, x):
    return {"out0": A.astype(np.float64) @ x.astype(np.float64)}


@tilelang.jit
def dequantised_w4(A, W, S):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    W: T.Tensor[[N, K // 2], T.uint8]
    S: T.Tensor[[N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 64), T.float16)
        w = T.alloc_shared((64, 32), T.uint8)
        b = T.alloc_shared((64, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        T.clear(c)
        for k in T.serial(K // 64):
            T.copy(A[by * 64, k * 64], a)
            T.copy(W[bx * 64, k * 32], w)
            for i, j in T.Parallel(64, 64):
                nibble = (w[i, j // 2] >> T.cast((j % 2) * 4, "uint8")) & T.uint8(15)
                b[i, j] = (T.cast(nibble, "float16") - T.float16(8)) * S[bx * 64 + i]
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 64, bx * 64])
    return C


def dequantised_w4_inputs(rng):
    return {
        "A": rng.standard_normal((64, 128), dtype=np.float32).astype(np.float16),
        "W": rng.integers(0, 256, (64, 64), dtype=np.uint8),
        "S": (rng.random(64, dtype=np.float32) + 0.5).astype(np.float16),
    }


def dequantised_w4_oracle(A, W, S):
    w = np.stack([W & 15, W >> 4], -1).reshape(len(W), -1).astype(np.float16) - np.float16(8)
    return {"out0": A.astype(np.float64) @ (w * S[:, None]).astype(np.float64).T}
