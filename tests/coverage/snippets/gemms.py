"""Matrix products and what feeds them."""

import ml_dtypes
import numpy as np
import tilelang
import tilelang.language as T
from snippet import add, integers, normal, snippet

f64 = np.float64


def product(policy="Square", transpose_a=False, transpose_b=False, dtype="float16", accum="float32", source="shared"):
    sa = (64, 32) if not transpose_a else (32, 64)
    sb = (32, 64) if not transpose_b else (64, 32)

    def build():
        @T.prim_func
        def k(A: T.Tensor(sa, dtype), B: T.Tensor(sb, dtype), O: T.Tensor((64, 64), accum)):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared(sa, dtype) if source == "shared" else T.alloc_fragment(sa, dtype)
                b = T.alloc_shared(sb, dtype)
                c = T.alloc_fragment((64, 64), accum)
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, policy=getattr(T.GemmWarpPolicy, policy))
                T.copy(c, O)

        return k

    return build


def values(kind, *shape):
    return integers(-8, 8, *shape).astype(kind) if np.issubdtype(kind, np.integer) else normal(*shape).astype(kind)


def exact(a, b, ta, tb, out):
    x, y = a.astype(f64), b.astype(f64)
    return ((x.T if ta else x) @ (y.T if tb else y)).astype(out)


KINDS = {
    "float16": (np.float16, "float32", np.float32, 1e-3), "bfloat16": (ml_dtypes.bfloat16, "float32", np.float32, 1e-3),
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, "float32", np.float32, 1e-3), "float8_e5m2": (ml_dtypes.float8_e5m2, "float32", np.float32, 1e-3),
    "float32": (np.float32, "float32", np.float32, 5e-2), "int8": (np.int8, "int32", np.int32, 0), "uint8": (np.uint8, "int32", np.int32, 0),
    "float64": (np.float64, "float64", np.float64, 1e-12),
}  # fmt: skip
for dtype, (kind, accum, out, tolerance) in KINDS.items():
    a, b = values(kind, 64, 32), values(kind, 32, 64)
    if dtype == "uint8":
        a, b = np.abs(values(np.int8, 64, 32)).astype(kind), np.abs(values(np.int8, 32, 64)).astype(kind)
    add(dtype, product(dtype=dtype, accum=accum), {"A": a, "B": b}, {"O": exact(a, b, False, False, out)}, ["gemm", "GemmWarpPolicy"],
        rtol=tolerance, atol=tolerance)  # fmt: skip
for ta in (False, True):
    for tb in (False, True):
        a, b = values(np.float16, *((32, 64) if ta else (64, 32))), values(np.float16, *((64, 32) if tb else (32, 64)))
        add(f"transposed_{int(ta)}{int(tb)}", product(transpose_a=ta, transpose_b=tb), {"A": a, "B": b}, {"O": exact(a, b, ta, tb, np.float32)},
            ["gemm"], rtol=1e-3, atol=1e-3)  # fmt: skip
a, b = values(np.float16, 64, 32), values(np.float16, 32, 64)
for policy in ("FullRow", "FullCol"):
    add(
        policy.lower(),
        product(policy),
        {"A": a, "B": b},
        {"O": exact(a, b, False, False, np.float32)},
        ["GemmWarpPolicy"],
        rtol=1e-3,
        atol=1e-3,
    )
add(
    "from_a_fragment",
    product(source="fragment"),
    {"A": a, "B": b},
    {"O": exact(a, b, False, False, np.float32)},
    ["gemm"],
    rtol=1e-3,
    atol=1e-3,
)


def hopper(name):
    def build():
        gemm = getattr(T, name)

        @T.prim_func
        def k(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), O: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 32), "float16")
                b = T.alloc_shared((32, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.copy(A, a)
                T.copy(B, b)
                gemm(a, b, c, clear_accum=True)
                T.warpgroup_wait(0)
                T.wait_wgmma(0)
                T.copy(c, O)

        return k

    return build


for name in ("wgmma_gemm", "wgmma_mma"):
    add(name, hopper(name), {"A": a, "B": b}, {"O": exact(a, b, False, False, np.float32)}, [name, "warpgroup_wait", "wait_wgmma"],
        rtol=1e-3, atol=1e-3)  # fmt: skip


def blackwell(name):
    def build():
        gemm = getattr(T, name)

        @T.prim_func
        def k(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16"), O: T.Tensor((128, 128), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((128, 64), "bfloat16")
                b = T.alloc_shared((128, 64), "bfloat16")
                c = T.alloc_tmem((128, 128), "float32")
                done = T.alloc_barrier(1)
                f = T.alloc_fragment((128, 128), "float32")
                T.copy(A, a)
                T.copy(B, b)
                gemm(a, b, c, transpose_B=True, mbar=done, clear_accum=True)
                T.mbarrier_wait_parity(done, 0)
                T.copy(c, f)
                T.copy(f, O)

        return k

    return build


a, b = values(ml_dtypes.bfloat16, 128, 64), values(ml_dtypes.bfloat16, 128, 64)[::-1].copy()
for name in ("gemm", "tcgen05_gemm", "tcgen05_mma"):
    add(f"into_tensor_memory_by_{name}", blackwell(name), {"A": a, "B": b}, {"O": exact(a, b, False, True, np.float32)}, [name, "alloc_tmem"],
        rtol=1e-3, atol=1e-3)  # fmt: skip


def sparse_operand():
    """Two of each four of a row are kept; the metadata says which, four bits a group."""
    m, k = 64, 64
    generator = np.random.default_rng(0)
    full, kept, meta = np.zeros((m, k), np.float16), np.zeros((m, k // 2), np.float16), np.zeros((m, k // 16), np.uint16)
    for i in range(m):
        for g in range(k // 4):
            first, second = sorted(generator.choice(4, 2, replace=False))
            v = generator.standard_normal(2).astype(np.float16)
            full[i, g * 4 + first], full[i, g * 4 + second] = v
            kept[i, g * 2 : g * 2 + 2] = v
            meta[i, g // 4] |= (first | second << 2) << (4 * (g % 4))
    return full, kept, meta.view(np.int16)


FULL, KEPT, META = sparse_operand()
DENSE = values(np.float16, 64, 32)


def sparse(name):
    def build():
        gemm = getattr(T, name)

        @T.prim_func
        def k(
            A: T.Tensor((64, 32), "float16"),
            E: T.Tensor((64, 4), "int16"),
            B: T.Tensor((64, 32), "float16"),
            O: T.Tensor((64, 32), "float32"),
        ):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 32), "float16")
                e = T.alloc_shared((64, 4), "int16")
                b = T.alloc_shared((64, 32), "float16")
                c = T.alloc_fragment((64, 32), "float32")
                T.copy(A, a)
                T.copy(E, e)
                T.copy(B, b)
                T.clear(c)
                gemm(a, e, b, c)
                T.copy(c, O)

        return k

    return build


for name in ("gemm_sp", "wgmma_gemm_sp"):
    add(
        name,
        sparse(name),
        {"A": KEPT, "E": META, "B": DENSE},
        {"O": exact(FULL, DENSE, False, False, np.float32)},
        [name],
        rtol=1e-3,
        atol=1e-3,
    )


def unfold(x, k, pad):
    _n, h, w, c = x.shape
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    return np.concatenate([padded[:, i : i + h, j : j + w].reshape(-1, c) for i in range(k) for j in range(k)], 1)


def image(name):
    def build():
        columns = getattr(T, name)

        @T.prim_func
        def k(X: T.Tensor((1, 8, 8, 16), "float16"), O: T.Tensor((64, 144), "float16")):
            with T.Kernel(2, threads=64) as b:
                s = T.alloc_shared((32, 16), "float16")
                for i in T.serial(9):
                    columns(X, s, b, i, 3, 1, 1, 1)
                    T.copy(s, O[b * 32, i * 16])

        return k

    return build


PICTURE = values(np.float16, 1, 8, 8, 16)
for name in ("im2col", "c2d_im2col"):
    add(name, image(name), {"X": PICTURE}, {"O": unfold(PICTURE, 3, 1)}, [name])


@snippet(
    lambda A, B: {"O": exact(A, B, False, False, np.float32)},
    A=values(np.float16, 64, 32),
    B=values(np.float16, 32, 64),
    rtol=1e-3,
    atol=1e-3,
)
def with_layouts():
    @T.prim_func
    def k(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({a: tilelang.layout.make_swizzled_layout(a), b: T.make_mma_swizzle_layout(b)})
            T.use_swizzle(panel_size=4)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, O)

    return k


@snippet(lambda A, B: {"O": exact(A, B, False, True, np.float32)}, A=values(ml_dtypes.bfloat16, 128, 64), B=values(ml_dtypes.bfloat16, 128, 64),
         rtol=1e-3, atol=1e-3)  # fmt: skip
def the_end_of_a_product_is_told_apart():
    """Without a barrier of its own the product is announced later; tensor memory is given back."""

    @T.prim_func
    def k(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16"), O: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "bfloat16")
            b = T.alloc_shared((128, 64), "bfloat16")
            c = T.alloc_tmem((128, 128), "float32")
            done = T.alloc_barrier(1)
            f = T.alloc_fragment((128, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.tcgen05_gemm(a, b, c, transpose_B=True, clear_accum=True, mbar=None)
            T.tcgen05_mma_arrive(done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(c, f)
            T.copy(f, O)
            T.deallocate_tmem(c)

    return k


def sparse_blackwell():
    @T.prim_func
    def k(
        A: T.Tensor((128, 32), "float16"),
        E: T.Tensor((128, 4), "int16"),
        B: T.Tensor((64, 64), "float16"),
        O: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 32), "float16")
            e = T.alloc_shared((128, 4), "int16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_tmem((128, 64), "float32")
            f = T.alloc_fragment((128, 64), "float32")
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.tcgen05_gemm_sp(a, e, b, c, clear_accum=True)
            T.copy(c, f)
            T.copy(f, O)

    return k


WIDE = values(np.float16, 64, 64)
add("sparse_into_tensor_memory", sparse_blackwell, {"A": np.tile(KEPT, (2, 1)), "E": np.tile(META, (2, 1)), "B": WIDE},
    {"O": exact(np.tile(FULL, (2, 1)), WIDE, False, False, np.float32)}, [], rtol=1e-3, atol=1e-3)  # fmt: skip
