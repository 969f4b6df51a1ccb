"""``puzzle.toml`` as records, and its validation: one clear line for each mistake. ``puzzles/SCHEMA.md`` documents it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilelab.errors import InputError
from tilelab.finding import CODES
from tilelab.grader import shapes

SCHEMA = 1
KINDS = ("kernel", "layout", "debug")
ROLES = ("in", "inout", "out")
#: Named figures a puzzle can count → whether it takes lowering to know them.
COUNTS: Mapping[str, bool] = {
    "bytes_moved": False,
    "bytes_read": False,
    "bytes_written": False,
    "launches": False,
    "blocks": False,
    "smem_bytes": True,
    "threads": True,
    "tensor_core": True,
    # These wait for the thread level; a puzzle may name them already, and they are reported as not measured yet.
    "occupancy": True,
    "sectors": True,
    "excess_wavefronts": True,
    "overlap": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of the entry's signature. ``low`` and ``high`` bound drawn integers (shape expressions; high excluded)."""

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    role: str = "in"
    low: str | int = 0
    high: str | int = 4

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for given sizes."""
        return tuple(shapes.evaluate(e, sizes) for e in self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysCase:
    """A case that every submission meets: its sizes, the kind of its inputs, and its weight."""

    sizes: Mapping[str, int]
    inputs: str = "random"
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Cases drawn from a seed: ``count`` of them, each size from its range or choices, each input kind in turn."""

    count: int
    ranges: Mapping[str, tuple[int, ...]]  # a tuple is the choices; ranges are expanded lazily by ``steps``
    steps: Mapping[str, tuple[int, int, int]]  # name → (low, high inclusive, step)
    inputs: tuple[str, ...] = ("random",)
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """``|got − want| ≤ atol + rtol · s``, s being ``|want|``, or what the oracle's ``magnitude`` returns."""

    rtol: float = 0.0
    atol: float = 0.0
    relative_to: str = "want"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One counted figure: the starter's, the best known, and the least that honest work can reach."""

    name: str
    start: float
    best: float
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A wrong answer that is shipped, and the finding code or the case (``"N = 129"``) it must fail with."""

    file: str
    fails: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """All that ``puzzle.toml`` says."""

    id: str
    title: Mapping[str, str]
    idea: Mapping[str, str]
    part: str
    kind: str
    entry: str
    arguments: tuple[Tensor, ...]
    returns: tuple[Tensor, ...]
    arch: str
    min_arch: str
    tilelang: str
    visible: tuple[Mapping[str, int], ...]
    always: tuple[AlwaysCase, ...]
    draw: Draw
    tolerance: Tolerance
    count_sizes: Mapping[str, int]
    counts: tuple[Count, ...]
    allowed: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    launches: int = 1
    needs: tuple[str, ...] = ()
    teaches: tuple[str, ...] = ()
    hints: int = 3
    wrong: tuple[Wrong, ...] = ()
    speed: Mapping[str, float | str] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def sizes(self) -> tuple[str, ...]:
        """The size names, in the order in which the puzzle gives them."""
        return tuple(self.count_sizes)

    @property
    def number(self) -> int:
        """The puzzle's number on the road."""
        return int(self.id.split("_", 1)[0])


def load_spec(folder: Path) -> Spec:
    """Read and validate ``folder/puzzle.toml``.

    Raises:
        InputError: The file is missing, is no TOML, or breaks the schema; the message names file, key and remedy.
    """
    path = folder / "puzzle.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", fix="a puzzle is a folder with a puzzle.toml in it") from None
    except tomllib.TOMLDecodeError as e:
        raise InputError(f"{path}: not TOML: {e}", fix="see puzzles/SCHEMA.md") from None
    return parse_spec(data, folder)


def parse_spec(data: Mapping[str, Any], folder: Path) -> Spec:
    """Turn the parsed TOML of a puzzle into a :class:`Spec`, checking every key."""
    r = _Reader(str(folder / "puzzle.toml"))
    top = r.table(data, "", _TOP)
    if top["schema"] != SCHEMA:
        r.fail("schema", f"is {top['schema']}, this TileLab reads {SCHEMA}")
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", top["id"]) or (folder.name and folder.name != top["id"]):
        r.fail("id", f"is {top['id']!r}; it is two digits, an underscore and the folder's name")
    r.choice("kind", top["kind"], KINDS)
    title, idea = (r.table(top[k], k, {"en": (str, _MUST), "zh": (str, _MUST)}) for k in ("title", "idea"))
    arguments = tuple(_tensor(r, d, f"arguments[{i}]") for i, d in enumerate(top["arguments"]))
    returns = tuple(_tensor(r, d, f"returns[{i}]") for i, d in enumerate(top["returns"]))
    if not returns and not any(t.role != "in" for t in arguments):
        r.fail("returns", "is empty and no argument is written", "give returns, or an argument with role 'out' or 'inout'")
    cases = r.table(top["cases"], "cases", {"visible": (list, _MUST), "always": (list, _MUST), "draw": (dict, _MUST)})
    tolerance = r.table(top["tolerance"], "tolerance", {"rtol": (float, 0.0), "atol": (float, 0.0), "relative_to": (str, "want")})
    r.choice("tolerance.relative_to", tolerance["relative_to"], ("want", "magnitude"))
    counts = r.table(top["counts"], "counts", {"sizes": (dict, _MUST), "figures": (list, _MUST)})
    findings = r.table(top["findings"], "findings", {"allowed": (list, ()), "refused": (list, ())})
    for key in ("allowed", "refused"):
        for code in findings[key]:
            if code not in CODES:
                r.fail(f"findings.{key}", f"names {code!r}, which is no finding code")
    operations = r.table(top["operations"], "operations", {"forbidden": (list, ()), "required": (list, ())})
    spec = Spec(
        title=title,
        idea=idea,
        arguments=arguments,
        returns=returns,
        visible=tuple(r.sizes(v, f"cases.visible[{i}]") for i, v in enumerate(cases["visible"])),
        always=tuple(_always(r, v, f"cases.always[{i}]") for i, v in enumerate(cases["always"])),
        draw=_draw(r, cases["draw"]),
        tolerance=Tolerance(**tolerance),
        count_sizes=r.sizes(counts["sizes"], "counts.sizes"),
        counts=tuple(_count(r, v, f"counts.figures[{i}]") for i, v in enumerate(counts["figures"])),
        allowed=frozenset(findings["allowed"]),
        refused=frozenset(findings["refused"]),
        forbidden=frozenset(operations["forbidden"]),
        required=frozenset(operations["required"]),
        wrong=tuple(Wrong(**r.table(v, f"wrong[{i}]", {"file": (str, _MUST), "fails": (str, _MUST)})) for i, v in enumerate(top["wrong"])),
        needs=tuple(top["needs"]),
        teaches=tuple(top["teaches"]),
        speed=top["speed"],
        folder=folder,
        **{k: top[k] for k in ("id", "part", "kind", "entry", "arch", "min_arch", "tilelang", "launches", "hints")},
    )
    _cross_check(r, spec)
    return spec


_MUST = object()
_Keys = Mapping[str, tuple[type, Any]]
_TOP: _Keys = {
    "schema": (int, _MUST),
    "id": (str, _MUST),
    "title": (dict, _MUST),
    "idea": (dict, _MUST),
    "part": (str, _MUST),
    "kind": (str, "kernel"),
    "entry": (str, _MUST),
    "arch": (str, "sm_80"),
    "min_arch": (str, "sm_80"),
    "tilelang": (str, ">=0.1.15,<0.2"),
    "launches": (int, 1),
    "needs": (list, ()),
    "teaches": (list, ()),
    "hints": (int, 3),
    "arguments": (list, _MUST),
    "returns": (list, ()),
    "cases": (dict, _MUST),
    "tolerance": (dict, {}),
    "counts": (dict, _MUST),
    "findings": (dict, {}),
    "operations": (dict, {}),
    "wrong": (list, ()),
    "speed": (dict, {}),
}


class _Reader:
    """Checks keys and types of one file, and says in one line what is wrong."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, key: str, problem: str, fix: str = "see puzzles/SCHEMA.md") -> None:
        raise InputError(f"{self.path}: {key} {problem}", fix=fix)

    def table(self, data: Any, where: str, keys: _Keys) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            self.fail(where, "must be a table")
        prefix = f"{where}." if where else ""
        for k in data:
            if k not in keys:
                self.fail(f"{prefix}{k}", "is not a key of the schema", f"known here: {', '.join(keys)}")
        out: dict[str, Any] = {}
        for k, (kind, default) in keys.items():
            if k not in data:
                if default is _MUST:
                    self.fail(f"{prefix}{k}", "is missing")
                out[k] = default
                continue
            value = data[k]
            if kind is float and type(value) is int:
                value = float(value)
            if kind is not object and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                self.fail(f"{prefix}{k}", f"must be {_NAMES[kind]}, not {value!r}")
            out[k] = value
        return out

    def choice(self, where: str, value: str, known: tuple[str, ...] | Mapping[str, Any]) -> None:
        if value not in known:
            self.fail(where, f"is {value!r}", f"use one of {', '.join(known)}")

    def sizes(self, data: Any, where: str) -> dict[str, int]:
        if not isinstance(data, Mapping) or not all(type(v) is int and v >= 0 for v in data.values()):
            self.fail(where, "must give a whole number for each size, as in { N = 128 }")
        return dict(data)


_NAMES: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a string", list: "a list", dict: "a table"}


def _tensor(r: _Reader, data: Any, where: str) -> Tensor:
    keys: _Keys = {
        "name": (str, _MUST),
        "dtype": (str, _MUST),
        "shape": (list, _MUST),
        "role": (str, "in"),
        "low": (object, 0),
        "high": (object, 4),
    }
    t = r.table(data, where, keys)
    r.choice(f"{where}.role", t["role"], ROLES)
    return Tensor(**{**t, "shape": tuple(t["shape"])})


def _always(r: _Reader, data: Any, where: str) -> AlwaysCase:
    t = r.table(data, where, {"sizes": (dict, _MUST), "inputs": (str, "random"), "weight": (int, 1)})
    return AlwaysCase(**{**t, "sizes": r.sizes(t["sizes"], f"{where}.sizes")})


def _draw(r: _Reader, data: Any) -> Draw:
    t = r.table(data, "cases.draw", {"count": (int, _MUST), "ranges": (dict, _MUST), "inputs": (list, ["random"]), "weight": (int, 1)})
    choices: dict[str, tuple[int, ...]] = {}
    steps: dict[str, tuple[int, int, int]] = {}
    for name, value in t["ranges"].items():
        if isinstance(value, Mapping) and set(value) == {"one_of"}:
            choices[name] = tuple(value["one_of"])
        elif isinstance(value, list) and len(value) in (2, 3) and all(type(v) is int for v in value) and value[0] <= value[1]:
            steps[name] = (value[0], value[1], value[2] if len(value) == 3 else 1)
        else:
            r.fail(f"cases.draw.ranges.{name}", "must be [low, high], [low, high, step] or { one_of = [...] }")
    return Draw(count=t["count"], ranges=choices, steps=steps, inputs=tuple(t["inputs"]), weight=t["weight"])


def _count(r: _Reader, data: Any, where: str) -> Count:
    t = r.table(data, where, {"name": (str, _MUST), "start": (float, _MUST), "best": (float, _MUST), "floor": (float, None)})
    r.choice(f"{where}.name", t["name"], COUNTS)
    if t["start"] == t["best"]:
        r.fail(where, "has the same start and best, so nothing could be gained")
    return Count(**t)


def _cross_check(r: _Reader, spec: Spec) -> None:
    """Check what concerns more than one key: every case gives every size, and every input kind exists."""
    from tilelab.grader.draw import INPUT_KINDS  # the table of kinds lives with the generators

    need = {n for t in (*spec.arguments, *spec.returns) for e in t.shape for n in shapes.names(e)}
    drawn = {**spec.draw.ranges, **spec.draw.steps}
    given: list[tuple[str, Mapping[str, Any]]] = [
        *((f"cases.visible[{i}]", v) for i, v in enumerate(spec.visible)),
        *((f"cases.always[{i}]", c.sizes) for i, c in enumerate(spec.always)),
        ("cases.draw.ranges", drawn),
        ("counts.sizes", spec.count_sizes),
    ]
    for where, sizes in given:
        if set(sizes) != need:
            r.fail(where, f"gives {', '.join(sorted(sizes)) or 'nothing'}; the shapes use {', '.join(sorted(need))}")
    for kind in (*spec.draw.inputs, *(c.inputs for c in spec.always)):
        r.choice("cases: inputs", kind, INPUT_KINDS)
    if spec.draw.count + len(spec.always) < 1:
        r.fail("cases", "has no hidden case")
    check: Callable[[str], bool] = lambda name: bool(re.fullmatch(r"\d\d_[a-z0-9_]+", name))  # noqa: E731
    for name in spec.needs:
        if not check(name):
            r.fail("needs", f"names {name!r}, which is no puzzle id")
