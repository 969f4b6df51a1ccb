"""Proofs over all blocks and all sizes: is every access in bounds, do blocks or parallel iterations ever collide (z3)?

:func:`prove` answers each question with a proof, a counterexample ("out of bounds when N = 129, bx = 1, i = 1"), or, within
its time limit, neither. Symbolic sizes are any from 1 on; loaded indices are any that their dtype holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, Literal

from tilelab import ir
from tilelab.analysis.accesses import Access, Binding, Guard, accesses, written
from tilelab.analysis.expr import const_int
from tilelab.analysis.smt import Smt, World
from tilelab.analysis.text import element, text
from tilelab.errors import EnvironmentLacks
from tilelab.finding import Finding, finding

Kind = Literal["bounds", "race", "injective"]
_LANES = ("local", "local.var")  # each thread has its own
_NO_ANSWER = "z3 finds no answer in time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One question and its answer.

    Attributes:
        kind: ``"bounds"``, ``"race"`` (no two blocks or iterations collide) or ``"injective"`` (a layout maps no two elements together).
        holds: True if proved, False if refuted by ``example``, None if neither.
        what: What was asked, in words.
        example: Values of sizes, block indices and loop variables that refute it.
        message: What happens there.
        reason: Why there is no answer, where there is none.
        data: Whether the example needs certain values in memory.
        scope: Scope of the buffer.
        loc: The line.
    """

    kind: Kind
    holds: bool | None
    what: str
    example: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    reason: str = ""
    data: bool = False
    scope: str = ""
    loc: ir.SourceLoc | None = None

    def __str__(self) -> str:
        """One line: ``proved: …``, ``refuted: … when N = 129, bx = 1, i = 1`` or ``open: … (reason)``."""
        if self.holds is None:
            return f"open: {self.what} ({self.reason})"
        return f"proved: {self.what}" if self.holds else f"refuted: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The claims about one Program, in the order of the source, and the time they took."""

    claims: tuple[Claim, ...]
    seconds: float

    @property
    def refuted(self) -> tuple[Claim, ...]:
        """The claims that are false."""
        return tuple(c for c in self.claims if c.holds is False)

    def findings(self) -> tuple[Finding, ...]:
        """The refuted claims as findings: TL101 (TL102 in global memory, where the access is masked), TL201, TL404."""
        return tuple(_finding(c) for c in self.refuted)


def prove(program: ir.Program, *, time_limit_s: float = 10.0, query_limit_s: float = 2.0) -> Proof:
    """Try to prove that ``program`` stays in bounds, has no races between blocks or iterations, and injective layouts.

    Args:
        program: A captured tile-level Program.
        time_limit_s: For everything together; what is not decided by then stays open.
        query_limit_s: For one question.

    Raises:
        EnvironmentLacks: z3 cannot be imported.
    """
    start = time.monotonic()
    found = accesses(program)
    try:
        smt = Smt(program, {a.buffer.data for a in found} - written(program))
    except ImportError as error:
        raise EnvironmentLacks(f"z3 cannot be imported: {error}", fix="pip install z3-solver (it comes with TileLang)") from None
    prover = _Prover(smt, start + time_limit_s, query_limit_s)
    bounds = (*prover.bounds(found),)
    races = (*prover.between_blocks(found, program), *prover.within_spaces(found), *prover.between_threads(found))
    claims = (*bounds, *races, *_layouts(program))
    return Proof(claims=claims, seconds=time.monotonic() - start)


class _Prover:
    def __init__(self, smt: Smt, deadline: float, query_limit_s: float) -> None:
        self.smt, self.deadline, self.query_limit_s = smt, deadline, query_limit_s

    def left_ms(self) -> int:
        return int(1000 * min(self.query_limit_s, self.deadline - time.monotonic()))

    def ask(self, claim: dict[str, Any], worlds: tuple[World, ...], conditions: list[Any]) -> tuple[Claim | None, Any]:
        """Look for an execution in which ``conditions`` hold: the finished claim if there is none, else the model."""
        if self.left_ms() <= 0:
            return Claim(**claim, holds=None, reason="the time limit is reached"), None
        known = [k for w in worlds for k in w.known]
        answer, solver = self.smt.model([*known, *conditions], self.left_ms())
        if answer == "unsat":
            return Claim(**claim, holds=True), None
        if answer != "sat":
            return Claim(**claim, holds=None, reason=_NO_ANSWER), None
        if any(w.inexact for w in worlds):
            return Claim(**claim, holds=None, reason="it depends on arithmetic on bits or floats that is not modelled"), None
        small = [*self.smt.variables.values(), *(v for w in worlds for _, v in w.shown)]
        return None, self.smt.smallest(solver, small, self.left_ms)

    def again(self, make: Callable[[], Claim]) -> Claim:
        """A claim; where z3 does not decide it, once more with products of sizes as unknowns."""
        claim = make()
        if claim.holds is not None or claim.reason != _NO_ANSWER:
            return claim
        try:
            for light in (True, False):
                self.smt.begin(abstract=True, light=light)
                simpler = make()
                if simpler.holds:
                    return simpler
        finally:
            self.smt.begin(abstract=False)
        return claim

    # -------------------------------------------------------------------------------------------- bounds
    def bounds(self, found: tuple[Access, ...]) -> Iterator[Claim]:
        seen: set[tuple[Any, ...]] = set()
        for a in found:
            key = (a.buffer, text_of(a), a.frames, a.stmt.loc)
            if a.buffer.shape and len(a.mins) == len(a.buffer.shape) and key not in seen:
                seen.add(key)
                yield self.again(partial(self._bounds, a))

    def _bounds(self, a: Access) -> Claim:
        z3 = self.smt.z3
        world = World(solver=self.smt).enter(a.frames)
        where = text_of(a)
        claim: dict[str, Any] = {
            "kind": "bounds",
            "what": f"{where} stays within {a.buffer.name}",
            "scope": a.buffer.scope,
            "loc": a.stmt.loc,
        }
        edges = [self._edges(world, a, axis) for axis in range(len(a.mins))]
        bad = z3.Or(*(z3.Or(low < 0, high >= size) for low, high, size in edges))
        nonempty = [high >= low for low, high, _ in edges]
        done, model = self.ask(claim, (world,), [bad, *nonempty])
        if done:
            return done
        example = self._example(model, (world,), _mentioned(a))
        for axis, (low, high, size) in enumerate(edges):
            lo, hi, n = (model.eval(t, model_completion=True).as_long() for t in (low, high, size))
            if lo < 0 or hi >= n:
                index = lo if lo < 0 else max(lo, n)
                place = f"index {index}" + (f" of axis {axis}" if len(edges) > 1 else "")
                message = f"{where} is out of bounds when {_when(example)}: {place}, where the size is {n}"
                return Claim(**claim, holds=False, example=example, message=message, data=bool(world.data))
        return Claim(**claim, holds=None, reason="z3 gave an inconsistent model")

    def _edges(self, world: World, a: Access, axis: int) -> tuple[Any, Any, Any]:
        """First and last index along ``axis``, and the size."""
        index, size = a.mins[axis], world.integer(a.buffer.shape[axis])
        if isinstance(index, ir.Ramp):
            base, last = world.integer(index.base), world.integer(index.base) + world.integer(index.stride) * (index.lanes - 1)
            return base, last, size
        low = world.integer(index)
        return low, (low + world.integer(a.extents[axis]) - 1 if a.extents else low), size

    # -------------------------------------------------------------------------------------------- races
    def between_blocks(self, found: tuple[Access, ...], program: ir.Program) -> Iterator[Claim]:
        """No two blocks of a launch write, or write and read, one element of global memory."""
        ordered = {c.op for c in ir.walk(program) if isinstance(c, ir.Call)} & {"tl.sync_grid", "tl.atomic_load_elem_op"}
        groups: dict[tuple[ir.Launch, ir.Buffer], list[Access]] = {}
        for a in found:
            if a.launch is not None and a.buffer.scope == "global":
                groups.setdefault((a.launch, a.buffer), []).append(a)
        for (launch, buffer), group in groups.items():
            if all(const_int(n) == 1 for n in launch.grid) or all(a.mode == "r" for a in group):
                continue
            for a, b in _colliding(group):
                claim: dict[str, Any] = {
                    "kind": "race",
                    "what": f"no two blocks meet in {_pair(a, b)}",
                    "scope": buffer.scope,
                    "loc": a.stmt.loc,
                }
                if ordered:
                    yield Claim(
                        **claim, holds=None, reason="the blocks wait for each other, which orders them in ways that are not modelled"
                    )
                    continue
                depth = a.frames.index(launch)
                yield self.again(partial(self._meet, claim, a, b, depth, launch.block_vars, "blocks"))

    def within_spaces(self, found: tuple[Access, ...]) -> Iterator[Claim]:
        """No two iterations of one parallel loop write, or write and read, one element."""
        groups: dict[tuple[ir.For, ir.Buffer], list[Access]] = {}
        for a in found:
            if a.space is not None and a.buffer.scope not in _LANES:
                groups.setdefault((a.space, a.buffer), []).append(a)
        for (space, buffer), group in groups.items():
            for a, b in _colliding(group):
                claim: dict[str, Any] = {
                    "kind": "race",
                    "what": f"no two iterations meet in {_pair(a, b)}",
                    "scope": buffer.scope,
                    "loc": a.stmt.loc,
                }
                at = a.frames.index(space)
                common = [f.var for f in a.frames[at:] if isinstance(f, ir.For) and f.kind == "parallel" and f in b.frames]
                yield self.again(partial(self._meet, claim, a, b, at, tuple(common), "iterations"))

    def between_threads(self, found: tuple[Access, ...]) -> Iterator[Claim]:
        """No two threads write one element in one statement whose place or value depends on the thread."""
        for a in found:
            launch = a.launch
            if launch is None or a.space is not None or a.mode != "w" or not isinstance(a.stmt, ir.Store):
                continue
            if a.buffer.scope in (*_LANES, "local.fragment") or not _varies(a, launch.thread_vars):
                continue
            claim: dict[str, Any] = {
                "kind": "race",
                "what": f"no two threads meet in {text_of(a)}",
                "scope": a.buffer.scope,
                "loc": a.stmt.loc,
            }
            one, two = (World(solver=self.smt, suffix=mark).enter(a.frames) for mark in ("'", '"'))
            together = [one.values[v] == two.values[v] for v in _loop_variables(a) if v not in launch.thread_vars]
            one.known += together
            yield self._collide(claim, a, a, one, two, launch.thread_vars, "threads")

    def _meet(self, claim: dict[str, Any], a: Access, b: Access, depth: int, apart: tuple[ir.Var, ...], who: str) -> Claim:
        """Two executions that share the first ``depth`` frames."""
        shared = World(solver=self.smt).enter(a.frames[:depth])
        one, two = shared.fork("'").enter(a.frames[depth:]), shared.fork('"').enter(b.frames[depth:])
        return self._collide(claim, a, b, one, two, apart, who)

    def _collide(self, claim: dict[str, Any], a: Access, b: Access, one: World, two: World, apart: tuple[ir.Var, ...], who: str) -> Claim:
        z3 = self.smt.z3
        conditions = [z3.Or(*(one.values[v] != two.values[v] for v in apart))]
        first = []
        for axis in range(len(a.mins)):
            i, j = self._some_index(one, a, axis), self._some_index(two, b, axis)
            size = one.integer(a.buffer.shape[axis])
            conditions += [i == j, i >= 0, i < size]
            first.append(i)
        done, model = self.ask(claim, (one, two), conditions)
        if done:
            return done
        example = self._example(model, (one, two), _mentioned(a) | _mentioned(b) | set(apart))
        place = ", ".join(str(model.eval(i, model_completion=True)) for i in first)
        sides = [", ".join(f"{v.name} = {model.eval(w.values[v], model_completion=True)}" for v in apart) for w in (one, two)]
        sizes = {k: v for k, v in example.items() if k in {x.name for x in self.smt.variables}}
        when = f" when {_when(sizes)}" if sizes else ""
        verb = "both write" if a.mode == b.mode == "w" else "write and read" if "r" in (a.mode, b.mode) else "write"
        message = f"{who} {sides[0]} and {sides[1]} {verb} {a.buffer.name}[{place}]{when}"
        data = bool(one.data or two.data)
        if data:
            return Claim(**claim, holds=None, example=example, message=message, data=True, reason="it depends on values in memory")
        return Claim(**claim, holds=False, example=example, message=message)

    def _some_index(self, world: World, a: Access, axis: int) -> Any:
        """Any index that the access touches along ``axis``."""
        index = a.mins[axis]
        if isinstance(index, ir.Ramp):
            k = self.smt.fresh("lane")
            world.known += [k >= 0, k < index.lanes]
            return world.integer(index.base) + world.integer(index.stride) * k
        low = world.integer(index)
        if not a.extents or const_int(a.extents[axis]) == 1:
            return low
        k = self.smt.fresh("offset")
        world.known += [k >= 0, k < world.integer(a.extents[axis])]
        return low + k

    # -------------------------------------------------------------------------------------------- examples
    def _example(self, model: Any, worlds: tuple[World, ...], mentioned: set[ir.Var]) -> dict[str, Any]:
        """Sizes, then the block and loop variables that matter (a pair where two executions differ), then loaded values."""
        z3 = self.smt.z3
        values: dict[str, Any] = {v.name: model.eval(t, model_completion=True).as_long() for v, t in self.smt.variables.items()}
        for world in worlds:
            for var, t in world.shown:
                got = model.eval(t, model_completion=True).as_long()
                if var in mentioned:
                    old = values.get(var.name, got)
                    values[var.name] = old if old == got or isinstance(old, tuple) else (old, got)
        for world in worlds:
            for what, t in world.data:
                got = model.eval(t, model_completion=True)
                values[what] = z3.is_true(got) if z3.is_bool(got) else got.as_long()
        return values


# ------------------------------------------------------------------------------------------------ layouts
def _layouts(program: ir.Program) -> Iterator[Claim]:
    """No layout that the kernel annotates sends two elements to one place (decided by trying all)."""
    import numpy as np

    from tilelab.errors import InputError
    from tilelab.layout import evaluate

    for s in ir.walk(program):
        attr = s.attrs.get("layout_map") if isinstance(s, ir.Block) else None
        for key, value in attr.items if isinstance(attr, ir.AttrMap) else ():
            shape = [const_int(e) for e in value.shape] if isinstance(value, ir.IndexMap) else [None]
            claim: dict[str, Any] = {
                "kind": "injective",
                "what": f"the layout of {getattr(key, 'name', key)} is injective",
                "scope": "",
                "loc": s.loc,
            }
            sizes = [n for n in shape if n is not None]
            if not isinstance(value, ir.IndexMap) or len(sizes) < len(shape) or np.prod(sizes) > 1 << 22:
                yield Claim(**claim, holds=None, reason="its shape is not constant, or too big to try")
                continue
            env: dict[ir.Var, Any] = dict(zip(value.params, np.indices(sizes).reshape(len(sizes), -1), strict=True))
            if value.replicate is not None:
                env[value.replicate] = np.zeros_like(env[value.params[0]])
            try:
                places = [np.broadcast_to(evaluate(e, env), env[value.params[0]].shape) for e in (*value.index, *_thread(value))]
            except InputError as error:
                yield Claim(**claim, holds=None, reason=str(error))
                continue
            _, first, inverse = np.unique(np.stack(places), axis=1, return_index=True, return_inverse=True)
            twice = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(places[0].size))
            if twice.size == 0:
                yield Claim(**claim, holds=True)
                continue
            pair = [np.unravel_index(int(k), sizes) for k in (first[inverse.reshape(-1)[twice[0]]], twice[0])]
            one, two = (tuple(int(i) for i in p) for p in pair)
            at = tuple(int(p[twice[0]]) for p in places)
            message = f"the layout sends elements {one} and {two} of {getattr(key, 'name', key)} to the same place {at}"
            yield Claim(**claim, holds=False, example={"elements": (one, two), "place": at}, message=message)


def _thread(m: ir.IndexMap) -> tuple[ir.Expr, ...]:
    return (m.thread,) if m.thread is not None else ()


# ------------------------------------------------------------------------------------------------ words
def text_of(a: Access) -> str:
    """The element or box of an access: ``A[bx * 128 + i]``, ``A[by * 64 : + 64, 0 : + 32]``."""
    if not a.extents:
        return element(a.buffer, a.mins)
    parts = (text(m) if const_int(x) == 1 else f"{text(m)} : + {text(x)}" for m, x in zip(a.mins, a.extents, strict=True))
    return f"{a.buffer.name}[{', '.join(parts)}]"


def _colliding(group: list[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses that must not meet, each text once: a write with a write or a read, or with an atomic."""
    seen: set[tuple[Any, ...]] = set()
    for a, b in combinations_with_replacement(group, 2):
        modes = {a.mode, b.mode}
        if "w" not in modes:
            continue
        if a.mode != "w":
            a, b = b, a
        key = (text_of(a), a.mode, a.frames, text_of(b), b.mode, b.frames)
        if key not in seen:
            seen.add(key)
            yield a, b


def _loop_variables(a: Access) -> list[ir.Var]:
    launches = [v for f in a.frames if isinstance(f, ir.Launch) for v in (*f.block_vars, *f.thread_vars)]
    return launches + [f.var for f in a.frames if isinstance(f, ir.For)]


def _varies(a: Access, threads: tuple[ir.Var, ...]) -> bool:
    """Whether the place, the guards or the value of a store mention a thread index (through bindings too)."""
    varying = set(threads)
    for f in a.frames:
        if isinstance(f, Binding) and any(n in varying for n in ir.walk(f.value) if isinstance(n, ir.Var)):
            varying.add(f.var)
    guards = [f.cond for f in a.frames if isinstance(f, Guard)]
    value = (a.stmt.value,) if isinstance(a.stmt, ir.Store) else ()
    decisive = (*a.mins, *value)
    mentions = any(n in varying for e in decisive for n in ir.walk(e) if isinstance(n, ir.Var))
    constant = isinstance(a.stmt, ir.Store) and isinstance(a.stmt.value, ir.Const)
    guarded = any(n in varying for e in guards for n in ir.walk(e) if isinstance(n, ir.Var))
    return (mentions or guarded) and not constant


def _mentioned(a: Access) -> set[ir.Var]:
    """The variables that an access, its loops and its conditions name."""
    decisive: list[ir.Expr] = [*a.mins, *a.extents]
    for f in a.frames:
        if isinstance(f, ir.For):
            decisive += [f.min, f.extent]
        elif isinstance(f, Guard):
            decisive.append(f.cond)
        elif isinstance(f, Binding):
            decisive.append(f.value)
    return {n for e in decisive for n in ir.walk(e) if isinstance(n, ir.Var)}


def _pair(a: Access, b: Access) -> str:
    one, two = text_of(a), text_of(b)
    return one if one == two else f"{one} and {two}"


def _when(example: Mapping[str, Any]) -> str:
    shown = ((k, v) for k, v in example.items())
    return ", ".join(f"{k} = {' and '.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in shown) or "always"


def _finding(c: Claim) -> Finding:
    code = {"bounds": "TL102" if c.scope == "global" else "TL101", "race": "TL201", "injective": "TL404"}[c.kind]
    fix = {
        "TL101": "Change the index or the buffer's shape, or guard the access with an if.",
        "TL102": "The device skips such a write and reads zero; guard the access if zero is not what you want.",
        "TL201": "Give every block and iteration an element of its own, or use T.atomic_add or a reduction.",
        "TL404": "Change the layout so that every element has its own place.",
    }[code]
    loc = {"file": c.loc.file, "line": c.loc.line} if c.loc else {}
    severity = {"severity": "warning"} if c.data else {}
    return finding(
        code, f"{c.message[:1].upper()}{c.message[1:]}.", fix=fix, indices=dict(c.example), evidence={"proved_by": "z3"}, **loc, **severity
    )
