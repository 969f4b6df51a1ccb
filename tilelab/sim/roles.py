"""Roles: branches that different threads of a block take, each a coroutine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab import ir
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Frame
from tilelab.sim.sync import Several, Wait, Waiting

Task = tuple[Waiting, "Wait | None"]


def together(tasks: list[Waiting]) -> Waiting:
    """Run the roles of one block until all have ended, waiting only when all of them wait."""
    left: list[Task] = [(t, None) for t in tasks]
    while left := _until_stuck(left):
        yield Several([w for _, w in left if w is not None])


def _until_stuck(tasks: list[Task]) -> list[Task]:
    """Run tasks until each has ended or waits for something that none of them does; those that wait."""
    pending = tasks
    while pending:
        left: list[Task] = []
        moved = False
        for task, wait in pending:
            if wait is not None and not wait.ready():
                left.append((task, wait))
                continue
            moved = True
            try:
                left.append((task, next(task)))
            except StopIteration:
                continue
        pending = left
        if not moved:
            break
    return pending


def side_by_side(ops: tuple[Op, ...], apart: tuple[str, ...]) -> Callable[[Frame], Waiting]:
    """Branches by thread, one after the other in the program: those of different threads run at the same time.

    ``apart``: for each of them, the shared buffer for whose sake TileLang puts a barrier of the whole block before it
    (empty: none). Where a branch before such a barrier cannot end without one after it, that is a deadlock.
    """

    def gen(fr: Frame) -> Waiting:
        rows: list[Any] = []  # [threads, the branches still to run, whether one of them runs]
        left: list[Task] = []
        for op, buffer in zip(ops, apart, strict=True):
            if buffer and fr.cluster is None:
                left = _until_stuck(left)
                waits = [w for _, wait in left for w in _single(wait)]
                if waits and all(w.kind == "mbarrier" for w in waits):
                    _never_there(fr, waits[0], op, buffer)
            assert op.role is not None
            threads = op.role(fr)
            mine = next((r for r in rows if (r[0] & threads).any()), None)
            if mine is None:
                mine = [threads, [], False]
                rows.append(mine)
            mine[0] = mine[0] | threads
            mine[1].append((op, fr.fork()))
            if not mine[2]:
                mine[2] = True
                left.append((_in_turn(mine), None))
        while left := _until_stuck(left):
            yield Several([w for _, w in left if w is not None])

    return gen


def _in_turn(row: Any) -> Waiting:
    while row[1]:
        op, fr = row[1].pop(0)
        if op.gen is not None:
            yield from op.gen(fr)
        else:
            op.run(fr)
    row[2] = False


def _single(wait: Wait | None) -> list[Wait]:
    return [w for p in wait.parts for w in _single(p)] if isinstance(wait, Several) else [wait] if wait is not None else []


def _never_there(fr: Frame, wait: Wait, op: Op, buffer: str) -> None:
    """Report a role that the others wait for at a barrier which it does not reach (TL206)."""
    if not fr.run.checks:
        return
    loc, where = wait.loc, op.loc
    fr.run.findings.report(
        ("roles", loc and (loc.file, loc.line)), "TL206",
        f"deadlock on the device: this role waits for {wait.what()}, which the role at line {where.line if where else '?'} would bring "
        f"about; but both touch {buffer}, and between two such blocks TileLang puts a barrier of all threads: this role never gets there.",
        loc, fix="write the roles as the two sides of one condition: if T.get_thread_binding() < 128: … else: …", block=wait.block,
        evidence={"buffer": buffer, "waits_for": wait.what(), "other_line": where.line if where else None},
    )  # fmt: skip


def barriers_between(stmts: list[ir.Stmt]) -> tuple[str, ...]:
    """For each of some neighbouring branches: the shared buffer that it and one before it touch, at least one of them writing."""
    out, before = [], ({}, {})  # type: ignore[var-annotated]
    for s in stmts:
        reads, writes = _touched(s)
        met = [writes[d] for d in writes if d in before[0] or d in before[1]] + [reads[d] for d in reads if d in before[1]]
        out.append(met[0] if met else "")
        if met:
            before = ({}, {})
        before = ({**before[0], **reads}, {**before[1], **writes})
    return tuple(out)


def _touched(s: ir.Stmt) -> tuple[dict[ir.Var, str], dict[ir.Var, str]]:
    """Shared buffers that a statement reads and writes: data pointer → name."""
    reads: dict[ir.Var, str] = {}
    writes: dict[ir.Var, str] = {}
    for n in ir.walk(s):
        if not isinstance(n, ir.Load | ir.Store | ir.Region) or n.buffer.scope not in ("shared", "shared.dyn"):
            continue
        written = isinstance(n, ir.Store) or (isinstance(n, ir.Region) and "w" in n.access)
        (writes if written else reads)[n.buffer.data] = n.buffer.name
        if isinstance(n, ir.Region) and "r" in n.access:
            reads[n.buffer.data] = n.buffer.name
    return reads, writes
