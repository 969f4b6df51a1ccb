"""Numbers that go wrong: overflow on a cast (TL302), the first NaN or Inf (TL301), indices that wrap (TL106)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks, dtypes
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value, both

INT32 = (1 << 31) - 1


def overflow_watch(src: str, dst: str, ctx: Context) -> Callable[[Frame, Value], None]:
    """Return the check of a conversion from ``src`` to ``dst``: finite values that become infinite or are clipped."""
    place = Place(ctx)
    d = dtypes.info(dst)
    key = ("overflow", ctx.loc and (ctx.loc.file, ctx.loc.line), dst)
    limit = dtypes.largest(dst)
    is_float = dtypes.info(src).kind == "f"

    def check(fr: Frame, x: Value) -> None:
        x = np.asarray(x)
        if not x.size:
            return
        # one pass over the values in the common case
        top = max(float(x.max()), -float(x.min())) if is_float else max(abs(int(x.max())), abs(int(x.min())))
        if top <= limit and not (d.kind == "u" and x.min() < 0):
            return
        bad = dtypes.overflowed(x, src, dst)
        if is_float:
            bad = bad & np.isfinite(x)
        bad = both(bad, fr.mask) if bad.ndim else bad
        if not bad.any():
            return
        fr.run.clipped.add(key[1])
        if fr.run.findings.seen(key):
            return
        lane = checks.first_lane(bad)
        value = np.broadcast_to(x, bad.shape)[lane].item()
        becomes = dtypes.store(dtypes.cast(np.asarray([value], x.dtype), src, dst), dst)[0]
        fr.run.findings.add(
            key, "TL302", f"{value:g} does not fit {dst}, whose largest value is {limit:g}: it becomes {becomes}.", ctx.loc,
            fix=f"scale the values first, or keep them in {src}",
            evidence={"value": value, "from": src, "to": dst, "becomes": str(becomes), "lanes": int(bad.sum())},
            **checks.where(place, fr, lane),
        )  # fmt: skip

    return check


def suspicious(value: Value) -> bool:
    """Whether ``value`` may hold a NaN or Inf, in one cheap pass."""
    if not isinstance(value, np.ndarray):
        return not np.isfinite(value) if isinstance(value, np.floating | float) else False
    return value.dtype.kind == "f" and not np.isfinite(value.sum())


def birth_watch(comp: Any, s: ir.Store, ctx: Context, value: Ex) -> Callable[[Frame, Value], None] | None:
    """The check of a computed value (TL301): a NaN or Inf that no operand had. None where nothing is computed."""
    if dtypes.info(s.buffer.dtype).kind != "f" or value.const is not None or isinstance(s.value, ir.Load | ir.Const):
        return None
    if isinstance(s.value, ir.Cast) and isinstance(s.value.a, ir.Load):
        return None  # overflow there is TL302
    nodes = list(ir.walk(s.value))
    infinite = any(
        (isinstance(n, ir.Call) and n.op == "tl.infinity")
        or (isinstance(n, ir.Const) and isinstance(n.value, float) and not np.isfinite(n.value))
        for n in nodes
    )
    loads = [n for n in nodes if isinstance(n, ir.Load) and dtypes.info(n.buffer.dtype).kind == "f"]
    place = Place(ctx)
    key = ("birth", ctx.loc and (ctx.loc.file, ctx.loc.line))

    def check(fr: Frame, x: Value) -> None:
        if not suspicious(x) or key in fr.run.born:
            return
        x = np.asarray(x)
        known = infinite or key[1] in fr.run.clipped  # told already: a cast made it infinite
        bad = np.isnan(x) if known else ~np.isfinite(x)
        bad = both(bad.reshape((1,) * ctx.rank) if not bad.ndim else bad, fr.mask)
        if not bad.any():
            return
        fr.run.born.add(key)
        operands = []
        try:
            for n in loads:
                operands.append((n, np.asarray(comp.expr(n, ctx).fn(fr))))
        except Unsupported:
            return
        for _, v in operands:
            bad = bad & ~np.isnan(v)
        if not infinite:
            for _, v in operands:
                bad = bad & ~(np.isinf(v) & np.isinf(x))
        if not bad.any():
            fr.run.born.discard(key)
            return
        lane = checks.first_lane(bad)
        got = _at(x, lane, bad.shape)
        values = {f"{n.buffer.name}": _at(v, lane, bad.shape) for n, v in operands}
        said = ", ".join(f"{k} = {v:g}" for k, v in values.items()) or "constants"
        fr.run.findings.report(
            key, "TL301", f"the first {'NaN' if np.isnan(got) else 'infinity'} appears here, in {s.buffer.name}, from {said}.", ctx.loc,
            fix="look for a division by zero, a logarithm of a value that is not positive, exp of a large number, or inf − inf",
            evidence={
                "buffer": s.buffer.name, "value": str(got), "operands": {k: str(v) for k, v in values.items()}, "lanes": int(bad.sum()),
            },
            **checks.where(place, fr, lane),
        )  # fmt: skip

    return check


def product_watch(ctx: Context, name: str, what: str) -> Callable[[Frame, Value, tuple[Value, ...]], None]:
    """The check of a tile's result (TL301): not finite though every operand is."""
    place = Place(ctx)
    key = ("birth", ctx.loc and (ctx.loc.file, ctx.loc.line))

    def check(fr: Frame, z: Value, operands: tuple[Value, ...]) -> None:
        if not suspicious(z) or key in fr.run.born or any(suspicious(o) for o in operands):
            return
        bad = ~np.isfinite(z)
        if not bad.any():
            return
        fr.run.born.add(key)
        lane = checks.first_lane(bad)
        fr.run.findings.report(
            key, "TL301", f"the first infinity appears here: {what} overflows in {name}, though its operands are finite.", ctx.loc,
            fix="accumulate in float32", evidence={"buffer": name, "elements": int(bad.sum())}, **checks.where(place, fr, lane[: ctx.rank]),
        )  # fmt: skip

    return check


def _at(x: Value, lane: tuple[int, ...], shape: tuple[int, ...]) -> float:
    return float(np.broadcast_to(x, shape)[lane])


def wraps(fr: Frame, ctx: Context | None, value: int, becomes: int) -> None:
    """TL106: an int32 result that does not fit."""
    if ctx is None or not fr.run.checks:
        return
    loc = ctx.loc
    fr.run.findings.report(
        ("wraps", loc and (loc.file, loc.line)), "TL106",
        f"an index computed in int32 comes to {value}, beyond 2147483647: on the device it wraps to {becomes}.", loc,
        fix='compute it in int64, e.g. T.cast(bx, "int64") * stride', evidence={"value": value, "becomes": becomes},
        **checks.where(Place(ctx), fr, ()),
    )  # fmt: skip


DIVISIONS = frozenset({"div", "mod", "floordiv", "floormod"})


def zero_divisor(fr: Frame, ctx: Context, divisor: Value) -> None:
    """TL303: an integer divided by zero."""
    bad = np.asarray(divisor) == 0
    bad = both(bad.reshape((1,) * ctx.rank) if not bad.ndim else bad, fr.mask)
    if not bad.any():
        return
    loc = ctx.loc
    key = ("division", loc and (loc.file, loc.line))
    if fr.run.findings.seen(key):
        return
    fr.run.findings.add(
        key, "TL303", "an integer is divided by zero here: on the device the result is any number, not an error.", loc,
        fix="test the divisor first (T.if_then_else(d != 0, n // d, 0)), or make it at least 1",
        evidence={"lanes": int(np.count_nonzero(bad))}, **checks.where(Place(ctx), fr, checks.first_lane(bad)),
    )  # fmt: skip


def largest_product(a: Value, b: Value) -> int:
    """A bound on the magnitude of products of two integer arrays (or scalars)."""

    def top(x: Value) -> int:
        x = np.asarray(x)
        return max(abs(int(x.max())), abs(int(x.min()))) if x.size else 0

    return top(a) * top(b)
