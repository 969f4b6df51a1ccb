"""Watching the compiler at work: the history of its passes, and the IR at the few places that others read."""

from __future__ import annotations

import time
from typing import Any

from tilelab.artifact import PassRecord

#: After these passes the module is kept: layouts stand there, and pipelines.
KEPT = frozenset({"tl.LayoutInference", "tl.PipelinePlanning"})
#: The last pass of planning only, for those who need no code.
LAYOUTS = "tl.LayoutInference"


class StopHere(Exception):
    """Raised to end lowering once what was asked for is there."""


class Watch:
    """A TVM pass instrument.

    Attributes:
        passes: What ran, in order, innermost passes included.
        start: The IR's text before the first pass, where texts are kept.
        kept: Name → the module after that pass, for :data:`KEPT`.
        last: The module before the pass that is running (or failed).
        running: Name of that pass.
        stopped: Lowering was ended on purpose, after the pass that was asked for.
    """

    def __init__(self, *, texts: bool = False, stop_after: str = "") -> None:
        self.passes: list[PassRecord] = []
        self.start = ""
        self.kept: dict[str, Any] = {}
        self.last: Any = None
        self.running = ""
        self.stopped = False
        self.instrument = _instrument(self)
        self._open: list[tuple[float, Any]] = []
        self._texts = texts
        self._stop_after = stop_after

    def before(self, mod: Any, name: str) -> None:
        """Note the module on which a pass starts."""
        if self._texts and not self.start:
            self.start = mod.script(show_meta=False)
        self.running, self.last = name, mod
        self._open.append((time.perf_counter(), mod))

    def after(self, mod: Any, name: str) -> None:
        """Record a pass that has ended with ``mod``."""
        import tvm

        started, previous = self._open.pop()
        seconds = time.perf_counter() - started
        changed = not tvm.ir.structural_equal(previous, mod)
        text = mod.script(show_meta=False) if changed and self._texts else ""
        if name != "pass_fn":
            self.passes.append(PassRecord(name=name, seconds=round(seconds, 6), changed=changed, after=text))
        if name in KEPT:
            self.kept[name] = mod
        if name == self._stop_after:
            self.stopped = True
            raise StopHere  # arrives as another exception, by way of C++


def _instrument(watch: Watch) -> Any:
    from tvm.ir.instrument import pass_instrument

    @pass_instrument
    class Instrument:
        def run_before_pass(self, mod: Any, info: Any) -> None:
            watch.before(mod, str(info.name))

        def run_after_pass(self, mod: Any, info: Any) -> None:
            watch.after(mod, str(info.name))

    return Instrument()
