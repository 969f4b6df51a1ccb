"""GEMV: ``y = W @ x (+ bias)`` for W [N, K], x [K], y [N] in bfloat16 or float16, summed in float32. Any N and K.

The work is reading W once. A block owns ``bn`` rows; a warp reads a row in pieces of 16 bytes a lane, ``bn / warps`` rows at a time, so
that as many loads are in flight as the memory's latency wants; the lanes' sums are joined at the end. x comes from the L2.

Two numbers (16384²): 537 MB → 127 µs at 4.22 TB/s; 0.54 GFLOP on the ordinary cores: 16 µs.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")


@tilelang.jit
def portable(N: int, K: int, dtype: str = "bfloat16", bias: bool = False, bn: int = 8, bk: int = 512, threads: int = 256) -> Any:
    """The kernel, for every target: ``(W, x, bias, y)``; an unused bias has shape 1."""

    @T.prim_func
    def main(W: T.Tensor((N, K), dtype), x: T.Tensor((K,), dtype), bias_v: T.Tensor((N if bias else 1,), dtype), y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, bn), threads=threads) as block:
            acc, total = T.alloc_fragment((bn, bk), "float32"), T.alloc_fragment((bn,), "float32")
            w = T.alloc_fragment((bn, bk), dtype)
            T.clear(acc)
            for k in T.serial(T.ceildiv(K, bk)):
                T.copy(W[block * bn, k * bk], w)
                for r, c in T.Parallel(bn, bk):
                    if k * bk + c < K:
                        acc[r, c] += T.cast(w[r, c], "float32") * T.cast(x[k * bk + c], "float32")
            T.reduce_sum(acc, total, dim=1)
            for r in T.Parallel(bn):
                if block * bn + r < N:
                    y[block * bn + r] = T.cast(total[r] + (T.cast(bias_v[block * bn + r], "float32") if bias else 0.0), dtype)

    return main


@lru_cache(maxsize=256)
def build(N: int, K: int, dtype: str, bias: bool) -> Any:
    """The compiled kernel of one problem: smaller blocks where there are few rows."""
    return portable(N, K, dtype, bias, threads=256 if N >= 8192 else 128)


def gemv(w: "torch.Tensor", x: "torch.Tensor", *, bias: "torch.Tensor | None" = None, out: "torch.Tensor | None" = None) -> "torch.Tensor":
    """``w @ x + bias``.

    Args:
        w: [N, K] bfloat16 or float16, contiguous.
        x: [K], of w's dtype.
        bias: [N] or None.
        out: [N], written and returned; made if None.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    checks.tensor("w", w, 2, DTYPES)
    dtype = str(w.dtype).removeprefix("torch.")
    N, K = w.shape
    checks.require(min(N, K) > 0, f"w must not be empty, but its shape is {(N, K)}")
    checks.same_device(w=w, x=x, bias=bias, out=out)
    for name, value, size in (("x", x, K), ("bias", bias, N), ("out", out, N)):
        if value is not None:
            checks.tensor(name, value, 1, (dtype,))
            checks.require(value.shape[0] == size, f"{name} must have {size} elements, but it has {value.shape[0]}")
    y = w.new_empty(N) if out is None else out
    build(N, K, dtype, bias is not None)(w, x, w.new_empty(1) if bias is None else bias, y)
    return y


def reference(w: "torch.Tensor", x: "torch.Tensor", *, bias: "torch.Tensor | None" = None) -> "torch.Tensor":
    """The same in torch, in float64."""
    y = w.double() @ x.double()
    return y if bias is None else y + bias.double()
