"""The data of a trace view, read: which value a name has at a step, what changed, where a step stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from tilelab.views import palette
from tilelab.views.trace_values import differs
from tilelab.views.words import word


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """The value of a name at a step.

    ``step`` is when it was written; ``late`` says that a later value, at or before the step asked for, is not in this view;
    ``changed`` marks the elements that differ from the value before, where the value was written at the step asked for.
    """

    name: str
    array: Any
    step: int
    late: bool
    changed: Any


class Model:
    """Reads the data of one view; arrays are decoded already."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.count: int = data["count"]
        self.at: int = data["at"]
        self._buffers = {b["name"]: b for b in data["buffers"]}
        self._made: dict[int, Any] = {}
        ran = sorted({(int(f), int(n)) for f, n in zip(data["steps"]["file"], data["steps"]["line"], strict=True)})
        ramp = palette.ramp(64)
        self._colours = {key: ramp[5 + 54 * k // max(1, len(ran) - 1)] if len(ran) > 1 else ramp[32] for k, key in enumerate(ran)}

    # ------------------------------------------------------------------------------------------------- steps
    def text(self, step: int) -> str:
        """The statement of a step."""
        return str(self.data["texts"][self.data["steps"]["text"][step]])

    def loops(self, step: int) -> dict[str, int]:
        """The loop variables around."""
        names = self.data["loops"][self.data["steps"]["names"][step]]
        return {n: int(v) for n, v in zip(names, self.data["steps"]["loops"][step], strict=False)}

    def who(self, step: int, lang: str = "en") -> str:
        """Which threads run it, in words; empty for the whole block."""
        steps = self.data["steps"]
        role, threads = self.data["roles"][steps["role"][step]], self.data["threads"][steps["threads"][step]]
        return ": ".join(threads_text(t, lang) for t in (role, threads) if t)

    def lines(self, step: int) -> tuple[int, int]:
        """First and last line; zeros where none is known."""
        return int(self.data["steps"]["line"][step]), int(self.data["steps"]["end"][step])

    def file(self, step: int) -> Mapping[str, Any] | None:
        """The file of a step."""
        place = int(self.data["steps"]["file"][step])
        return self.data["files"][place] if place >= 0 else None

    def around(self, step: int, n: int) -> list[tuple[int, str]]:
        """The source lines around a step, numbered."""
        file, (first, last) = self.file(step), self.lines(step)
        if file is None:
            return []
        start = max(file["first"], first - n)
        return [(k, file["lines"][k - file["first"]]) for k in range(start, min(last + n, file["first"] + len(file["lines"]) - 1) + 1)]

    def place(self, step: int) -> str:
        """``kernel.py:12``."""
        file = self.file(step)
        return f"{PurePath(file['name']).name}:{self.lines(step)[0]}" if file is not None else ""

    def colour(self, step: int) -> str:
        """The colour of a step: that of its line, in the order of the program."""
        return self._colours[(int(self.data["steps"]["file"][step]), int(self.data["steps"]["line"][step]))]

    def line_colour(self, file: int, line: int) -> str:
        """The colour of a line on which a step began; empty for other lines."""
        return self._colours.get((int(file), line), "")

    def wrote(self, step: int) -> list[str]:
        """The names that a step wrote."""
        return [n for n, b in self._buffers.items() if (np.asarray(b["steps"]) == step).any()]

    # ------------------------------------------------------------------------------------------------ values
    def buffer(self, name: str) -> Mapping[str, Any]:
        """What is known of a name."""
        found: Mapping[str, Any] = self._buffers[name]
        return found

    def value(self, name: str, step: int) -> Shown | None:
        """The value of a name at a step; None where it has none."""
        if name not in self._buffers:
            return None
        buffer = self._buffers[name]
        last = bisect_right(buffer["steps"], step)
        k = last - 1
        while k >= 0 and buffer["values"][k] < 0:
            k -= 1
        if k < 0:
            return None
        array = self._make(int(buffer["values"][k]))
        at = int(buffer["steps"][k])
        changed = None
        if at == step:
            earlier = next((int(v) for v in buffer["values"][:k][::-1] if v >= 0), -1)
            old = self._make(earlier) if earlier >= 0 else None
            alike = old is not None and np.shape(old) == np.shape(array)
            changed = differs(old, array) if alike else ~np.ma.getmaskarray(array)
        return Shown(name=name, array=array, step=at, late=k != last - 1, changed=changed)

    def _make(self, place: int) -> Any:
        if place not in self._made:
            record = self.data["values"][place]
            if record["base"] >= 0:
                array = np.array(np.ma.getdata(self._make(record["base"])))
                array.reshape(-1)[record["where"]] = record["array"]
            else:
                array = record["array"]
            empty = record["empty"]
            self._made[place] = array if empty is None else np.ma.MaskedArray(array, mask=np.asarray(empty, bool))
        return self._made[place]


def threads_text(text: str, lang: str) -> str:
    """``thread 0``, ``threads 32–63``, ``4 of 128 threads`` in ``lang``; anything else as it is."""
    found = re.fullmatch(r"threads? (\d+(?:–\d+)?)|(\d+) of (\d+) threads", text)
    if found is None:
        return text
    which, some, every = found.groups()
    if which is None:
        return word("of_some", lang, some=some, all=every)
    return word("of_threads" if "–" in which else "of_thread", lang, which=which)


def loops_text(loops: Mapping[str, int]) -> str:
    """``k = 3, i = 0``."""
    return ", ".join(f"{k} = {v}" for k, v in loops.items())


def element_text(name: str, index: Sequence[int]) -> str:
    """``acc[3, 0]``."""
    return f"{name}[{', '.join(map(str, index))}]" if len(index) else name


def value_text(m: Model, shown: Shown, lang: str) -> str:
    """What is said under a value: when it was written, how much changed, which part it is."""
    b = m.buffer(shown.name)
    said = [word("left_out" if shown.late else "written", lang, step=shown.step)]
    if shown.changed is not None and shown.array.ndim:
        n = int(np.count_nonzero(shown.changed))
        said.append(word("changed", lang, count=n) if n else word("unchanged", lang))
    if window := window_text(b):
        said.append(word("window", lang, window=window))
    return " · ".join(said)


def window_text(buffer: Mapping[str, Any]) -> str:
    """Which part of a tensor is shown, as slices; empty for all of it."""
    spans = [f"{o}:{o + n}" for o, n in zip(buffer["origin"], buffer["extent"], strict=False)]
    return f"[{', '.join(spans)}]" if spans else ""
