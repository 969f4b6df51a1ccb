"""Submissions: a Python file, a notebook, or the text of a cell, as units of source that can run in order."""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tilelab.errors import InputError

_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of source that is compiled under its own file name (a notebook's cell: ``"work.ipynb, cell 3"``)."""

    file: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a learner hands in: its name in reports, and its source."""

    name: str
    units: tuple[Unit, ...]

    def shown(self, file: str | None) -> str | None:
        """Return a unit's file name as the learner gave it; inside, names are absolute, since the process runs elsewhere."""
        if file is None or not any(file == u.file for u in self.units):
            return file
        own = _readable(str(Path(self.name).resolve()))
        return self.name + file[len(own) :] if file.startswith(own) else file


def read_submission(path: str | Path, entry: str) -> Submission:
    """Read a ``.py`` or ``.ipynb`` file.

    A Python file counts as a whole. Of a notebook, or of a file with ``# %%`` cells, only what ``entry`` needs counts:
    its definition, and the imports, functions and assignments that this uses; displays, plots and checks do not run.

    Raises:
        InputError: No such file, not Python, or Python cannot parse it; the message names file, line and remedy.
    """
    path = Path(path)
    if path.suffix not in (".py", ".ipynb"):
        raise InputError(f"{path}: not a submission", fix="give a .py or .ipynb file, or a folder of them")
    try:
        if not path.is_file() and path.exists():  # reading a pipe or a device may never end
            raise InputError(f"{path}: not a file", fix="give a .py or .ipynb file, or a folder of them")
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB", fix="clear the outputs of the notebook")
        text = path.read_text("utf-8-sig")  # Python takes a byte-order mark, so does this
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", fix="give a .py or .ipynb file, or a folder of them") from None
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {e}", fix="save it as UTF-8") from None
    units = (Unit(file=_readable(str(path.resolve())), source=text),) if path.suffix == ".py" else _cells(path, text)
    submission = Submission(name=str(path), units=units)
    trees = [_parse(u, submission.shown(u.file) or u.file) for u in units]
    if path.suffix == ".ipynb" or re.search(r"^# %%", text, re.MULTILINE):
        units = _slice(units, trees, entry)
    return Submission(name=str(path), units=units)


def from_text(source: str, entry: str, name: str = "cell") -> Submission:
    """Take the text of a notebook cell (or of several, joined).

    Raises:
        InputError: Python cannot parse it.
    """
    unit = Unit(file=str(Path(name).resolve()), source=_without_magics(source))
    return Submission(name=name, units=_slice((unit,), [_parse(unit, name)], entry))


def files_of(paths: Iterable[str | Path]) -> list[Path]:
    """Expand folders into the ``.py`` and ``.ipynb`` files below them, sorted; files are taken as they are.

    Raises:
        InputError: A path does not exist, or a folder holds no submission.
    """
    out: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found = sorted(
                p
                for p in path.rglob("*")
                if p.suffix in (".py", ".ipynb") and p.is_file() and not any(q.startswith(".") for q in p.relative_to(path).parts)
            )
            if not found:
                raise InputError(f"{path}: no .py or .ipynb file in it", fix="give the folder that holds the submissions")
            out += found
        elif path.exists():
            out.append(path)
        else:
            raise InputError(f"{path}: no such file", fix="give a .py or .ipynb file, or a folder of them")
    return out


def _cells(path: Path, text: str) -> tuple[Unit, ...]:
    try:
        cells = json.loads(text)["cells"]
        sources = [(i, "".join(c["source"])) for i, c in enumerate(cells, 1) if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: not a Jupyter notebook", fix="save it from Jupyter, format 4") from None
    return tuple(
        Unit(file=_readable(f"{path.resolve()}, cell {i}"), source=_without_magics(s))
        for i, s in sources
        if not s.lstrip().startswith("%%")
    )


def _readable(name: str) -> str:
    """A file's name may hold bytes that are no text; those become question marks, since TileLang's compiler takes text alone."""
    return name.encode("utf-8", "replace").decode()


def _without_magics(source: str) -> str:
    """Blank the lines that are IPython's and not Python's, keeping the line numbers."""
    lines = source.split("\n")
    return "\n".join("" if line.lstrip()[:1] in ("%", "!", "?") or line.rstrip().endswith("?") else line for line in lines)


def _parse(unit: Unit, shown: str) -> ast.Module:
    try:
        return ast.parse(unit.source, unit.file)
    except SyntaxError as e:
        raise InputError(f"{shown}:{e.lineno or 1}: Python cannot parse this: {e.msg}", fix="correct that line") from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise InputError(f"{shown}: Python cannot parse this: {e}", fix="make it simpler") from None


def _slice(units: tuple[Unit, ...], trees: list[ast.Module], entry: str) -> tuple[Unit, ...]:
    """Blank every top-level statement that ``entry`` does not need."""
    statements = [(u, s) for u, tree in enumerate(trees) for s in tree.body]
    needed, kept = {entry}, set()
    grew = True
    while grew:
        grew = False
        for i, (_, s) in enumerate(statements):
            if i not in kept and (_defines(s) & needed or _always(s)):
                kept.add(i)
                needed |= _uses(s)
                grew = True
    out = []
    for u, unit in enumerate(units):
        lines = unit.source.split("\n")
        keep = [False] * len(lines)
        for i in kept:
            if statements[i][0] == u:
                for line in range(_first_line(statements[i][1]) - 1, statements[i][1].end_lineno or 0):
                    keep[line] = True
        if any(keep):
            out.append(Unit(file=unit.file, source="\n".join(text if k else "" for text, k in zip(lines, keep, strict=True))))
    return tuple(out)


def _always(s: ast.stmt) -> bool:
    return isinstance(s, ast.ImportFrom) and (s.module == "__future__" or any(a.name == "*" for a in s.names))


def _first_line(s: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(s, "decorator_list", [])
    return min([s.lineno, *(d.lineno for d in decorators)])


def _defines(s: ast.stmt) -> set[str]:
    """Names that a top-level statement binds; none for a mere expression."""
    if isinstance(s, ast.Expr):
        return set()
    if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {s.name}
    if isinstance(s, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in s.names}
    out = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for n in ast.walk(s):
        if isinstance(n, ast.FunctionDef | ast.ClassDef):
            out.add(n.name)
        elif isinstance(n, ast.Import | ast.ImportFrom):
            out |= {(a.asname or a.name).split(".")[0] for a in n.names}
    return out


def _uses(s: ast.stmt) -> set[str]:
    """Names that a statement may read. A string annotation may hold names too."""
    out = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return {n for n in out if not hasattr(builtins, n)}
