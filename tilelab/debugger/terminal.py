"""The debugger in a terminal: one-letter keys, each also a word; reads lines, so it can be driven by a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from tilelab.debugger.session import Session, Step
from tilelab.errors import InputError, TileLabError
from tilelab.views.trace_text import array_text, filter_prints, listing, prints_text

HELP = """\
  s [N]  step               n      over (stay out of macros and inner loops)   o   out of this loop or macro
  b [N]  back               c      continue to a breakpoint                    r   reverse to a breakpoint
  g N    go to step N       l      list the source                             i   where am I
  p EXPR print a value      w EXPR watch it            h EXPR history of it    v   names that have values
  k WHERE break at a line (12, file.py:12), a condition (acc[0,0] > 1e4), nan, oob, a finding (finding, TL103);   K [N]  clear
  t      T.print records (t LINE: of that line)        f      findings        ?   this help        q   quit"""


class Terminal:
    """Reads commands and writes what they show; :meth:`run` returns when there is no more to read, or on ``q``."""

    def __init__(self, session: Session, sources: Mapping[str, str], out: TextIO) -> None:
        self.session = session
        self.sources = sources
        self.out = out

    def run(self, lines: Iterable[str], *, prompt: str = "") -> None:
        """Carry out ``lines`` one by one; an empty line repeats the last move."""
        last = "s"
        self._show(self.session.here)
        self._say(f"{len(self.session)} steps recorded; ? for help" + (f"; {self.session.bound}" if self.session.bound else ""))
        self._prompt(prompt)
        for line in lines:
            text = line.strip() or last
            if text in ("q", "quit", "exit"):
                return
            try:
                self.do(text)
            except TileLabError as error:
                self._say(str(error))
            if text.split()[0] in ("s", "b", "n", "o", "c", "r"):
                last = text
            self._prompt(prompt)

    def do(self, text: str) -> None:
        """Carry out one command.

        Raises:
            InputError: There is no such command, or its argument is wrong.
        """
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        moves: dict[str, Callable[[], Step]] = {
            "s": lambda: self.session.step(_count(rest)),
            "b": lambda: self.session.back(_count(rest)),
            "n": self.session.over,
            "o": self.session.out,
            "c": self.session.cont,
            "r": self.session.reverse,
            "g": lambda: self.session.goto(_count(rest)),
        }
        shows: dict[str, Callable[[], str]] = {
            "p": lambda: self._array(_need(rest), self.session.value(rest)),
            "w": lambda: self._watch(_need(rest)),
            "h": lambda: "\n".join(f"[{i}] {array_text(rest, v, rows=2)}" for i, v in self.session.history(_need(rest))),
            "v": lambda: "\n".join(self._array(n, v, rows=0) for n, v in self.session.values().items()) or "nothing written yet",
            "k": lambda: f"breakpoint {self.session.break_at(_need(rest))}",
            "K": lambda: self._clear(rest),
            "t": lambda: prints_text(filter_prints(self.session.prints, line=int(rest) if rest.isdigit() else None)),
            "f": lambda: "\n".join(map(str, self.session.findings)) or "no findings",
            "l": lambda: self._listing(self.session.here, around=12),
            "i": lambda: f"block {self.session.block}, role {self.session.here.event.role}\n{self.session.here}",
            "?": lambda: HELP,
        }
        if word in moves:
            self._show(moves[word]())
        elif word in shows:
            self._say(shows[word]())
        else:
            raise InputError(f"no command {word!r}", fix="? lists them")

    def _show(self, step: Step) -> None:
        if step.hit is not None:
            self._say(f"stopped at {step.hit}")
        self._say(str(step))
        self._say(self._listing(step))
        for name, value in self.session.watched().items():
            self._say(f"{name}: no value yet" if value is None else self._array(name, value, rows=4))

    def _listing(self, step: Step, around: int = 3) -> str:
        return listing(self.sources, step.loc, around=around, stops=[b.line for b in self.session.breakpoints if b.line])

    def _watch(self, expression: str) -> str:
        value = self.session.watch(expression)
        return f"watching {expression}: no value yet" if value is None else self._array(expression, value)

    def _array(self, name: str, value: object, rows: int = 8) -> str:
        """A value with the dtype and scope that the program declares."""
        known = self.session.trace.buffers.get(name)
        return array_text(name, value, rows=rows, dtype=known.dtype if known else "", scope=known.scope if known else "")

    def _clear(self, rest: str) -> str:
        self.session.clear(_count(rest) if rest else None)
        return "\n".join(map(str, self.session.breakpoints)) or "no breakpoints"

    def _say(self, text: str) -> None:
        print(text, file=self.out)

    def _prompt(self, prompt: str) -> None:
        if prompt:
            print(prompt, end="", file=self.out, flush=True)


def _count(text: str) -> int:
    try:
        return int(text or 1)
    except ValueError:
        raise InputError(f"{text!r} is not a number of steps") from None


def _need(text: str) -> str:
    if not text:
        raise InputError("say which expression, line or condition", fix="? shows the commands")
    return text
