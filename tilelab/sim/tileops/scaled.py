"""Products of block-scaled tiles: narrow floats with one scale factor for so many elements of a row.

Scale factors come as tensors of narrow floats (row, block), or packed four to a 32-bit word (lowest byte first), in one
of three places: words in rows (``rowmajor``), words in the order in which 32 rows are read at once
(``blockscaled_chunk_kmajor``), or Blackwell's tensor memory, whose lane is the row modulo 32 and whose column is the
rest of the row: there the four blocks of a word are those that were copied last. Words are E8M0 in tensor memory
(``mxf8f6f4``), unsigned E4M3 elsewhere (``mxf4nvf4``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import SPELLING, arg
from tilelab.sim import checks, dtypes
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.expr import binary, const
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.tileops.gemm import Cell, gemm, matrix, pair
from tilelab.sim.tileops.space import Space, pointee

#: Elements along k of one instruction: the block of scale factors that it uses is the one of its first element.
_ATOM = {"shared.tmem": 32, "": 64}


def gemm_blockscaled(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``c (+)= (a · sfa) @ (b · sfb)``."""
    start = comp.expr(arg(s.op, s.args, "k_start"), ctx)
    sides = [_scales(comp, s, n, start, ctx) for n in "ab"]

    def scaling(fr: Frame, x: Value, y: Value) -> tuple[Value, Value]:
        left, right = (side(fr, rows, x.shape[-1]) for side, rows in zip(sides, (x.shape[-2], y.shape[-1]), strict=True))
        return (x * left).astype(np.float32), (y * right.swapaxes(-1, -2)).astype(np.float32)

    return gemm(comp, s, ctx, scaling)


def _scales(comp: Any, s: ir.Tile, side: str, start: Ex, ctx: Context) -> Any:
    """A function of (frame, rows, depth) that gives the scale of each element of one operand: (…, rows, depth)."""
    region = arg(s.op, s.args, f"scale_{side}")
    granularity = s.attrs[f"sf_{side}_granularity_k"]
    per = int(granularity.value if isinstance(granularity, ir.Const) else granularity)  # type: ignore[arg-type]
    buffer, what = region.buffer, SPELLING[s.op]
    space, access = matrix(comp, region, ctx, what, "read")
    cell = Cell()
    read, place = space.runs(cell.keep(access.read)), Place(ctx)
    tensor_memory = buffer.scope == "shared.tmem"
    kmajor = s.attrs.get("sf_layout") == "blockscaled_chunk_kmajor"
    packed = dtypes.info(buffer.dtype).kind in "iu" and dtypes.info(buffer.dtype).bits == 32
    if not packed and dtypes.info(buffer.dtype).kind != "f":
        raise Unsupported(f"{what} with scale factors of dtype {buffer.dtype}", ctx.loc, "words of uint32, or a narrow float")
    table = dtypes.load(np.arange(256, dtype=np.uint8), "float8_e8m0fnu" if tensor_memory else "float8_e4m3fn") if packed else None
    atom = _ATOM["shared.tmem" if tensor_memory else ""]

    def scale(fr: Frame, rows: int, depth: int) -> Value:
        read(fr)
        words: Value = cell.value
        first = np.asarray(start.fn(fr))
        k = first.reshape((*first.shape, 1, 1)) + np.arange(depth)
        if packed:
            k = k - (np.arange(depth) % atom if tensor_memory else 0)
        block = k // per
        row = np.arange(rows)[:, None]
        if tensor_memory:
            at_row, at_column = row % 32, row // 128 * 4 + row % 128 // 32
        elif kmajor:
            across = max(1, depth // (4 * per))
            word = np.arange(depth) // (4 * per) * rows + row % 32 * (rows // 32) + row // 32
            at_row, at_column = word // across, word % across
        else:
            at_row, at_column = row, block // 4 if packed else block
        out = _taken(fr, words, at_row, at_column)
        if table is None:
            return out
        byte = out.astype(np.uint32) >> (8 * (block % 4)).astype(np.uint32) & np.uint32(255)
        return table[byte]

    def _taken(fr: Frame, words: Value, at_row: Value, at_column: Value) -> Value:
        high, wide = words.shape[-2:]
        bad = (at_row >= high) | (at_column >= wide) | (at_column < 0)
        if bad.any() and fr.run.checks:
            column, line = int(np.max(at_column)), int(np.max(at_row))
            fr.run.findings.report(
                ("scales", buffer.name, ctx.loc and (ctx.loc.file, ctx.loc.line)), "TL101",
                f"{what} looks for a scale factor at {buffer.name}[{line}, {column}], outside its {high}×{wide} words.", ctx.loc,
                fix="count k_start from the first column that the scale tile holds, or make the tile larger",
                evidence={"buffer": buffer.name, "shape": [high, wide], "index": [line, column]}, **checks.where(place, fr, ()),
            )  # fmt: skip
        r, c = np.broadcast_arrays(np.minimum(at_row, high - 1), np.clip(at_column, 0, wide - 1))
        if r.ndim == 2:
            return words[..., r, c]
        flat = (r * wide + c).reshape(*r.shape[:-2], -1)
        lead = np.broadcast_shapes(words.shape[:-2], flat.shape[:-1])
        spread = np.broadcast_to(words, (*lead, high, wide)).reshape(*lead, high * wide)
        return np.take_along_axis(spread, np.broadcast_to(flat, (*lead, flat.shape[-1])), axis=-1).reshape(*lead, *r.shape[-2:])

    return scale


# ------------------------------------------------------------------------------------------- words to tensor memory
class Words:
    """128 words from an address on, which a warp reads and writes as one."""

    def __init__(self, comp: Any, address: ir.Expr, ctx: Context, what: str) -> None:
        load = pointee(comp, address, ctx)
        self.space = Space(comp, ctx, (const("int32", 128),), what)
        *lead, last = comp.exprs(load.indices, self.space.ctx)
        at = (*lead, binary("add", last.dtype, last, self.space.vars[0], self.space.ctx.rank))
        self.from_, self.to = (comp.access(load.buffer, at, self.space.ctx, what, kind) for kind in ("read", "write"))
        self._cell = Cell()
        self._read = self.space.runs(self._cell.keep(self.from_.read))
        self._write = self.space.runs(lambda fr: self.to.write(fr, self._cell.value))

    def read(self, fr: Frame) -> Value:
        """The words: (…, 128)."""
        self._read(fr)
        return self._cell.value.copy()

    def write(self, fr: Frame, value: Value) -> None:
        """Put the words back."""
        self._cell.value = value
        self._write(fr)


def transpose_words(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.tcgen05_sf_warp_transpose``: 128 words, four rows of 32, become 32 rows of four."""
    words = Words(comp, call.args[0], ctx, "T.tcgen05_sf_warp_transpose")

    def run(fr: Frame) -> None:
        x = words.read(fr)
        words.write(fr, x.reshape(*x.shape[:-1], 4, 32).swapaxes(-1, -2).reshape(x.shape))

    return Op(run)


def words_to_tensor_memory(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.tcgen05_cp_warpx4``: 32 rows of four words into four columns, the same for each of the four warps' lanes."""
    what = "T.tcgen05_cp_warpx4"
    words = Words(comp, call.args[0], ctx, what)
    data = call.args[1]
    if not isinstance(data, ir.Var) or data not in comp.buffers:
        raise Unsupported(f"{what} into something that is no buffer of tensor memory", ctx.loc)
    buffer = comp.specs[comp.buffers[data]]
    rows = buffer.shape[-2]
    extents = (rows, ir.Const(dtype="int32", value=4))
    mins = (*(ir.Const(dtype="int32", value=0) for _ in buffer.shape[:-1]), call.args[2])
    ones = tuple(ir.Const(dtype="int32", value=1) for _ in buffer.shape[:-2])
    region = ir.Region(dtype="handle", buffer=buffer, mins=mins, extents=(*ones, *extents), access="w")
    space, access = matrix(comp, region, ctx, what, "write")
    cell = Cell()
    write = space.runs(lambda fr: access.write(fr, cell.value))
    high = space.extents[0]

    def one(fr: Frame) -> None:
        x = words.read(fr)
        n = int(high.fn(fr))
        cell.value = x.reshape(*x.shape[:-1], 32, 4)[..., np.arange(n) % 32, :]
        write(fr)

    if not call.attrs.get("use_2cta"):
        return Op(one)

    def two(fr: Frame) -> None:
        for block in pair(fr, ctx, what):
            one(block)

    return Op(two)


TABLE = {"gemm_blockscaled": gemm_blockscaled, "tcgen05_gemm_blockscaled": gemm_blockscaled}
EFFECTS = {"tl.ptx_tcgen05_sf_warp_transpose": transpose_words, "tl.ptx_tcgen05_cp_warpx4": words_to_tensor_memory}
