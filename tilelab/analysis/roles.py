"""Roles written by hand: which statement of which iteration each warp role runs in which step, from the mbarriers they wait at.

Each role runs its main loop, the innermost one that waits at an mbarrier. In a step every role goes on until it has ended an iteration or
waits for a phase that was not complete when the step began; so a step is a round of "all that can run, runs". A phase is complete when
every role that arrives at that barrier has arrived as often as it does in an iteration. Thread-dependent conditions other than the roles'
own are taken as met by somebody, and so are those that depend on data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.analysis.expr import const_int
from tilelab.analysis.pipeline import Work, work_of_statement
from tilelab.analysis.shared import buffer_bytes
from tilelab.errors import InputError
from tilelab.layout import evaluate
from tilelab.schedule import Held, Schedule, ScheduledBuffer, ScheduledStatement, Slot

_SHOWN = 5
_WAITS = frozenset({"tl.mbarrier_wait_parity", "tirx.ptx_wait_barrier"})
_ARRIVES = frozenset({"tirx.ptx_arrive_barrier", "tl.ptx_arrive_cluster_barrier", "tirx.ptx_arrive_barrier_expect_tx"})
_Env = dict[Any, int]
_Key = tuple[str, int]  # barrier and which of its objects


@dataclass(frozen=True, slots=True)
class _Role:
    """The threads that run ``body``, and the loop of it that is shown (``path`` leads there)."""

    threads: tuple[int, int]
    body: ir.Body
    loop: ir.For
    path: frozenset[int]  # ids of statements around the loop


@dataclass(slots=True)
class _Barriers:
    """Completed phases, as seen at the beginning of the step and now."""

    needs: Mapping[_Key, Mapping[int, int]]  # role → arrivals a phase
    seen: Counter[_Key] = field(default_factory=Counter)
    done: Counter[_Key] = field(default_factory=Counter)
    here: dict[_Key, Counter[int]] = field(default_factory=dict)

    def arrive(self, key: _Key, role: int) -> None:
        here = self.here.setdefault(key, Counter())
        here[role] += 1
        needs = self.needs.get(key, {})
        if all(here[r] >= n for r, n in needs.items()):
            self.done[key] += 1
            here.subtract(needs)

    def opens(self, key: _Key, parity: int) -> bool:
        return key not in self.needs or self.seen[key] % 2 != parity % 2


def role_schedules(program: ir.Program, *, shown: int = 0) -> tuple[Schedule, ...]:
    """Return the schedule of each launch whose threads are divided by hand into roles that wait for each other.

    Args:
        program: A captured Program.
        shown: Iterations to lay out. Default: as many as the loop has, up to twice the versions of its buffers and one more.
    """
    return tuple(made for n in ir.walk(program) if isinstance(n, ir.Launch) and (made := _of_launch(n, shown)) is not None)


def _of_launch(launch: ir.Launch, shown: int) -> Schedule | None:
    roles = list(_roles(launch))
    if len(roles) < 2:
        return None
    counts = [const_int(r.loop.extent) or 0 for r in roles]
    total = min(counts) if all(counts) else 0
    deepest = max((_versions(b) for r in roles for b in _staged(r)), default=1)
    most = shown or max(_SHOWN, 2 * deepest + 1)
    count = min(total, most) if total else most
    return _Runner(launch, roles, count).schedule(total)


# ----------------------------------------------------------------------------------------------------- roles
def _roles(launch: ir.Launch) -> Iterator[_Role]:
    """The sides of thread-dependent branches whose main loop waits at an mbarrier."""
    extents = [const_int(e) or 1 for e in launch.threads]
    ids: dict[ir.Var, Any] = {}
    flat = np.arange(int(np.prod(extents)))
    for var, n in zip(launch.thread_vars, extents, strict=False):
        ids[var], flat = flat % n, flat // n
    everyone = np.ones(int(np.prod(extents)), dtype=bool)

    def sides(body: ir.Body, mask: Any, divided: bool) -> Iterator[_Role]:
        for s in body:
            if isinstance(s, ir.If) and (split := _threads_where(s.cond, ids)) is not None:
                yield from sides(s.then, mask & split, True)
                yield from sides(s.orelse, mask & ~split, True)
            elif isinstance(s, ir.Block | ir.Attribute):
                yield from sides(s.body, mask, divided)
            elif divided and (found := _main_loop((s,), ())) is not None:
                at = np.flatnonzero(mask)
                if len(at):
                    yield _Role((int(at[0]), int(at[-1])), body, *found)
                return

    yield from sides(launch.body, everyone, False)


def _threads_where(cond: ir.Expr, ids: Mapping[ir.Var, Any]) -> Any:
    """Which threads meet ``cond``, where it depends on the thread alone; else None."""
    if not any(isinstance(n, ir.Var) and n in ids for n in ir.walk(cond)):
        return None
    try:
        return np.broadcast_to(np.asarray(evaluate(cond, ids), dtype=bool), next(iter(ids.values())).shape)
    except (InputError, KeyError):
        return None


def _main_loop(body: ir.Body, around: tuple[int, ...]) -> tuple[ir.For, frozenset[int]] | None:
    """The innermost loop that waits, and what is around it."""
    for s in body:
        path = (*around, id(s))
        for inner in _inside(s):
            found = _main_loop(inner, path)
            if found is not None:
                return found
        if isinstance(s, ir.For) and s.kind == "serial" and any(_call(n) in _WAITS for n in ir.walk(s.body)):
            return s, frozenset(around)
    return None


def _inside(s: ir.Stmt) -> tuple[ir.Body, ...]:
    if isinstance(s, ir.If):
        return s.then, s.orelse
    return (s.body,) if isinstance(s, ir.Block | ir.Attribute | ir.For | ir.While) else ()


def _call(n: Any) -> str:
    return n.op if isinstance(n, ir.Call) else ""


def _staged(role: _Role) -> list[ir.Buffer]:
    found = {id(n.buffer.data): n.buffer for n in ir.walk(role.loop.body) if isinstance(n, ir.Region | ir.Load | ir.Store)}
    return [b for b in found.values() if b.scope.startswith("shared") and "barrier" not in b.scope]


def _versions(b: ir.Buffer) -> int:
    """Versions that ``b`` may hold: its first extent where it has more axes than a tile."""
    return const_int(b.shape[0]) or 1 if len(b.shape) > 2 else 1


# --------------------------------------------------------------------------------------------------- the run
class _Runner:
    """Runs the roles side by side and notes what ran when."""

    def __init__(self, launch: ir.Launch, roles: Sequence[_Role], count: int) -> None:
        self.launch, self.roles, self.count = launch, roles, count
        self.works: list[tuple[int, ir.Stmt, Work]] = []
        self.number: dict[int, int] = {}
        for k, role in enumerate(roles):
            for s in _flat(role.loop.body):
                w = work_of_statement(s)
                if (w.reads or w.writes) and not _is_scalar(w) and not _is_sync(s):
                    self.number[id(s)] = len(self.works)
                    self.works.append((k, s, w))
        self.slots: list[Slot] = []
        self.place: dict[tuple[int, int], tuple[int, _Env]] = {}  # (statement, iteration) → step and values of variables

    def schedule(self, total: int) -> Schedule | None:
        """Let the producers run as far ahead as they can, and the others begin in the step before that in which they would wait."""
        makers = {k for k, _, w in self.works if w.copies}
        ahead = self._run({k for k in range(len(self.roles)) if k not in makers}, None)
        others = {k for k in range(len(self.roles)) if k not in makers} if makers else set()
        self._run(others, max(0, ahead - 1))
        return self._made(total) if self.slots else None

    def _run(self, late: set[int], begin: int | None) -> int:
        """Run all roles, ``late`` ones from step ``begin`` on (None: never); return the step in which nobody could go on."""
        self.slots, self.place = [], {}
        barriers = _Barriers(self._needs())
        runs = [self._role(k, role, barriers) for k, role in enumerate(self.roles)]
        for run in runs:
            next(run)  # what stands before the loop
        barriers.seen = Counter(barriers.done)
        alive = {k: run for k, run in enumerate(runs) if begin is not None or k not in late}
        for step in range(8 * (self.count + len(runs)) + 64):
            before = (len(self.slots), sum(barriers.done.values()))
            told = {k: run.send(step) for k, run in list(alive.items()) if k not in late or step >= (begin or 0)}
            alive = {k: run for k, run in alive.items() if told.get(k) != "ended"}
            fresh = barriers.done != barriers.seen
            barriers.seen = Counter(barriers.done)
            waiting = begin is not None and step < begin
            if not alive or not (fresh or waiting or (len(self.slots), sum(barriers.done.values())) != before):
                return step + (not alive)
        return 0

    def _role(self, k: int, role: _Role, barriers: _Barriers) -> Generator[str, int, None]:
        """A generator that gets the step and answers "waits", "went on" or "ended"."""
        env: _Env = {}
        for s in self._before(role, role.body, env):
            for key in _sites(s, _ARRIVES, env):
                barriers.arrive(key, k)
        step = yield "ready"
        for i in range(self.count):
            env[role.loop.var] = (const_int(role.loop.min) or 0) + i
            for s in self._taken(role.loop.body, env):
                while any(not barriers.opens(key, parity) for key, parity in _waits(s, env)):
                    step = yield "waits"
                for key in _sites(s, _ARRIVES, env):
                    barriers.arrive(key, k)
                if id(s) in self.number:
                    n = self.number[id(s)]
                    self.slots.append(Slot(step=step, statement=n, iteration=i))
                    self.place[n, i] = (step, dict(env))
            step = yield "went on" if i + 1 < self.count else "ended"

    def _before(self, role: _Role, body: ir.Body, env: _Env) -> Iterator[ir.Stmt]:
        """What a role runs before its loop, as far as it can be known; stops at the loop."""
        for s in body:
            if s is role.loop:
                return
            if id(s) in role.path:
                if isinstance(s, ir.For):
                    env[s.var] = const_int(s.min) or 0
                for inner in _inside(s):
                    if any(n is role.loop for n in ir.walk(inner)):
                        yield from self._before(role, inner, env)
                return
            yield from self._taken((s,), env)

    def _taken(self, body: ir.Body, env: _Env) -> Iterator[ir.Stmt]:
        """The statements that run, conditions that are known decided, loops and tile operations as one."""
        for s in body:
            if isinstance(s, ir.Bind):
                _set(env, s.var, _value(s.value, env))
            elif isinstance(s, ir.If):
                known = _value(s.cond, env)
                yield from self._taken(s.orelse if known == 0 else s.then, env)
            elif isinstance(s, ir.Block | ir.Attribute):
                yield from self._taken(s.body, env)
            else:
                if isinstance(s, ir.Store) and s.buffer.scope.startswith("local.var"):
                    _set(env, s.buffer.data, _value(s.value, env))
                yield s

    def _needs(self) -> dict[_Key, dict[int, int]]:
        """How often each role arrives at each barrier in an iteration, at most."""
        out: dict[_Key, dict[int, int]] = {}
        for k, role in enumerate(self.roles):
            env: _Env = {}
            for s in self._before(role, role.body, env):
                for key in _sites(s, _ARRIVES, env):
                    out.setdefault(key, {}).setdefault(k, 1)
            for i in range(self.count):
                env[role.loop.var] = (const_int(role.loop.min) or 0) + i
                here = Counter(key for s in self._taken(role.loop.body, env) for key in _sites(s, _ARRIVES, env))
                for key, n in here.items():
                    of = out.setdefault(key, {})
                    of[k] = max(of.get(k, 0), n)
        return out

    # --------------------------------------------------------------------------------------------- the record
    def _made(self, total: int) -> Schedule:
        lanes = [_lane(role, [w for k, _, w in self.works if k == n]) for n, role in enumerate(self.roles)]
        first: dict[int, int] = {}
        for slot in self.slots:
            first[slot.statement] = min(first.get(slot.statement, slot.step), slot.step - slot.iteration)
        lead = min(first.values(), default=0)
        statements = tuple(
            ScheduledStatement(
                text=w.text, lane=lanes[k], stage=max(0, first.get(n, 0) - lead), order=n, reads=tuple(b.name for b in w.reads),
                writes=tuple(b.name for b in w.writes), loc=w.loc, is_async=w.copies,
            )
            for n, (k, _, w) in enumerate(self.works)
        )  # fmt: skip
        buffers, held = self._held()
        ahead = self.roles[0].loop
        slots = tuple(sorted(self.slots, key=lambda s: (s.step, s.statement)))
        depth = max((b.versions for b in buffers), default=1)
        return Schedule(
            loop=ahead.var.name, loc=ahead.loc, basis="hand-roles", num_stages=depth, iterations=total, shown=self.count,
            lanes=tuple(lanes), statements=statements, slots=slots, buffers=buffers, held=held,
        )  # fmt: skip

    def _held(self) -> tuple[tuple[ScheduledBuffer, ...], tuple[Held, ...]]:
        """Shared buffers that one role fills and another reads: what each version holds, from the write to the last read."""
        buffers, held = [], []
        for b in {id(b.data): b for _, _, w in self.works for b in w.writes if b.scope.startswith("shared")}.values():
            writers = [n for n, (_, _, w) in enumerate(self.works) if any(x.data is b.data for x in w.writes)]
            filling = [n for n in writers if self.works[n][2].copies] or writers
            makers = {self.works[n][0] for n in filling}
            readers = [n for n, (k, _, w) in enumerate(self.works) if k not in makers and any(x.data is b.data for x in w.reads)]
            if not readers:
                continue
            found: list[Held] = []
            for i in range(self.count):
                wrote = [self.place[n, i] for n in filling if (n, i) in self.place]
                read = [self.place[n, i][0] for n in readers if (n, i) in self.place]
                if wrote:
                    step, env = min(wrote, key=lambda p: p[0])
                    version = _version(self.works[filling[0]][1], b, env)
                    last = max(read, default=max(s.step for s in self.slots))
                    found.append(
                        Held(buffer=b.name, version=version, iteration=i, written=step, read=min(read, default=last), last=max(step, last))
                    )
            versions = max((h.version for h in found), default=0) + 1
            size = buffer_bytes(b) or 0
            each = size // _versions(b) if versions > 1 else size
            buffers.append(ScheduledBuffer(name=b.name, dtype=b.dtype, scope=b.scope, version_bytes=each, versions=versions))
            held += found
        return tuple(buffers), tuple(held)


def _flat(body: ir.Body) -> Iterator[ir.Stmt]:
    """The statements of a loop, branches and blocks opened, loops and tile operations as one."""
    for s in body:
        if isinstance(s, ir.If):
            yield from _flat(s.then)
            yield from _flat(s.orelse)
        elif isinstance(s, ir.Block | ir.Attribute):
            yield from _flat(s.body)
        elif not isinstance(s, ir.Bind | ir.Declare):
            yield s


def _is_scalar(w: Work) -> bool:
    """Whether a statement only counts, or only touches barriers."""
    return all("var" in b.scope or "barrier" in b.scope for b in w.writes) and not any(
        b.scope.startswith("shared") and "barrier" not in b.scope for b in w.reads
    )


def _is_sync(s: ir.Stmt) -> bool:
    return isinstance(s, ir.Eval) and (_call(s.value) in _WAITS or _call(s.value) in _ARRIVES)


def _waits(s: ir.Stmt, env: _Env) -> list[tuple[_Key, int]]:
    out = []
    for call in _calls(s, _WAITS):
        parity = _value(call.args[1], env) if len(call.args) > 1 else None
        key = _key(call.args[0], env)
        if key is not None and parity is not None:
            out.append((key, parity))
    return out


def _sites(s: ir.Stmt, ops: frozenset[str], env: _Env) -> list[_Key]:
    return [key for call in _calls(s, ops) if (key := _key(call.args[0], env)) is not None]


def _calls(s: ir.Stmt, ops: frozenset[str]) -> list[ir.Call]:
    return [n for n in ir.walk(s) if isinstance(n, ir.Call) and n.op in ops]


def _key(e: ir.Expr, env: _Env) -> _Key | None:
    load = next((n for n in ir.walk(e) if isinstance(n, ir.Load)), None)
    at = _value(load.indices[0], env) if load is not None else None
    return (load.buffer.name, at) if load is not None and at is not None else None


def _version(s: ir.Stmt, b: ir.Buffer, env: _Env) -> int:
    for n in ir.walk(s):
        if isinstance(n, ir.Region) and n.buffer.data is b.data and len(b.shape) > 2 and const_int(n.extents[0]) == 1:
            return _value(n.mins[0], env) or 0
        if isinstance(n, ir.Store) and n.buffer.data is b.data and len(b.shape) > 2:
            return _value(n.indices[0], env) or 0
    return 0


def _value(e: ir.Expr, env: _Env) -> int | None:
    if isinstance(e, ir.Load):
        return env.get(e.buffer.data) if e.buffer.scope.startswith("local.var") else None
    known = {v: env[v] for v in ir.walk(e) if isinstance(v, ir.Var) and v in env}
    if any(isinstance(n, ir.Load) for n in ir.walk(e)):
        e = _filled(e, env)
    try:
        return int(evaluate(e, known))
    except (InputError, KeyError, TypeError, ZeroDivisionError):
        return None


def _filled(e: ir.Expr, env: _Env) -> ir.Expr:
    """``e`` with the scalars that are known put in."""
    if isinstance(e, ir.Load):
        value = _value(e, env)
        return e if value is None else ir.Const(dtype=e.dtype, value=value)
    if isinstance(e, ir.Bin):
        return ir.Bin(dtype=e.dtype, op=e.op, a=_filled(e.a, env), b=_filled(e.b, env))
    if isinstance(e, ir.Call):
        return ir.Call(dtype=e.dtype, op=e.op, args=tuple(_filled(a, env) for a in e.args), attrs=e.attrs)
    if isinstance(e, ir.Select):
        return ir.Select(dtype=e.dtype, cond=_filled(e.cond, env), a=_filled(e.a, env), b=_filled(e.b, env))
    return ir.Cast(dtype=e.dtype, a=_filled(e.a, env)) if isinstance(e, ir.Cast) else e


def _set(env: _Env, var: Any, value: int | None) -> None:
    if value is None:
        env.pop(var, None)
    else:
        env[var] = value


def _lane(role: _Role, works: Sequence[Work]) -> str:
    """``producer 256–287``: what the role does, and its threads."""
    makes = any(w.copies for w in works) and not any(w.lane == "compute" and not w.copies for w in works)
    return f"{'producer' if makes else 'consumer'} {role.threads[0]}–{role.threads[1]}"
