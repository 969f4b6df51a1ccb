"""Values of a Trace on a layout: what a buffer held after each step that wrote it, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.errors import InputError
from tilelab.layout import Layout
from tilelab.trace import Event, Trace
from tilelab.views.schema import LayoutFrame

_MOST_FRAMES = 64
_MOST_VALUES = 1 << 19  # over all frames of one layout: a page must stay small


def frames_of(trace: Trace, one: Layout, *, step: int | None = None, block: Sequence[int] | None = None) -> list[LayoutFrame]:
    """Return the values of buffer ``one.name`` after each step that wrote it, the last ones where there are many.

    Args:
        trace: A run that recorded a block.
        one: The layout; of a buffer with versions, each step fills the version of its iteration.
        step: Steps behind this one are left out. Default: none.
        block: Which of the recorded blocks. Default: the first.

    Raises:
        InputError: No block was recorded, not this one, or there is no such step.
    """
    events = _events(trace, block)
    if step is not None and not any(e.index == step for e in events):
        raise InputError(f"the trace has no step {step} of this block", fix=f"steps go from {events[0].index} to {events[-1].index}")
    wrote = [e for e in events if one.name in e.after and (step is None or e.index <= step)]
    most = max(1, min(_MOST_FRAMES, _MOST_VALUES // max(1, one.size)))
    frames: list[LayoutFrame] = []
    now, missing = np.zeros(one.shape), np.ones(one.shape, dtype=bool)
    for e in wrote:
        if not _put(now, missing, e.after[one.name], e.loops):
            return []
        line = e.loc.line if e.loc else 0
        held, empty = now.astype(np.float32), missing.astype(np.uint8)
        frames.append({"step": e.index, "text": e.text, "line": line, "value": held, "unwritten": empty})
        frames = frames[-most:]
    return frames


def _events(trace: Trace, block: Sequence[int] | None) -> list[Event]:
    if not trace.events:
        raise InputError("this trace recorded no block", fix="simulate with params=SimParams(record_blocks=((0, 0, 0),))")
    chosen = tuple(block) if block is not None else trace.events[0].block
    found = [e for e in trace.events if e.block == chosen]
    if not found:
        there = ", ".join(str(b) for b in dict.fromkeys(e.block for e in trace.events))
        raise InputError(f"block {chosen} was not recorded", fix=f"there is {there}")
    return found


def _put(now: Any, missing: Any, value: Any, loops: Mapping[str, int]) -> bool:
    """Write ``value`` over ``now``, into the version of the innermost loop's iteration where there are versions; False: they do not fit."""
    masked = np.ma.asarray(value)
    at: Any = ...
    if masked.shape == now.shape[1:] and masked.shape != now.shape:
        at = list(loops.values())[-1] % now.shape[0] if loops else 0
    elif masked.shape != now.shape:
        return False
    now[at], missing[at] = np.ma.filled(masked.astype(np.float64), 0), np.ma.getmaskarray(masked)
    return True
