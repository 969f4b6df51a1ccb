"""Pipelines: the schedule of every pipelined loop of a kernel, what TileLang would plan with other stages, and what a schedule breaks.

TileLang's plan: a statement that copies from global to shared memory (and what it depends on) is of stage 0, the rest of stage
``num_stages``; each copy comes right behind its last reader. Where that puts all copies at the end of a step, and there are two stages or
more, the copies move to its beginning and the rest a stage earlier (``tilelang/src/transform/pipeline_planning.cc``, 0.1.15). Tests compare
this with what the compiler does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilelab import ir
from tilelab.analysis.expr import const_int
from tilelab.analysis.shared import buffer_bytes
from tilelab.artifact import Artifact, PipelinePlan
from tilelab.finding import Finding, finding
from tilelab.ops import SPELLING
from tilelab.schedule import LANES, Held, Schedule, ScheduledBuffer, ScheduledStatement, Slot

ROLES = ("producer", "consumer")
_COPIES = ("copy", "async_copy", "tma_copy", "im2col", "c2d_im2col")
Basis = Literal["planned", "hand", "roles", "sequential", "what-if"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A statement of a pipelined body: what it touches and what kind of work it is. ``copies``: from global to shared memory."""

    text: str
    lane: str
    copies: bool
    reads: tuple[ir.Buffer, ...]
    writes: tuple[ir.Buffer, ...]
    loc: ir.SourceLoc | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """Statement ``later`` of an iteration (``distance`` iterations on) must come after ``earlier``, because of ``buffer``."""

    earlier: int
    later: int
    distance: int
    buffer: ir.Buffer
    kind: Literal["reads what it wrote", "overwrites what it read", "overwrites what it wrote"]


def schedules(source: ir.Program | Artifact, *, shown: int = 0) -> tuple[Schedule, ...]:
    """Return the schedule of each pipelined loop of ``source``, in the order of the source.

    Args:
        source: A captured Program (TileLang's rule is applied) or an Artifact (its own plan is used).
        shown: Iterations to lay out. Default: enough to see prologue, steady state and epilogue.
    """
    artifact = source if isinstance(source, Artifact) else None
    program = source.tile if isinstance(source, Artifact) else source
    return tuple(_of_loop(loop, artifact, shown) for loop in pipelined_loops(program))


def what_if(loop: ir.For, stages: Sequence[int] = (1, 2, 3, 4, 5), *, roles: bool = False, shown: int = 0) -> tuple[Schedule, ...]:
    """Return what would be planned for ``loop`` with each number of ``stages``."""
    works = work_of(loop)
    return tuple(_lay_out(loop, works, *_planned(works, n, roles), "what-if", n, roles, shown) for n in stages)


def by_hand(loop: ir.For, order: Sequence[int], stage: Sequence[int], *, shown: int = 0) -> Schedule:
    """Return the schedule of ``loop`` for a given order and stage; ``findings`` say which dependences it breaks (TL209)."""
    works = work_of(loop)
    wrong = _malformed(loop, works, order, stage)
    if wrong is not None:
        empty = _lay_out(loop, works, list(range(len(works))), [0] * len(works), "hand", 1, False, shown)
        return replace(empty, findings=(wrong,))
    return _lay_out(loop, works, list(order), list(stage), "hand", max(stage, default=0) + 1, False, shown)


def pipelined_loops(program: ir.Program) -> tuple[ir.For, ...]:
    """Return the loops written as ``T.Pipelined``."""
    return tuple(n for n in ir.walk(program) if isinstance(n, ir.For) and ("num_stages" in n.attrs or "tl_pipeline_stage" in n.attrs))


# ------------------------------------------------------------------------------------------------ statements
def work_of(loop: ir.For) -> tuple[Work, ...]:
    """Return the statements of ``loop``'s body, scalar bindings left out."""
    return tuple(work_of_statement(s) for s in _flat(loop.body) if not isinstance(s, ir.Bind | ir.Declare))


def _flat(body: ir.Body) -> Iterator[ir.Stmt]:
    for s in body:
        if isinstance(s, ir.Block) and not s.allocs:
            yield from _flat(s.body)
        else:
            yield s


def work_of_statement(s: ir.Stmt) -> Work:
    """Return what ``s`` touches, and what kind of work it is."""
    reads: list[ir.Buffer] = []
    writes: list[ir.Buffer] = []
    for n in ir.walk(s):
        if isinstance(n, ir.Load):
            reads.append(n.buffer)
        elif isinstance(n, ir.Store):
            writes.append(n.buffer)
        elif isinstance(n, ir.Region):
            reads += [n.buffer] if "r" in n.access else []
            writes += [n.buffer] if "w" in n.access else []
    reads, writes = _distinct(reads), _distinct(writes)
    to_global = any(b.scope == "global" for b in writes)
    copies = isinstance(s, ir.Tile) and s.op in _COPIES and _scope(reads) == "global" and _scope(writes).startswith("shared")
    lane = LANES[2] if to_global else LANES[0] if copies else LANES[1]
    return Work(text=_text(s, reads, writes), lane=lane, copies=copies, reads=tuple(reads), writes=tuple(writes), loc=s.loc)


def _distinct(buffers: list[ir.Buffer]) -> list[ir.Buffer]:
    return list({id(b.data): b for b in reversed(buffers)}.values())[::-1]


def _scope(buffers: Sequence[ir.Buffer]) -> str:
    return buffers[0].scope if buffers else ""


def _text(s: ir.Stmt, reads: Sequence[ir.Buffer], writes: Sequence[ir.Buffer]) -> str:
    def names(buffers: Sequence[ir.Buffer]) -> str:
        return ", ".join(b.name for b in buffers)

    inputs = [b for b in reads if all(b.data is not w.data for w in writes)] or list(reads)
    what = "parallel" if isinstance(s, ir.For) and s.kind == "parallel" else type(s).__name__.lower()
    if isinstance(s, ir.Tile):
        what = SPELLING[s.op].removeprefix("T.")
    elif isinstance(s, ir.Eval) and isinstance(s.value, ir.Call):
        what = s.value.op.rpartition(".")[2]
    arrow = f" {names(inputs)} → {names(writes)}" if inputs and writes else f" {names(writes or inputs)}"
    return f"{what}{arrow}".strip()


# ----------------------------------------------------------------------------------------------------- plans
def _of_loop(loop: ir.For, artifact: Artifact | None, shown: int) -> Schedule:
    works = work_of(loop)
    order, stage = loop.attrs.get("tl_pipeline_order"), loop.attrs.get("tl_pipeline_stage")
    plan = _plan_of(loop, artifact, len(works))
    if isinstance(order, tuple) and isinstance(stage, tuple) and order and stage:
        return by_hand(loop, [_int(e) for e in order], [_int(e) for e in stage], shown=shown)
    if plan is not None:
        return _lay_out(loop, works, list(plan.order), list(plan.stage), "planned", plan.num_stages, False, shown, plan.async_stages)
    n = _stages(loop)
    roles = artifact is not None and artifact.attrs.get("warp_specialized") == "true" and any(w.copies for w in works)
    amd = artifact is not None and artifact.target.startswith("gfx") and artifact.target != "gfx950"
    if n == 0 or amd:  # TileLang pipelines nothing there
        return _lay_out(loop, works, list(range(len(works))), [0] * len(works), "sequential", 0, False, shown)
    return _lay_out(loop, works, *_planned(works, n, roles), "roles" if roles else "planned", n, roles, shown)


def _plan_of(loop: ir.For, artifact: Artifact | None, count: int) -> PipelinePlan | None:
    for p in artifact.pipelines if artifact is not None else ():
        same_line = p.loc is None or loop.loc is None or p.loc.line == loop.loc.line
        if same_line and p.loop.startswith(loop.var.name) and len(p.stage) == len(p.order) == count:
            return p
    return None


def _stages(loop: ir.For) -> int:
    return max(0, _int(loop.attrs.get("num_stages")))


def _int(value: object) -> int:
    if isinstance(value, ir.Expr):
        return const_int(value) or 0
    return value if isinstance(value, int) else 0


def _planned(works: Sequence[Work], num_stages: int, roles: bool) -> tuple[list[int], list[int]]:
    """Order and stage by TileLang's rule; for roles, the producer as far ahead as its versions let it run."""
    count = len(works)
    first = _first_stage(works)
    if roles:
        order = sorted(range(count), key=lambda k: (k not in first, k))
        return [order.index(k) for k in range(count)], [0 if k in first else num_stages - 1 for k in range(count)]
    last_use = {k: max((j for j in range(k + 1, count) if _meets(works[k].writes, works[j].reads)), default=-1) for k in first}
    place, stage, at = [0] * count, [0] * count, 0
    for k in range(count):
        if last_use.get(k, -1) >= 0:
            continue
        place[k], stage[k] = at, num_stages
        at += 1
        for j in sorted(first):
            if last_use[j] == k:
                place[j], stage[j] = at, 0
                at += 1
    rest = [place[k] for k in range(count) if k not in first]
    if first and num_stages >= 2 and min(place[k] for k in first) > max(rest, default=-1):
        place = [(p + len(first)) % count for p in place]
        stage = [s if k in first else s - 1 for k, s in enumerate(stage)]
    return place, stage


def _first_stage(works: Sequence[Work]) -> set[int]:
    """The copies, and whatever writes what they read."""
    first = {k for k, w in enumerate(works) if w.copies}
    while True:
        needed = [b for k in first for b in works[k].reads]
        more = {k for k, w in enumerate(works) if k not in first and k < max(first, default=0) and _meets(w.writes, needed)}
        if not more:
            return first
        first |= more


def _meets(a: Sequence[ir.Buffer], b: Sequence[ir.Buffer]) -> bool:
    mine = {id(x.data) for x in a}
    return any(id(x.data) in mine for x in b)


# ----------------------------------------------------------------------------------------------- dependences
def fresh_buffers(works: Sequence[Work]) -> tuple[ir.Buffer, ...]:
    """Return the on-chip buffers that each iteration writes before it reads them: each iteration may have a version of its own."""
    state: dict[int, bool] = {}
    found: dict[int, ir.Buffer] = {}
    for w in works:
        for b in w.reads:
            state.setdefault(id(b.data), False)
        for b in w.writes:
            found[id(b.data)] = b
            state.setdefault(id(b.data), True)
    return tuple(b for key, b in found.items() if state[key] and b.scope != "global")


def dependences(works: Sequence[Work]) -> tuple[Dependence, ...]:
    """Return every order that the loop's meaning needs, within an iteration (distance 0) and from one to the next (distance 1).

    Buffers that are fresh in each iteration bind only within it, since they can have versions; parameters in global memory that the loop
    only reads bind nothing.
    """
    fresh = {id(b.data) for b in fresh_buffers(works)}
    out = []
    for distance in (0, 1):
        for p, a in enumerate(works):
            for q, b in enumerate(works):
                if distance == 0 and q <= p:
                    continue
                for mine, theirs, kind in ((a.writes, b.reads, "reads what it wrote"), (a.reads, b.writes, "overwrites what it read"),
                                           (a.writes, b.writes, "overwrites what it wrote")):  # fmt: skip
                    for x in mine:
                        if (distance == 0 or id(x.data) not in fresh) and _meets([x], theirs) and not (distance and p == q):
                            out.append(Dependence(earlier=p, later=q, distance=distance, buffer=x, kind=kind))  # type: ignore[arg-type]
    return tuple(out)


def broken(works: Sequence[Work], order: Sequence[int], stage: Sequence[int]) -> tuple[Dependence, ...]:
    """Return the dependences that ``order`` and ``stage`` break."""
    return tuple(d for d in dependences(works) if not (stage[d.earlier], order[d.earlier]) < (stage[d.later] + d.distance, order[d.later]))


def _malformed(loop: ir.For, works: Sequence[Work], order: Sequence[int], stage: Sequence[int]) -> Finding | None:
    n = len(works)
    if len(order) != n or len(stage) != n:
        return _finding(
            loop, f"The loop has {n} statements, but order has {len(order)} numbers and stage {len(stage)}",
            "give one number for each statement, in the order of the source",
        )  # fmt: skip
    if sorted(order) != list(range(n)):
        return _finding(loop, f"order={list(order)} does not name each place from 0 to {n - 1} once", "number the statements of a step")
    if min(stage, default=0) < 0:
        return _finding(loop, f"stage={list(stage)} has a negative stage", "count stages from 0")
    return None


def _finding(loop: ir.For, message: str, fix: str) -> Finding:
    loc = loop.loc
    return finding("TL209", f"{message}.", fix=f"{fix}.", file=loc.file if loc else None, line=loc.line if loc else None)


def _told(d: Dependence, works: Sequence[Work], order: Sequence[int], stage: Sequence[int]) -> Finding:
    a, b = works[d.earlier], works[d.later]
    lines = {"earlier": a.loc.line if a.loc else None, "later": b.loc.line if b.loc else None}
    of = "" if d.distance == 0 else " of the next iteration"
    where = [f"stage {stage[k]}, place {order[k]}" for k in (d.earlier, d.later)]
    same = stage[d.earlier] == stage[d.later] + d.distance
    fix = f"give it a higher order than {order[d.earlier]}" if same else f"give it stage {max(0, stage[d.earlier] - d.distance)} or more"
    line = f" (line {lines['earlier']})" if lines["earlier"] else ""
    return finding(
        "TL209",
        f"'{b.text}'{of} {d.kind} in {d.buffer.name}: it must come after '{a.text}'{line}, but runs before it "
        f"({where[1]}; the other {where[0]}).",
        fix=f"{fix}.",
        file=b.loc.file if b.loc else None,
        line=lines["later"],
        evidence={"buffer": d.buffer.name, "earlier": d.earlier, "later": d.later, "distance": d.distance, "lines": lines},
    )


# --------------------------------------------------------------------------------------------------- laying out
def _lay_out(
    loop: ir.For, works: Sequence[Work], order: list[int], stage: list[int], basis: Basis, num_stages: int, roles: bool, shown: int,
    async_stages: Sequence[int] | None = None,
) -> Schedule:  # fmt: skip
    total = const_int(loop.extent) or 0
    depth = max(stage, default=0)
    count = min(total, shown or 2 * depth + 3) if total else shown or 2 * depth + 3
    hidden = basis not in ("sequential",)
    statements = tuple(
        ScheduledStatement(
            text=w.text, lane=_lane(w, k, works, roles), stage=stage[k], order=order[k], reads=tuple(b.name for b in w.reads),
            writes=tuple(b.name for b in w.writes), loc=w.loc,
            is_async=w.copies and (stage[k] in async_stages if async_stages is not None else hidden),
        )
        for k, w in enumerate(works)
    )  # fmt: skip
    slots = [Slot(step=i + stage[k], statement=k, iteration=i) for i in range(count) for k in range(len(works))]
    slots.sort(key=lambda s: (s.step, order[s.statement]))
    wrong = broken(works, order, stage)
    buffers, held = _versions(works, order, stage, count)
    lanes = ROLES if roles else tuple(name for name in LANES if any(s.lane == name for s in statements))
    return Schedule(
        loop=loop.var.name, loc=loop.loc, basis=basis, num_stages=num_stages, iterations=total, shown=count, lanes=lanes,
        statements=statements, slots=tuple(slots), buffers=buffers, held=held,
        findings=tuple(_told(d, works, order, stage) for d in _one_each(wrong)),
    )  # fmt: skip


def _one_each(wrong: Sequence[Dependence]) -> list[Dependence]:
    """One dependence for each pair of statements: the first says enough."""
    return list({(d.earlier, d.later): d for d in reversed(wrong)}.values())[::-1]


def _lane(w: Work, k: int, works: Sequence[Work], roles: bool) -> str:
    return (ROLES[0] if k in _first_stage(works) else ROLES[1]) if roles else w.lane


def _versions(
    works: Sequence[Work], order: Sequence[int], stage: Sequence[int], count: int
) -> tuple[tuple[ScheduledBuffer, ...], tuple[Held, ...]]:
    """The versions that each fresh buffer needs, and what they hold.

    The next write to a version must come after the last use of what it holds: ``versions + stage of the writer`` steps later, or one step
    earlier where it also comes behind it in the order.
    """
    buffers, held = [], []
    for b in fresh_buffers(works):
        if "barrier" in b.scope:
            continue
        writers = [k for k, w in enumerate(works) if _meets([b], w.writes)]
        users = [k for k, w in enumerate(works) if _meets([b], w.reads) or _meets([b], w.writes)]
        readers = [k for k, w in enumerate(works) if _meets([b], w.reads)] or users
        first = min(writers, key=lambda k: (stage[k], order[k]))
        last = max(users, key=lambda k: (stage[k], order[k]))
        need = stage[last] - stage[first] + (0 if order[first] > order[last] else 1)
        versions = max(1, need)
        if versions == 1 and not b.scope.startswith("shared"):
            continue  # registers that live within one step
        name, size = b.name, buffer_bytes(b) or 0
        buffers.append(ScheduledBuffer(name=name, dtype=b.dtype, scope=b.scope, version_bytes=size, versions=versions))
        ready = min(stage[k] for k in readers)
        held += [Held(buffer=name, version=i % versions, iteration=i, written=i + stage[first], read=i + ready, last=i + stage[last])
                 for i in range(count)]  # fmt: skip
    return tuple(buffers), tuple(held)
