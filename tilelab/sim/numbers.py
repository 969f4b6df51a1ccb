"""Numbers that go wrong: overflow on a cast (TL302), the first NaN or Inf (TL301)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.sim import checks, dtypes
from tilelab.sim.context import Context
from tilelab.sim.lanes import Frame, Value, both


class _Place:
    """What reports need of a place that is not an access."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.loc = ctx, ctx.loc


def overflow_watch(src: str, dst: str, ctx: Context) -> Callable[[Frame, Value], None]:
    """Return the check of a conversion from ``src`` to ``dst``: finite values that become infinite or are clipped."""
    place = _Place(ctx)
    d = dtypes.info(dst)
    key = ("overflow", ctx.loc and (ctx.loc.file, ctx.loc.line), dst)
    limit = _largest(dst)
    is_float = dtypes.info(src).kind == "f"

    def check(fr: Frame, x: Value) -> None:
        x = np.asarray(x)
        if not x.size:
            return
        # one pass over the values in the common case
        top = np.abs(x).max() if is_float else max(abs(int(x.max())), abs(int(x.min())))
        if top <= limit and not (d.kind in "iu" and d.kind == "u" and x.min() < 0):
            return
        bad = dtypes.overflowed(x, src, dst)
        if is_float:
            bad = bad & np.isfinite(x)
        bad = both(bad, fr.mask) if bad.ndim else bad
        if not bad.any() or fr.run.findings.seen(key):
            return
        lane = checks.first_lane(bad)
        value = np.broadcast_to(x, bad.shape)[lane].item()
        becomes = dtypes.store(dtypes.cast(np.asarray([value], x.dtype), src, dst), dst)[0]
        fr.run.findings.add(
            key, "TL302", f"{value:g} does not fit {dst}, whose largest value is {limit:g}: it becomes {becomes}.", ctx.loc,
            fix=f"scale the values first, or keep them in {src}",
            evidence={"value": value, "from": src, "to": dst, "becomes": str(becomes), "lanes": int(bad.sum())}, **checks.where(place, fr, lane),
        )  # fmt: skip

    return check


def _largest(dst: str) -> float:
    d = dtypes.info(dst)
    if d.kind == "f":
        return float(dtypes._max_finite(d.name))
    return float((1 << (d.bits - 1)) - 1 if d.kind == "i" else (1 << d.bits) - 1)


def first_bad(value: Value) -> Any:
    """Whether ``value`` holds a NaN or Inf, in one cheap pass."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return not np.isfinite(value.sum(dtype=np.float64))
