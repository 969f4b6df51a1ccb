"""How compiled statements follow one another: plain calls, generators where something waits, breaks out of loops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

from tilelab import ir
from tilelab.sim.lanes import Frame, both, some

Run = Callable[[Frame], None]
Gen = Callable[[Frame], Generator[Any, None, None]]


class Op(NamedTuple):
    """A compiled statement. Where ``gen`` is there, ``run`` must not be used."""

    run: Run
    gen: Gen | None = None
    role: Callable[[Frame], Any] | None = None  # which threads a branch by thread concerns
    loc: ir.SourceLoc | None = None  # of such a branch
    after: Callable[[Frame], Any] | None = None  # among roles: let the others run on after this, before the next statement


def nothing(fr: Frame) -> None:
    """Do nothing."""


def sequence(ops: Iterable[Op], *, breaks: bool = False) -> Op:
    """Run ``ops`` one after the other; with ``breaks``, lanes that left the loop are masked off in between."""
    ops = tuple(o for o in ops if o.run is not nothing)
    runs = tuple(o.run for o in ops)
    if not any(o.gen for o in ops):
        if breaks:
            return Op(_breaking(runs))
        if len(runs) == 1:
            return Op(runs[0])
        if not runs:
            return Op(nothing)

        def run(fr: Frame) -> None:
            for r in runs:
                r(fr)

        return Op(run)

    def gen(fr: Frame) -> Generator[Any, None, None]:
        for o in ops:
            if o.gen is not None:
                yield from o.gen(fr)
            else:
                o.run(fr)
                if o.after is not None and fr.role is not None and fr.record is None:
                    yield o.after(fr)
            if breaks and left(fr) and not narrow(fr):
                return

    return Op(runs[0], gen)


def left(fr: Frame) -> bool:
    """Whether some lane has left the loop, this turn of it, or the kernel."""
    return fr.live is not None or fr.skip is not None or fr.gone is not None


def narrow(fr: Frame) -> bool:
    """Mask off lanes that left; whether any lane remains."""
    for stay in (fr.live, fr.skip, fr.gone):
        if stay is False:
            return False
        fr.mask = both(fr.mask, stay)
    return fr.mask is None or some(fr.mask)


def _breaking(runs: tuple[Run, ...]) -> Run:
    def run(fr: Frame) -> None:
        for r in runs:
            r(fr)
            if left(fr) and not narrow(fr):
                return

    return run


LEAVES = frozenset({"tl.loop_break", "tirx.break_loop", "tirx.continue_loop"})


def breaks(body: ir.Body) -> bool:
    """Whether something in ``body`` leaves it early: a break or continue of the loop around, or a return from the kernel."""
    if any(isinstance(n, ir.Call) and n.op == "tirx.thread_return" for n in ir.walk(body)):
        return True
    for s in body:
        if isinstance(s, ir.Eval) and isinstance(s.value, ir.Call) and s.value.op in LEAVES:
            return True
        if isinstance(s, ir.If) and (breaks(s.then) or breaks(s.orelse)):
            return True
        if isinstance(s, ir.Block | ir.Attribute) and breaks(s.body):
            return True
    return False
