"""Budgets: more shared memory (TL501) or threads (TL502) than the chosen GPU has, or a grid that no GPU has (TL505)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tilelab import ir
from tilelab.analysis.expr import const_int
from tilelab.analysis.shared import SharedBuffer, SharedUse, shared_use
from tilelab.errors import InputError
from tilelab.finding import Finding, finding
from tilelab.machine import GPUS, Gpu, gpu


def budget_findings(program: ir.Program, target: str) -> tuple[Finding, ...]:
    """Check each launch of a captured Program against the limits of ``target`` (a target or the name of a GPU).

    Returns TL501 (shared memory), TL502 (threads) and TL505 (blocks); nothing for targets whose limits are not known.

    Raises:
        InputError: There is no such target.
    """
    from tilelab.machine import canonical_target

    canonical_target(target)
    try:
        machine = gpu(target)
    except InputError:
        return ()
    found: list[Finding] = []
    for use in shared_use(program):
        found += _grid(use.launch)
        found += _threads(use.launch, machine)
        found += _shared(use, machine)
    return tuple(found)


# ------------------------------------------------------------------------------------------------ grids
#: Most blocks along x, y and z (CUDA C++ Programming Guide, compute capabilities: all since 3.0).
GRID = ((1 << 31) - 1, 65535, 65535)


def _grid(launch: ir.Launch) -> Iterator[Finding]:
    for axis, (extent, limit) in enumerate(zip(launch.grid, GRID, strict=False)):
        n = const_int(extent)
        if n is None or 1 <= n <= limit:
            continue
        name = "xyz"[axis]
        wrong = f"a launch needs at least 1 block along {name}" if n < 1 else f"along {name} at most {limit:,} may be launched"
        yield finding(
            "TL505",
            f"T.Kernel asks for {n:,} blocks along {name}, but {wrong}.",
            fix="Check how the number of blocks is computed." if n < 1 else "Put the longest extent first (x), or let each block do more.",
            **_at(launch.loc),
            evidence={"axis": name, "blocks": n, "limit": limit},
        )


# ------------------------------------------------------------------------------------------------ threads
def _threads(launch: ir.Launch, machine: Gpu) -> Iterator[Finding]:
    extents = [const_int(e) for e in launch.threads]
    threads = prod(n for n in extents if n is not None)
    if None in extents or threads <= machine.threads_per_block:
        return
    limit = machine.threads_per_block
    shape = "×".join(str(n) for n in extents)
    asked = f"{threads:,} threads" if len(extents) == 1 else f"{threads:,} threads ({shape})"
    yield finding(
        "TL502",
        f"The kernel asks for {asked} a block; the limit is {limit:,}, on {machine.name} as on every GPU.",
        fix=f"Use threads={limit} or fewer: T.Parallel shares the same work among fewer threads, each doing more of it.",
        **_at(launch.loc),
        evidence={"threads": threads, "limit": limit, "gpu": machine.name, "source": machine.source},
    )


# ------------------------------------------------------------------------------------------------ shared memory
def _shared(use: SharedUse, machine: Gpu) -> Iterator[Finding]:
    static = [b for b in use.peak if b.buffer.scope == "shared"]
    limit = machine.smem_per_block_bytes
    if use.bytes > limit:
        yield _too_much(use, machine, limit)
    elif sum(b.bytes for b in static) > machine.smem_static_bytes:
        yield _too_much_static(static, machine)


def _too_much(use: SharedUse, machine: Gpu, limit: int) -> Finding:
    needed = use.bytes
    roomiest = max(GPUS, key=lambda g: g.smem_per_block_bytes)
    others = [g for g in GPUS if g.smem_per_block_bytes >= needed]
    if not others:
        elsewhere = f"no GPU has that much (the most is {_size(roomiest.smem_per_block_bytes)}, on {roomiest.name})"
    else:
        elsewhere = f"{_names(others)} would have enough"
    ordered = sorted(use.peak, key=lambda b: -b.bytes)
    listed = "; ".join(_describe(b) for b in ordered[:3]) + (f"; and {len(ordered) - 3} more" if len(ordered) > 3 else "")
    biggest = ordered[0]
    return finding(
        "TL501",
        f"A block needs {_size(needed)} of shared memory, but {machine.name} ({machine.target}) gives it at most {_size(limit)}; "
        f"{elsewhere}. "
        f"In use at once: {listed}.",
        fix=_advice(ordered, needed, limit),
        **_at(biggest.buffer.loc or use.launch.loc),
        evidence=_evidence(ordered, needed, limit, machine),
    )


def _too_much_static(static: list[SharedBuffer], machine: Gpu) -> Finding:
    needed, limit = sum(b.bytes for b in static), machine.smem_static_bytes
    ordered = sorted(static, key=lambda b: -b.bytes)
    return finding(
        "TL501",
        f"Static shared memory (scope 'shared') is limited to {_size(limit)}, and this kernel declares {_size(needed)}: "
        + "; ".join(_describe(b) for b in ordered[:3])
        + ".",
        fix="Use T.alloc_shared(shape, dtype) with its default scope 'shared.dyn', which may be larger.",
        **_at(ordered[0].buffer.loc),
        evidence=_evidence(ordered, needed, limit, machine),
    )


def _advice(ordered: list[SharedBuffer], needed: int, limit: int) -> str:
    """What would fit: fewer stages if copies are the trouble, else a smaller biggest buffer."""
    staged = [b for b in ordered if b.copies > 1]
    if staged:
        stages = max(b.copies for b in staged)
        fixed = needed - sum(b.bytes for b in staged)
        for fewer in range(min(stages - 1, limit), 0, -1):  # a stage takes a byte at least
            if fixed + sum(b.single_bytes * min(b.copies, fewer) for b in staged) <= limit:
                names = _join([b.buffer.name for b in staged])
                return f"num_stages={fewer} fits (each stage keeps its own copy of {names}), or use smaller tiles."
    biggest = ordered[0]
    shape = [const_int(e) or 1 for e in biggest.buffer.shape]
    room = limit - (needed - biggest.bytes)
    if room <= 0:
        return f"Shrink the tiles, {biggest.buffer.name} first: it is the biggest."
    smaller, size = list(shape), biggest.bytes
    while size > room and max(smaller) > 1:
        axis = smaller.index(max(smaller))
        smaller[axis] = (smaller[axis] + 1) // 2
        size = biggest.bytes * prod(smaller) // prod(shape)
    change = f"{_shape(shape)} would have to become {_shape(smaller)} or less"
    return f"Shrink {biggest.buffer.name}, the biggest: {change}. Work through the data tile by tile."


def _evidence(ordered: list[SharedBuffer], needed: int, limit: int, machine: Gpu) -> dict[str, Any]:
    buffers = [
        {
            "name": b.buffer.name,
            "dtype": b.buffer.dtype,
            "shape": [const_int(e) for e in b.buffer.shape],
            "bytes": b.bytes,
            "copies": b.copies,
            "line": b.buffer.loc.line if b.buffer.loc else None,
        }
        for b in ordered
    ]
    return {"needed_bytes": needed, "limit_bytes": limit, "gpu": machine.name, "source": machine.source, "buffers": buffers}


# ------------------------------------------------------------------------------------------------ words
def _at(loc: ir.SourceLoc | None) -> dict[str, Any]:
    return {"file": loc.file, "line": loc.line} if loc else {}


def _size(n: int) -> str:
    if n % 1024 and n < 1 << 16:
        return f"{n:,} bytes"
    value, unit = (n / (1 << 20), "MiB") if n >= 1 << 20 else (n / 1024, "KiB")
    return f"{value:.4g} {unit} ({n:,} bytes)"


def _shape(shape: list[int]) -> str:
    return "×".join(str(n) for n in shape)


def _describe(b: SharedBuffer) -> str:
    shape = _shape([const_int(e) or 0 for e in b.buffer.shape])
    times = f" × {b.copies} stages" if b.copies > 1 else ""
    line = f", line {b.buffer.loc.line}" if b.buffer.loc else ""
    return f"{b.buffer.name} {b.buffer.dtype}[{shape}]{times} = {_size(b.bytes)}{line}"


def _names(gpus: list[Gpu]) -> str:
    names = list(dict.fromkeys(g.name for g in gpus))
    return _join(names[:3]) + (" and others" if len(names) > 3 else "")


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
