"""GEMM: ``C = activation(op(A) @ op(B) + bias) + residual`` for bfloat16 and float16, accumulated in float32.

Layouts (row-major tensors): ``NT`` A [M, K], B [N, K] (a linear layer's weight) · ``NN`` A [M, K], B [K, N] · ``TN`` A [K, M], B [K, N].
bias [N], residual [M, N], C [M, N], all of A's dtype. Any M, N, K.

Two builders with one meaning:

- ``hopper``: persistent and warp-specialised, for sm_90a. One producer warp fills a ring of shared tiles with TMA; each consumer
warpgroup owns
  ``bm / consumers`` rows of the tile, keeps one wgmma in flight while it frees the stage before, and stores its rows through its own
  staging tile,
  so that one warpgroup's epilogue overlaps the other's last products. Two blocks of a cluster share a B tile by multicast, and tiles are
  visited
  in panels of ``group`` cluster rows, so that the blocks that run together touch few distinct rows and columns of the L2. The structure
  is that
  of CUTLASS's persistent cooperative kernel (https://github.com/NVIDIA/cutlass, sm90 warp-specialised), written anew in TileLang.
- ``portable``: ``T.Pipelined`` over K, for every target that has tensor cores (sm_80 and up, gfx942), and for shapes that TMA cannot
describe.

``split_k`` writes float32 partial sums of K slices that ``combine`` adds, with the epilogue.
"""


import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks

if TYPE_CHECKING:
    import torch

# Annotations of T.prim_func are evaluated where they stand, so this module must not postpone them.

DTYPES = ("bfloat16", "float16")
LAYOUTS = ("NT", "NN", "TN")
ACTIVATIONS = (None, "relu", "gelu")
SQRT_HALF = 0.7071067811865476


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Tile sizes of the Hopper builder. ``pdl`` lets its blocks start while the kernel before them in the stream still ends."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 4
    cluster: int = 2
    group: int = 8
    consumers: int = 2
    cn: int = 64
    split_k: int = 1
    pdl: bool = False


@lru_cache(maxsize=1)
def tuned() -> dict[Any, Config]:
    """The best configurations found on an H200 by ``tilelab.bench.gpu_tune``: of a shape (M, N, K), and of a class of shapes by name."""
    record = json.loads((Path(__file__).parent / "tuned.json").read_text())
    found: dict[Any, Config] = {tuple(int(size) for size in shape.split("x")): Config(**kw) for shape, kw in record["gemm"].items()}
    return found | {name: Config(**kw) for name, kw in record["gemm classes"].items()}


def shape_class(M: int, N: int, K: int) -> str:
    """What kind of problem it is: ``few rows`` (weights are read once), ``small`` (fewer tiles than multiprocessors), ``large``."""
    return "few rows" if M <= 64 else "small" if M * N <= 1536 * 1536 else "large"


def activate(value: Any, name: str | None) -> Any:
    """The activation ``name`` as an expression over ``value``."""
    if name == "relu":
        return T.max(value, 0.0)
    if name == "gelu":
        return 0.5 * value * (1.0 + T.erf(value * SQRT_HALF))
    return value


@tilelang.jit
def hopper(
    M: int, N: int, K: int, layout: str = "NT", dtype: str = "bfloat16", bias: bool = False, activation: str | None = None,
        residual: bool = False,
    sms: int = 132, bm: int = 128, bn: int = 256, bk: int = 64, stages: int = 4, cluster: int = 2, group: int = 8, consumers: int = 2,
        cn: int = 64,
    split_k: int = 1, pdl: bool = False,
) -> Any:  # fmt: skip
    """The persistent warp-specialised kernel for sm_90a: ``(A, B, bias, residual, C)``, of which unused ones have shape 1."""
    rows = bm // consumers
    threads = (consumers + 1) * 128
    row_clusters = T.ceildiv(T.ceildiv(M, bm), cluster)
    columns = T.ceildiv(N, bn)
    steps = T.ceildiv(T.ceildiv(K, bk), split_k)
    tiles = row_clusters * columns * split_k
    workers = sms // cluster
    out_dtype = dtype if split_k == 1 else "float32"
    a_shape, a_tile = ((K, M), (bk, bm)) if layout == "TN" else ((M, K), (bm, bk))
    b_shape, b_tile = ((N, K), (bn, bk)) if layout == "NT" else ((K, N), (bk, bn))
    multicast = (1 << cluster) - 1

    def place(t: Any, rank: Any) -> tuple[Any, Any, Any]:
        """Tile number → (tile row, tile column, K slice): slices first, then columns within a panel of ``group`` cluster rows."""
        part = t % split_k
        u = t // split_k
        panel = u // (group * columns)
        height = T.min(group, row_clusters - panel * group)
        v = u - panel * (group * columns)
        return (panel * group + v % height) * cluster + rank, v // height, part

    def finish(value: Any, bias_v: Any, res: Any, row: Any, col: Any) -> Any:
        """The epilogue of one element."""
        if bias:
            value = value + T.cast(bias_v[col], "float32")
        value = activate(value, activation)
        return value + T.cast(res[row, col], "float32") if residual else value

    @T.macro
    def release(free, s):
        lane = T.get_thread_binding() % 32
        if lane < cluster:
            T.mbarrier_arrive(free[s], lane)

    @T.macro
    def product(wg, a, b, full, free, acc, first):
        """The K loop of one tile; ``first`` counts the ring's steps so far."""
        for k in T.serial(steps):
            s = (first + k) % stages
            T.mbarrier_wait_parity(full[s], ((first + k) // stages) & 1)
            if layout == "TN":
                T.wgmma_gemm(a[s, :, wg * rows : wg * rows + rows], b[s, :, :], acc, transpose_A=True, clear_accum=(k == 0))
            else:
                T.wgmma_gemm(a[s, wg * rows : wg * rows + rows, :], b[s, :, :], acc, transpose_B=layout == "NT", clear_accum=(k == 0))
            T.wait_wgmma(1)
            if k > 0:
                release(free, (first + k - 1) % stages)
        T.wait_wgmma(0)
        release(free, (first + steps - 1) % stages)

    @T.macro
    def store(wg, j, acc, stage, bias_v, res, C, by, bx, part):
        row = by * bm + wg * rows
        col = bx * bn + j * cn
        T.tma_store_wait(1)  # the store before the last has read its tile
        T.sync_threads(8 + wg, 128)
        for r, c in T.Parallel(rows, cn):
            stage[r, c] = finish(acc[r, j * cn + c], bias_v, res, row + r, col + c)
        T.fence_proxy_async()
        T.sync_threads(8 + wg, 128)
        if split_k == 1:
            T.tma_copy(stage, C[row : row + rows, col : col + cn])
        else:
            T.tma_copy(stage, C[part, row : row + rows, col : col + cn])

    @T.macro
    def share(B, b, full, s, ka, bx):
        """B's tile, for every block of the cluster."""
        if layout == "NT" and cluster > 1:
            T.tma_copy(B[bx * bn : (bx + 1) * bn, ka : ka + bk], b[s, :, :], barrier=full[s], cluster_mask=multicast)
        elif layout == "NT":
            T.tma_copy(B[bx * bn : (bx + 1) * bn, ka : ka + bk], b[s, :, :], barrier=full[s])
        elif cluster > 1:
            T.tma_copy(B[ka : ka + bk, bx * bn : (bx + 1) * bn], b[s, :, :], barrier=full[s], cluster_mask=multicast)
        else:
            T.tma_copy(B[ka : ka + bk, bx * bn : (bx + 1) * bn], b[s, :, :], barrier=full[s])

    @T.macro
    def consume(wg, a, b, stage_a, stage_b, full, free, acc, bias_v, res, C, worker, rank):
        if consumers > 1:
            T.inc_max_nreg(232)
        it = T.alloc_var("int32", init=0)
        by = T.alloc_var("int32")  # variables, so that the tile's place is worked out once
        bx = T.alloc_var("int32")
        part = T.alloc_var("int32")
        for w in T.serial(T.ceildiv(tiles, workers)):
            if w * workers + worker < tiles:
                y, x, z = place(w * workers + worker, rank)
                by = y
                bx = x
                part = z
                product(wg, a, b, full, free, acc, it)
                it = it + steps
                for j in T.unroll(bn // cn // 2, explicit=True):
                    store(wg, 2 * j, acc, stage_a, bias_v, res, C, by, bx, part)
                    store(wg, 2 * j + 1, acc, stage_b, bias_v, res, C, by, bx, part)
                if bn // cn % 2:
                    store(wg, bn // cn - 1, acc, stage_a, bias_v, res, C, by, bx, part)
        T.tma_store_wait(0)

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), bias_v: T.Tensor((N if bias else 1,), dtype),
        res: T.Tensor((M, N) if residual else (1, 1), dtype), C: T.Tensor((M, N) if split_k == 1 else (split_k, M, N), out_dtype),
    ):  # fmt: skip
        with T.Kernel(workers * cluster, threads=threads, cluster_dims=cluster) as block:
            a = T.alloc_shared((stages, *a_tile), dtype)
            b = T.alloc_shared((stages, *b_tile), dtype)
            stage0a = T.alloc_shared((rows, cn), out_dtype)
            stage0b = T.alloc_shared((rows, cn), out_dtype)
            acc0 = T.alloc_fragment((rows, bn), "float32")
            if consumers > 1:
                stage1a = T.alloc_shared((rows, cn), out_dtype)
                stage1b = T.alloc_shared((rows, cn), out_dtype)
                acc1 = T.alloc_fragment((rows, bn), "float32")
            full = T.alloc_barrier([1] * stages)
            free = T.alloc_cluster_barrier([4 * consumers * cluster] * stages)
            tx = T.get_thread_binding()
            rank = T.block_rank_in_cluster()
            worker = block // cluster
            if tx >= consumers * 128:
                if consumers > 1:
                    T.dec_max_nreg(40)
                if tx < consumers * 128 + 32:
                    if pdl:
                        T.pdl_trigger()
                        T.pdl_sync()
                    it = T.alloc_var("int32", init=0)
                    by = T.alloc_var("int32")
                    bx = T.alloc_var("int32")
                    part = T.alloc_var("int32")
                    for w in T.serial(T.ceildiv(tiles, workers)):
                        if w * workers + worker < tiles:
                            y, x, z = place(w * workers + worker, rank)
                            by = y
                            bx = x
                            part = z
                            for k in T.serial(steps):
                                s = (it + k) % stages
                                ka = (part * steps + k) * bk
                                T.mbarrier_wait_parity(free[s], (((it + k) // stages) & 1) ^ 1)
                                if layout == "TN":
                                    T.tma_copy(A[ka : ka + bk, by * bm : (by + 1) * bm], a[s, :, :], barrier=full[s])
                                else:
                                    T.tma_copy(A[by * bm : (by + 1) * bm, ka : ka + bk], a[s, :, :], barrier=full[s])
                                share(B, b, full, s, ka, bx)
                                if T.shuffle_elect(32):
                                    T.mbarrier_arrive(full[s])
                            it = it + steps
            else:
                if tx < 128:
                    consume(0, a, b, stage0a, stage0b, full, free, acc0, bias_v, res, C, worker, rank)
                else:
                    if consumers > 1:
                        consume(1, a, b, stage1a, stage1b, full, free, acc1, bias_v, res, C, worker, rank)
            T.cluster_sync()

    return main


@tilelang.jit
def portable(
    M: int, N: int, K: int, layout: str = "NT", dtype: str = "bfloat16", bias: bool = False, activation: str | None = None,
        residual: bool = False,
    bm: int = 128, bn: int = 128, bk: int = 32, stages: int = 2, threads: int = 128,
) -> Any:  # fmt: skip
    """The same function for every target with tensor cores: ``(A, B, bias, residual, C)``, of which unused ones have shape 1."""
    a_shape, a_tile = ((K, M), (bk, bm)) if layout == "TN" else ((M, K), (bm, bk))
    b_shape, b_tile = ((N, K), (bn, bk)) if layout == "NT" else ((K, N), (bk, bn))

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), bias_v: T.Tensor((N if bias else 1,), dtype),
        res: T.Tensor((M, N) if residual else (1, 1), dtype), C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a = T.alloc_shared(a_tile, dtype)
            b = T.alloc_shared(b_tile, dtype)
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if layout == "TN":
                    T.copy(A[k * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, k * bk], a)
                if layout == "NT":
                    T.copy(B[bx * bn, k * bk], b)
                else:
                    T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, acc, transpose_A=layout == "TN", transpose_B=layout == "NT")
            if bias:
                for r, c in T.Parallel(bm, bn):
                    acc[r, c] += T.cast(bias_v[bx * bn + c], "float32")
            if activation is not None:
                for r, c in T.Parallel(bm, bn):
                    acc[r, c] = activate(acc[r, c], activation)
            if residual:
                for r, c in T.Parallel(bm, bn):
                    acc[r, c] += T.cast(res[by * bm + r, bx * bn + c], "float32")
            T.copy(acc, C[by * bm, bx * bn])

    return main


@tilelang.jit
def combine(
    M: int, N: int, parts: int, dtype: str = "bfloat16", bias: bool = False, activation: str | None = None, residual: bool = False,
        threads: int = 256
) -> Any:
    """Adds the partial sums of split K and applies the epilogue: ``(partial [parts, M, N] float32, bias, residual, C)``."""
    width = threads * 4

    @T.prim_func
    def main(
        P: T.Tensor((parts, M, N), "float32"), bias_v: T.Tensor((N if bias else 1,), dtype),
        res: T.Tensor((M, N) if residual else (1, 1), dtype), C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, width), M, threads=threads) as (bx, row):
            acc = T.alloc_fragment((width,), "float32")
            T.clear(acc)
            for p in T.serial(parts):
                for c in T.Parallel(width):
                    acc[c] += P[p, row, bx * width + c]
            if bias:
                for c in T.Parallel(width):
                    acc[c] += T.cast(bias_v[bx * width + c], "float32")
            if activation is not None:
                for c in T.Parallel(width):
                    acc[c] = activate(acc[c], activation)
            if residual:
                for c in T.Parallel(width):
                    acc[c] += T.cast(res[row, bx * width + c], "float32")
            for c in T.Parallel(width):
                C[row, bx * width + c] = T.cast(acc[c], dtype)

    return main


def choose(M: int, N: int, K: int) -> Config:
    """The configuration for a shape: its own if it was tuned, else its class's."""
    return tuned().get((M, N, K), tuned()[shape_class(M, N, K)])


@lru_cache(maxsize=256)
def build(M: int, N: int, K: int, layout: str, dtype: str, bias: bool, activation: str | None, residual: bool, sms: int,
    config: Config | None) -> Any:
    """The compiled kernels of one problem as a function ``(A, B, bias, residual, C)``; ``config`` None takes the portable builder."""
    epilogue = {"bias": bias, "activation": activation, "residual": residual}
    if config is None:
        return portable(M, N, K, layout, dtype, **epilogue)
    if config.split_k == 1:
        return hopper(M, N, K, layout, dtype, **epilogue, sms=sms, **asdict(config))
    import torch

    partial = hopper(M, N, K, layout, dtype, sms=sms, **asdict(config))
    add = combine(M, N, config.split_k, dtype, **epilogue)

    def run(a: "torch.Tensor", b: "torch.Tensor", bias_v: "torch.Tensor", res: "torch.Tensor", c: "torch.Tensor") -> None:
        parts = torch.empty((config.split_k, M, N), dtype=torch.float32, device=c.device)
        partial(a, b, bias_v[:1], res[:1, :1], parts)
        add(parts, bias_v, res, c)

    return run


def gemm(
    a: "torch.Tensor", b: "torch.Tensor", *, layout: str = "NT", bias: "torch.Tensor | None" = None, activation: str | None = None,
    residual: "torch.Tensor | None" = None, out: "torch.Tensor | None" = None, config: Config | None = None,
) -> "torch.Tensor":  # fmt: skip
    """``activation(op(a) @ op(b) + bias) + residual``.

    Args:
        a: [M, K], or [K, M] where ``layout`` is ``TN``; bfloat16 or float16, contiguous.
        b: [N, K] where ``layout`` is ``NT``, else [K, N]; of a's dtype.
        layout: ``NT``, ``NN`` or ``TN``.
        bias: [N] or None.
        activation: None, ``relu`` or ``gelu`` (the exact one, with erf).
        residual: [M, N] or None, added after the activation.
        out: [M, N], written and returned; made if None.
        config: tile sizes of the Hopper builder; chosen by shape if None.

    Raises:
        InputError: a shape, dtype, device, layout or activation does not fit.
    """
    checks.require(layout in LAYOUTS, f"layout must be one of {', '.join(LAYOUTS)}, but it is {layout!r}")
    checks.require(activation in ACTIVATIONS, f"activation must be relu, gelu or None, but it is {activation!r}")
    checks.tensor("a", a, 2, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    checks.tensor("b", b, 2, (dtype,))
    checks.same_device(a=a, b=b, bias=bias, residual=residual, out=out)
    M, K = (a.shape[1], a.shape[0]) if layout == "TN" else a.shape
    N, K_b = b.shape if layout == "NT" else (b.shape[1], b.shape[0])
    checks.require(K_b == K, f"a and b disagree on K: {K} from a {tuple(a.shape)}, {K_b} from b {tuple(b.shape)} (layout {layout})")
    checks.require(min(M, N, K) > 0, f"M, N and K must be positive, but they are {M}, {N}, {K}")
    if bias is not None:
        checks.tensor("bias", bias, 1, (dtype,))
        checks.require(bias.shape[0] == N, f"bias must have {N} elements, but it has {bias.shape[0]}")
    for name, value in (("residual", residual), ("out", out)):
        if value is not None:
            checks.tensor(name, value, 2, (dtype,))
            checks.require(tuple(value.shape) == (M, N), f"{name} must have shape {(M, N)}, but it has {tuple(value.shape)}")
    result = a.new_empty((M, N)) if out is None else out
    aligned = N % 8 == 0 and all(t.shape[1] % 8 == 0 and t.data_ptr() % 16 == 0 for t in (a, b))
    fast = checks.hopper(a) and aligned
    checks.require(fast or config is None, "config is for the Hopper builder, "
        "which needs compute capability 9.0 and rows of whole 16 bytes")
    sms = checks.sm_count(a) if fast else 0
    kernel = build(M, N, K, layout, dtype, bias is not None, activation, residual is not None, sms, (config or choose(M, N,
        K)) if fast else None)
    kernel(a, b, a.new_empty(1) if bias is None else bias, a.new_empty((1, 1)) if residual is None else residual, result)
    return result


def reference(
    a: "torch.Tensor", b: "torch.Tensor", *, layout: str = "NT", bias: "torch.Tensor | None" = None, activation: str | None = None,
    residual: "torch.Tensor | None" = None,
) -> "torch.Tensor":  # fmt: skip
    """The same in torch, in float64: what ``gemm`` is held against."""
    import torch

    x = (a.T if layout == "TN" else a).double() @ (b.T if layout == "NT" else b).double()
    x = x if bias is None else x + bias.double()
    if activation == "relu":
        x = torch.relu(x)
    elif activation == "gelu":
        x = torch.nn.functional.gelu(x)
    return x if residual is None else x + residual.double()
