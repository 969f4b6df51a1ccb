"""Reads ``puzzle.toml`` and says in one line, naming file, key and remedy, what is wrong with it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelab.errors import InputError
from tilelab.finding import CODES
from tilelab.grader import shapes
from tilelab.grader.spec import (
    FIGURES,
    KINDS,
    ROLES,
    AlwaysCase,
    Bound,
    Count,
    DebugGoal,
    Draw,
    LayoutGoal,
    Spec,
    Speed,
    Tensor,
    Tolerance,
    Wrong,
)
from tilelab.grader.toml_reader import MUST, Keys, Reader

SCHEMA = 1


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
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {e}", fix="save it as UTF-8, readable by you") from None
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise InputError(f"{path}: not TOML: {e}", fix="see puzzles/SCHEMA.md") from None
    return parse_spec(data, folder)


def parse_spec(data: Mapping[str, Any], folder: Path) -> Spec:
    """Turn the parsed TOML of a puzzle into a :class:`~tilelab.grader.spec.Spec`, checking every key."""
    r = Reader(str(folder / "puzzle.toml"))
    top = r.table(data, "", _TOP)
    if top["schema"] != SCHEMA:
        r.fail("schema", f"is {top['schema']}, this TileLab reads {SCHEMA}")
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", top["id"]) or (folder.name and folder.name != top["id"]):
        r.fail("id", f"is {top['id']!r}; it is two digits, an underscore and the folder's name")
    if not top["entry"].isidentifier():
        r.fail("entry", f"is {top['entry']!r}; it is the name of a Python function")
    r.choice("kind", top["kind"], KINDS)
    title, idea = (r.table(top[k], k, {"en": (str, MUST), "zh": (str, MUST)}) for k in ("title", "idea"))
    cases = r.table(top["cases"], "cases", {"visible": (list, MUST), "always": (list, MUST), "draw": (dict, {"count": 0, "ranges": {}})})
    tolerance = r.table(top["tolerance"], "tolerance", {"rtol": (float, 0.0), "atol": (float, 0.0), "relative_to": (str, "want")})
    r.choice("tolerance.relative_to", tolerance["relative_to"], ("want", "magnitude"))
    r.at_least("tolerance.rtol", tolerance["rtol"], 0)
    r.at_least("tolerance.atol", tolerance["atol"], 0)
    counts = r.table(top["counts"], "counts", {"sizes": (dict, MUST), "figures": (list, ())})
    findings = r.table(top["findings"], "findings", {"allowed": (list, ()), "refused": (list, ())})
    for key in ("allowed", "refused"):
        for code in r.strings(f"findings.{key}", findings[key]):
            if code not in CODES:
                r.fail(f"findings.{key}", f"names {code!r}, which is no finding code")
    operations = r.table(top["operations"], "operations", {"forbidden": (list, ()), "required": (list, ())})
    spec = Spec(
        title=title,
        idea=idea,
        arguments=tuple(_tensor(r, d, f"arguments[{i}]") for i, d in enumerate(top["arguments"])),
        returns=tuple(_tensor(r, d, f"returns[{i}]") for i, d in enumerate(top["returns"])),
        visible=tuple(r.sizes(v, f"cases.visible[{i}]") for i, v in enumerate(cases["visible"])),
        always=tuple(_always(r, v, f"cases.always[{i}]") for i, v in enumerate(cases["always"])),
        draw=_draw(r, cases["draw"]),
        tolerance=Tolerance(**tolerance),
        count_sizes=r.sizes(counts["sizes"], "counts.sizes"),
        counts=tuple(_count(r, v, f"counts.figures[{i}]") for i, v in enumerate(counts["figures"])),
        allowed=frozenset(findings["allowed"]),
        refused=frozenset(findings["refused"]),
        forbidden=frozenset(r.strings("operations.forbidden", operations["forbidden"])),
        required=frozenset(r.strings("operations.required", operations["required"])),
        wrong=tuple(Wrong(**r.table(v, f"wrong[{i}]", {"file": (str, MUST), "fails": (str, MUST)})) for i, v in enumerate(top["wrong"])),
        require=tuple(_bound(r, v, f"require[{i}]") for i, v in enumerate(top["require"])),
        speed=_speed(r, top["speed"]) if top["speed"] else None,
        layout=_layout(r, top["layout"]) if top["layout"] else None,
        debug=DebugGoal(**r.table(top["debug"], "debug", {"best": (int, 1), "rewrite": (int, 0)})),
        folder=folder,
        needs=tuple(r.strings("needs", top["needs"])),
        teaches=tuple(r.strings("teaches", top["teaches"])),
        parameters=tuple(r.strings("parameters", top["parameters"])),
        **{k: top[k] for k in ("id", "part", "kind", "entry", "arch", "min_arch", "tilelang", "launches", "hints", "steps")},
    )
    _check_whole(r, spec, top)
    return spec


_TOP: Keys = {
    "schema": (int, MUST),
    "id": (str, MUST),
    "title": (dict, MUST),
    "idea": (dict, MUST),
    "part": (str, MUST),
    "kind": (str, "kernel"),
    "entry": (str, MUST),
    "arch": (str, "sm_80"),
    "min_arch": (str, "sm_80"),
    "tilelang": (str, ">=0.1.15,<0.2"),
    "launches": (int, 1),
    "steps": (int, 2_000_000),
    "needs": (list, ()),
    "teaches": (list, ()),
    "parameters": (list, ()),
    "hints": (int, 3),
    "arguments": (list, ()),
    "returns": (list, ()),
    "cases": (dict, MUST),
    "tolerance": (dict, {}),
    "counts": (dict, MUST),
    "require": (list, ()),
    "findings": (dict, {}),
    "operations": (dict, {}),
    "layout": (dict, {}),
    "debug": (dict, {}),
    "wrong": (list, ()),
    "speed": (dict, {}),
}


# ------------------------------------------------------------------------------------------------ the tables
def _tensor(r: Reader, data: Any, where: str) -> Tensor:
    from tilelab.tensors import numpy_dtype

    keys: Keys = {
        "name": (str, MUST),
        "dtype": (str, MUST),
        "shape": (list, MUST),
        "role": (str, "in"),
        "low": (object, 0),
        "high": (object, 4),
        "rtol": (float, None),
        "atol": (float, None),
    }
    t = r.table(data, where, keys)
    r.choice(f"{where}.role", t["role"], ROLES)
    if not t["name"].isidentifier():
        r.fail(f"{where}.name", f"is {t['name']!r}; it is the name of a parameter of the oracle")
    try:
        numpy_dtype(t["dtype"])
    except InputError as e:
        r.fail(f"{where}.dtype", f"is {t['dtype']!r}: {e.message}", "use TileLang's name, such as float16")
    for key in ("low", "high"):
        r.expression(f"{where}.{key}", t[key])
    return Tensor(**{**t, "shape": r.shape(f"{where}.shape", t["shape"])})


def _always(r: Reader, data: Any, where: str) -> AlwaysCase:
    t = r.table(data, where, {"sizes": (dict, MUST), "inputs": (str, "random"), "weight": (int, 1)})
    r.at_least(f"{where}.weight", t["weight"], 1)
    return AlwaysCase(**{**t, "sizes": r.sizes(t["sizes"], f"{where}.sizes")})


def _draw(r: Reader, data: Any) -> Draw:
    t = r.table(data, "cases.draw", {"count": (int, MUST), "ranges": (dict, MUST), "inputs": (list, ["random"]), "weight": (int, 1)})
    r.at_least("cases.draw.count", t["count"], 0)
    r.at_least("cases.draw.weight", t["weight"], 1)
    if not t["inputs"]:
        r.fail("cases.draw.inputs", "is empty", 'leave it out for ["random"]')
    choices: dict[str, tuple[int, ...]] = {}
    steps: dict[str, tuple[int, int, int]] = {}
    for name, value in t["ranges"].items():
        where = f"cases.draw.ranges.{name}"
        if isinstance(value, Mapping) and set(value) == {"one_of"}:
            choices[name] = tuple(value["one_of"]) if isinstance(value["one_of"], list) else ()
            if not choices[name] or not all(type(v) is int and v >= 0 for v in choices[name]):
                r.fail(where, "must choose among whole numbers, as in { one_of = [1, 2] }")
        elif isinstance(value, list) and len(value) in (2, 3) and all(type(v) is int and v >= 0 for v in value) and value[0] <= value[1]:
            steps[name] = (value[0], value[1], value[2] if len(value) == 3 else 1)
            r.at_least(f"{where}[2]", steps[name][2], 1)
        else:
            r.fail(where, "must be [low, high], [low, high, step] or { one_of = [...] }")
    return Draw(count=t["count"], ranges=choices, steps=steps, inputs=tuple(t["inputs"]), weight=t["weight"])


def _count(r: Reader, data: Any, where: str) -> Count:
    t = r.table(data, where, {"name": (str, MUST), "start": (float, MUST), "best": (float, MUST), "floor": (float, None)})
    r.choice(f"{where}.name", t["name"], FIGURES)
    if t["start"] == t["best"]:
        r.fail(where, "has the same start and best, so nothing could be gained")
    return Count(**t)


def _bound(r: Reader, data: Any, where: str) -> Bound:
    t = r.table(data, where, {"name": (str, MUST), "least": (float, None), "most": (float, None)})
    r.choice(f"{where}.name", t["name"], FIGURES)
    if t["least"] is None and t["most"] is None:
        r.fail(where, "requires nothing", "give least, most, or both")
    return Bound(**t)


def _speed(r: Reader, data: Any) -> Speed:
    t = r.table(data, "speed", {"sizes": (list, MUST), "baseline": (str, "baseline"), "pass": (float, 0.5), "full": (float, 1.0)})
    if not t["sizes"]:
        r.fail("speed.sizes", "is empty", "give the shapes to time, as in [{ M = 4096 }]")
    if not 0 <= t["pass"] < t["full"]:
        r.fail("speed.pass", f"is {t['pass']:g} and full is {t['full']:g}; pass must be the smaller ratio")
    sizes = tuple(r.sizes(v, f"speed.sizes[{i}]") for i, v in enumerate(t["sizes"]))
    return Speed(sizes=sizes, baseline=t["baseline"], passing=t["pass"], full=t["full"])


def _layout(r: Reader, data: Any) -> LayoutGoal:
    from tilelab.layout import bits_of

    keys: Keys = {"kind": (str, MUST), "shape": (list, MUST), "dtype": (str, "float16"), "threads": (int, 0), "injective": (bool, True)}
    t = r.table(data, "layout", keys)
    r.choice("layout.kind", t["kind"], ("shared", "fragment"))
    try:
        bits_of(t["dtype"])
    except InputError as e:
        r.fail("layout.dtype", f"is {t['dtype']!r}: {e.message}")
    return LayoutGoal(**{**t, "shape": r.shape("layout.shape", t["shape"])})


# ------------------------------------------------------------------------------------------- the whole of it
def _check_whole(r: Reader, spec: Spec, top: Mapping[str, Any]) -> None:
    """Check what concerns more than one key: every case gives every size, every input kind exists, each kind has what it needs."""
    from tilelab.grader.draw import INPUT_KINDS  # the table of kinds lives with the generators

    _check_kind(r, spec, top)
    expressions = [e for t in (*spec.arguments, *spec.returns) for e in (*t.shape, *(t.low, t.high) * t.dtype.startswith(("int", "uint")))]
    need = {n for e in [*expressions, *(spec.layout.shape if spec.layout else ())] for n in shapes.names(e)} | set(spec.parameters)
    given: list[tuple[str, Mapping[str, Any]]] = [
        *((f"cases.visible[{i}]", v) for i, v in enumerate(spec.visible)),
        *((f"cases.always[{i}]", c.sizes) for i, c in enumerate(spec.always)),
        *([("cases.draw.ranges", {**spec.draw.ranges, **spec.draw.steps})] if spec.draw.count else []),
        ("counts.sizes", spec.count_sizes),
        *((f"speed.sizes[{i}]", v) for i, v in enumerate(spec.speed.sizes if spec.speed else ())),
    ]
    for where, sizes in given:
        if set(sizes) != need:
            has, want = (", ".join(sorted(s)) or "nothing" for s in (sizes, need))
            r.fail(where, f"gives {has}; the shapes {'and parameters ' * bool(spec.parameters)}use {want}")
        for e in expressions:
            if where.startswith(("cases.always", "counts", "speed")):
                r.value(where, e, sizes)
    for kind in (*spec.draw.inputs, *(c.inputs for c in spec.always)):
        r.choice("cases: inputs", kind, INPUT_KINDS)
    if spec.draw.count + len(spec.always) < 1:
        r.fail("cases", "has no hidden case")
    names = [t.name for t in (*spec.arguments, *spec.returns)]
    r.unique("arguments and returns", names)
    r.unique("counts.figures", [c.name for c in spec.counts])
    for name in spec.needs:
        if not re.fullmatch(r"\d\d_[a-z0-9_]+", name):
            r.fail("needs", f"names {name!r}, which is no puzzle id")
    for w in spec.wrong:
        if Path(w.file).name != w.file or not w.file.endswith(".py"):
            r.fail("wrong", f"names {w.file!r}; it is a .py file of the folder wrong/")
    for key in ("launches", "steps"):
        r.at_least(key, getattr(spec, key), 1)
    r.targets(spec)


def _check_kind(r: Reader, spec: Spec, top: Mapping[str, Any]) -> None:
    if spec.layout is None:
        if not spec.returns and not any(t.role != "in" for t in spec.arguments):
            r.fail("returns", "is empty and no argument is written", "give returns, or an argument with role 'out' or 'inout'")
    elif spec.kind != "layout":
        r.fail("layout", f"belongs to kind 'layout'; this puzzle's is {spec.kind!r}")
    elif spec.arguments or spec.returns:
        r.fail("layout", "says that the entry returns a layout, and there are arguments or returns as well", "leave one of them out")
    if top["debug"] and spec.kind != "debug":
        r.fail("debug", f"belongs to kind 'debug'; this puzzle's is {spec.kind!r}")
    if spec.kind == "debug":
        r.at_least("debug.best", spec.debug.best, 1)
        if spec.debug.rewrite and spec.debug.rewrite <= spec.debug.best:
            r.fail("debug.rewrite", f"is {spec.debug.rewrite}; it must be more than best, {spec.debug.best}")
        if spec.counts:
            r.fail("counts.figures", "is for other kinds: of a debug puzzle the size of the change is counted", "leave figures out")
    elif not spec.counts:
        r.fail("counts.figures", "is missing: 25 of the 100 points are for counts", "name at least one figure")
    if spec.speed and spec.kind != "kernel":
        r.fail("speed", f"is for kind 'kernel'; this puzzle's is {spec.kind!r}")
