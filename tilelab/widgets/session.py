"""The live face of a debugger session: its buttons move the session, and the session moves the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import traitlets

from tilelab.errors import EnvironmentLacks, TileLabError
from tilelab.views import html, trace_values, trace_view
from tilelab.views.view import encoded
from tilelab.widgets import ViewWidget

if TYPE_CHECKING:
    from tilelab.debugger import Session


class SessionWidget(ViewWidget):
    """A live trace view.

    Attributes:
        session: Where the session is: ``{"at", "hit", "breakpoints", "watches", "message"}``.
        fetched: The value last asked for because the view does not hold it: ``{"name", "step", "origin", "value"}``.
    """

    session = traitlets.Dict().tag(sync=True)
    fetched = traitlets.Dict().tag(sync=True)
    _stop: Callable[[], None] | None = None
    _of: Session | None = None

    @classmethod
    def of_session(cls, session: Session, **options: Any) -> SessionWidget:
        """Return a widget on ``session``; ``options`` are those of :func:`tilelab.views.trace`.

        Raises:
            EnvironmentLacks: The trace view was not built into this installation.
        """
        code = html.bundle("trace")
        if not code:
            raise EnvironmentLacks(
                "the live trace view was not built into this installation", fix="run `npm ci && npm run build` in visualizers/"
            )
        view = trace_view.of_session(session, **options)
        widget: Any = _class(code)(view=view.to_json(), session=told(session))
        widget._of = session
        widget._stop = session.listen(lambda moved: widget._show(moved))
        widget.on_msg(lambda _widget, content, _buffers: widget.receive(content))
        made: SessionWidget = widget
        return made

    def receive(self, content: Mapping[str, Any]) -> None:
        """Carry out what the front end asks: ``{"command": "s"}`` as in the terminal, or ``{"fetch": NAME, "step": N, "origin": […]}``."""
        if self._of is None:
            return
        try:
            if "fetch" in content:
                self._fetch(str(content["fetch"]), int(content["step"]), [int(o) for o in content.get("origin") or ()])
            else:
                act(self._of, str(content.get("command", "")))
        except TileLabError as error:
            self.session = {**told(self._of), "message": str(error)}

    def close(self) -> None:
        """Let the session go."""
        if self._stop is not None:
            self._stop()
        super().close()

    def _show(self, session: Session) -> None:
        self.session = told(session)

    def _fetch(self, name: str, step: int, asked: list[int]) -> None:
        assert self._of is not None
        buffers = {b["name"]: b for b in self.view["data"]["buffers"]}
        if name not in buffers or not 0 <= step < len(self._of) or name not in self._of.values(step):
            return
        origin, extent = buffers[name]["origin"], buffers[name]["extent"]
        if extent and len(asked) == len(extent):
            origin = [max(0, min(o, n - e)) for o, n, e in zip(asked, buffers[name]["shape"], extent, strict=True)]
        value = trace_values.part(self._of.values(step)[name], tuple(slice(o, o + n) for o, n in zip(origin, extent, strict=False)))
        self.fetched = {"name": name, "step": step, "origin": origin, "value": encoded(trace_values.value_record(value))}


@cache
def _class(code: str) -> type[SessionWidget]:
    return type("LiveSession", (SessionWidget,), {"_esm": code, "__module__": __name__})


def told(session: Session) -> dict[str, Any]:
    """Return what the front end shows of a session."""
    hit = session.here.hit
    points = trace_view.breakpoints(session)
    return {
        "at": session.here.index, "hit": next((p for p in points if hit is not None and p["number"] == hit.number), None),
        "breakpoints": points, "watches": trace_view.watched(session), "message": "",
    }  # fmt: skip


_MOVES: Mapping[str, Callable[[Any], Any]] = {
    "n": lambda s: s.over(), "o": lambda s: s.out(), "c": lambda s: s.cont(), "r": lambda s: s.reverse(),
}  # fmt: skip
_WITH_TEXT: Mapping[str, Callable[[Any, str], Any]] = {
    "s": lambda s, text: s.step(int(text or 1)), "b": lambda s, text: s.back(int(text or 1)), "g": lambda s, text: s.goto(int(text)),
    "k": lambda s, text: s.break_at(text), "K": lambda s, text: s.clear(int(text) if text else None),
    "w": lambda s, text: s.watch(text), "W": lambda s, text: s.unwatch(text),
}  # fmt: skip


def act(session: Session, command: str) -> None:
    """Carry out a command of the terminal on ``session``; what is not one, or holds no number where one belongs, is ignored.

    Raises:
        InputError: There is no such step, line or name.
    """
    word, _, text = command.partition(" ")
    if word in _MOVES:
        _MOVES[word](session)
    elif word in _WITH_TEXT and (word not in "sbgK" or not text.strip() or text.strip().isdigit()) and (word != "g" or text.strip()):
        _WITH_TEXT[word](session, text.strip())
