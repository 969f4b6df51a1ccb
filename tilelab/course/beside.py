"""A learner's kernel beside the target: layouts, pipeline, resources (and memory, where that view is there), and the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from tilelab.errors import InputError, TileLabError
from tilelab.finding import KernelRefused
from tilelab.grader.report import amount

if TYPE_CHECKING:
    from tilelab.course.card import Puzzle

KINDS = ("layout", "pipeline", "resources", "memory")
_WORDS = {
    "en": {"yours": "yours", "target": "target", "best": "best known", "none": "nothing to show", "layout": "layout",
           "pipeline": "pipeline", "resources": "resources", "memory": "memory", "counts": "counts"},
    "zh": {"yours": "你的", "target": "目标", "best": "目前最好", "none": "没有可显示的", "layout": "布局",
           "pipeline": "流水线", "resources": "资源", "memory": "访存", "counts": "计数"},
}  # fmt: skip


class Beside:
    """Pictures of a kernel and of the target, side by side; they are drawn when this is shown.

    Attributes:
        views: Kind → (view of the kernel, view of the target), each None where there is none.
        counts: Figure → (the kernel's, the best known).
    """

    def __init__(self, puzzle: Puzzle, kernel: Any) -> None:
        self.lang = puzzle.lang
        self.title = puzzle.title(self.lang)
        mine, target = _source(puzzle, kernel), _target(puzzle)
        self.views: Mapping[str, tuple[Any, Any]] = {
            kind: (_view(puzzle, kind, mine), _view(puzzle, kind, target)) for kind in _kinds(puzzle)
        }
        self.counts = _counts(puzzle, mine)

    def to_text(self) -> str:
        """Return it as text: the kernel's picture, then the target's."""
        say, lines = _WORDS[self.lang], [self.title]
        for kind, pair in self.views.items():
            for who, view in zip(("yours", "target"), pair, strict=True):
                lines += [f"— {say[kind]}, {say[who]}", view.to_text() if view is not None else say["none"]]
        lines += [f"{n}: {amount(a)}, {say['best']} {amount(b)}" for n, (a, b) in self.counts.items()]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return it as an HTML fragment of static pictures."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        say = _WORDS[self.lang]
        cell = 'style="text-align:left;vertical-align:top;max-width:50%;padding:.3em"'
        heads = f"<th></th><th {cell}>{say['yours']}</th><th {cell}>{say['target']}</th>"
        yield f'<table class="tl-beside" style="table-layout:auto"><tr>{heads}</tr>'
        for kind, pair in self.views.items():
            cells = "".join(f"<td {cell}>{view.to_svg() if view is not None else escape(say['none'])}</td>" for view in pair)
            yield f"<tr data-kind={kind}><th {cell}>{say[kind]}</th>{cells}</tr>"
        for name, (mine, best) in self.counts.items():
            yield f"<tr><th {cell}>{escape(name)}</th><td {cell}>{amount(mine)}</td><td {cell}>{amount(best)} ({say['best']})</td></tr>"
        yield "</table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def __repr__(self) -> str:
        return self.to_text()


def _kinds(puzzle: Puzzle) -> tuple[str, ...]:
    from tilelab import view

    return ("layout",) if puzzle.spec.layout is not None else tuple(k for k in KINDS if hasattr(view, k))


def _source(puzzle: Puzzle, kernel: Any) -> Any:
    """What is drawn of a kernel: its Program at the counted sizes; of a layout puzzle the layout that the function returns."""
    from tilelab.grader.grading import read_frame, receive
    from tilelab.grader.wire import parse
    from tilelab.grader.worker import capture_one

    spec = puzzle.spec
    item = receive(read_frame(*parse(capture_one(kernel, dict(spec.count_sizes), layout=spec.layout is not None))[0]))
    if not hasattr(item, "body"):
        raise InputError(f"{spec.entry} cannot be drawn: {getattr(item, 'message', '')}", fix="check it first")
    return item


def _target(puzzle: Puzzle) -> Any:
    from tilelab.grader.grading import own_program

    return own_program(puzzle.spec, "solution.py") if (puzzle.folder / "solution.py").is_file() else None


def _view(puzzle: Puzzle, kind: str, source: Any) -> Any:
    if source is None:
        return None
    from tilelab import view
    from tilelab.grader.layouts import layout_of
    from tilelab.grader.rules import Unfit

    spec = puzzle.spec
    try:
        if spec.layout is not None:
            source = layout_of(source, spec, spec.count_sizes)
        made = getattr(view, kind)(source, target=spec.arch, lang=puzzle.lang)
        made.to_svg()  # a view may find only now that there is nothing to draw
    except (TileLabError, KernelRefused, Unfit):
        return None
    return made


def _counts(puzzle: Puzzle, program: Any) -> dict[str, tuple[float | None, float]]:
    from tilelab.grader.points import Tally, measure

    values = measure(puzzle.spec, program, Tally()).values
    return {c.name: (values.get(c.name), c.best) for c in puzzle.spec.counts}
