"""The debugger in a terminal: one-letter keys, each also a word. It reads lines, so it can be driven by a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

import numpy as np

from tilelab.debugger.session import Session, Step
from tilelab.errors import InputError, TileLabError
from tilelab.views.trace_text import array_text, filter_prints, heat_text, listing, prints_text, read_filter

HELP = """\
  s [N]  step               n      over (stay out of macros and inner loops)   o   out of this loop or macro
  b [N]  back               c      continue to a breakpoint                    r   reverse to a breakpoint
  g N    go to step N       l      list the source                             i   where am I
  p EXPR print a value (of A[8:16, :8] that part)      m EXPR a heat map of it      h EXPR history of it      v   names that have values
  w EXPR watch it           W EXPR no longer
  k WHERE break at a line (12, file.py:12), a condition (acc[0,0] > 1e4), nan, oob, a finding (finding, TL103);   K [N]  clear
  t [FILTER…] T.print records of this block: t 16, t name=acc thread=3 k=2 (line, block=all or X,Y,Z, thread, name, loop variables)
  f      findings           ?      this help                                   q   quit
Words do as well: step, back, over, out, continue, reverse, goto, list, where, print, map, watch, unwatch, history, values, break, clear,
prints, findings, help, quit. An empty line repeats the last move."""

#: word → key
WORDS = {
    "step": "s", "next": "n", "over": "n", "back": "b", "out": "o", "continue": "c", "cont": "c", "reverse": "r", "goto": "g", "list": "l",
    "where": "i", "info": "i", "print": "p", "map": "m", "heat": "m", "watch": "w", "unwatch": "W", "history": "h", "values": "v",
    "break": "k", "clear": "K", "prints": "t", "findings": "f", "help": "?", "quit": "q", "exit": "q",
}  # fmt: skip
_MOVES = frozenset("sbnocrg")


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
            key = _key(text)[0]
            if key == "q":
                return
            try:
                self.do(text)
            except TileLabError as error:
                self._say(str(error))
            if key in _MOVES - {"g"}:
                last = text
            self._prompt(prompt)

    def do(self, text: str) -> None:
        """Carry out one command.

        Raises:
            InputError: There is no such command, or its argument is wrong.
        """
        word, rest = _key(text)
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
            "W": lambda: self._unwatch(_need(rest)),
            "m": lambda: heat_text(_need(rest), self.session.value(rest)),
            "t": lambda: self._prints(rest),
            "f": lambda: "\n".join(map(str, self.session.findings)) or "no findings",
            "l": lambda: self._listing(self.session.here, around=12),
            "i": self._where,
            "?": lambda: HELP,
        }
        if word in moves:
            step = moves[word]()
            if word in "cr" and step.hit is None and self.session.breakpoints:
                self._say(f"no breakpoint was met: this is the {'last' if word == 'c' else 'first'} step")
            self._show(step)
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

    def _where(self) -> str:
        step = self.session.here
        who = step.event.role or "all threads"
        more = f", {step.event.threads}" if step.event.threads else ""
        return f"step {step.index} of 0 to {len(self.session) - 1}, block {self.session.block}, {who}{more}\n{step}"

    def _prints(self, text: str) -> str:
        """The records that pass a filter, and a heat map where it is a single tile."""
        asked = read_filter(text)
        records = self.session.trace.prints if "block" in asked else self.session.prints
        if asked.get("block") == "all":
            del asked["block"]
        found = filter_prints(records, **asked)
        if not found:
            return f"no T.print record{' passes that' if records else ''}" + (f", of {len(records)}" if records else "")
        one = found[0]
        heat = len(found) == 1 and np.ndim(one.values) and np.size(one.values) > 1
        return prints_text(found) + (f"\n{heat_text(one.name or one.message, one.values)}" if heat else "")

    def _unwatch(self, expression: str) -> str:
        self.session.unwatch(expression)
        return "watching " + (", ".join(c.text for c in self.session.watches) or "nothing")

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


def _key(text: str) -> tuple[str, str]:
    """Split a command into its key and the rest."""
    word, _, rest = text.partition(" ")
    return WORDS.get(word, word), rest.strip()


def _count(text: str) -> int:
    try:
        return int(text or 1)
    except ValueError:
        raise InputError(f"{text!r} is not a number of steps") from None


def _need(text: str) -> str:
    if not text:
        raise InputError("say which expression, line or condition", fix="? shows the commands")
    return text
