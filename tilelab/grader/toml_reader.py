"""Checks of the keys and values of one TOML file; whatever is wrong is one line that names the file, the key and a remedy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tilelab.errors import InputError
from tilelab.grader import shapes

if TYPE_CHECKING:
    from tilelab.grader.spec import Spec

MUST = object()  #: in place of a default: the key must be there
#: key → (type, default)
Keys = Mapping[str, tuple[type, Any]]
_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


class Reader:
    """Checks of one file, called ``path`` in messages."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, key: str, problem: str, fix: str = "see puzzles/SCHEMA.md") -> NoReturn:
        """Say what is wrong with ``key``."""
        raise InputError(f"{self.path}: {key} {problem}", fix=fix)

    def table(self, data: Any, where: str, keys: Keys) -> dict[str, Any]:
        """Return the values of a table by key, defaults filled in."""
        if not isinstance(data, Mapping):
            self.fail(where, f"must be a table, not {data!r}")
        prefix = f"{where}." if where else ""
        for k in data:
            if k not in keys:
                self.fail(f"{prefix}{k}", "is not a key of the schema", f"known here: {', '.join(keys)}")
        out: dict[str, Any] = {}
        for k, (kind, default) in keys.items():
            if k not in data:
                if default is MUST:
                    self.fail(f"{prefix}{k}", "is missing")
                out[k] = default
                continue
            value = float(data[k]) if kind is float and type(data[k]) is int else data[k]
            odd = isinstance(value, bool) and kind is not bool
            if kind is not object and (not isinstance(value, kind) or odd or value != value):
                self.fail(f"{prefix}{k}", f"must be {_NAMES[kind]}, not {value!r}")
            out[k] = value
        return out

    def choice(self, where: str, value: Any, known: Collection[str]) -> None:
        """Check that ``value`` is one of ``known``."""
        if not isinstance(value, str) or value not in known:
            self.fail(where, f"is {value!r}", f"use one of {', '.join(known)}")

    def at_least(self, where: str, value: float, least: float) -> None:
        """Check that ``value`` is not below ``least``."""
        if value < least:
            self.fail(where, f"is {value:g}; it must be {least:g} or more")

    def strings(self, where: str, values: Sequence[Any]) -> Sequence[str]:
        """Check a list of strings."""
        for v in values:
            if not isinstance(v, str):
                self.fail(where, f"must be a list of strings, and holds {v!r}")
        return values

    def unique(self, where: str, names: Sequence[str]) -> None:
        """Check that no name comes twice."""
        for name in names:
            if names.count(name) > 1:
                self.fail(where, f"has {name!r} twice", "give each its own name")

    def sizes(self, data: Any, where: str) -> dict[str, int]:
        """Check a table of sizes."""
        if not isinstance(data, Mapping) or not all(type(v) is int and v >= 0 for v in data.values()):
            self.fail(where, "must give a whole number for each size, as in { N = 128 }")
        return dict(data)

    def shape(self, where: str, values: Sequence[Any]) -> tuple[str | int, ...]:
        """Check a list of shape expressions."""
        for i, v in enumerate(values):
            self.expression(f"{where}[{i}]", v)
        return tuple(values)

    def expression(self, where: str, value: Any) -> None:
        """Check that ``value`` is a whole number or a shape expression."""
        if type(value) is int:
            return
        if not isinstance(value, str):
            self.fail(where, f"must be a whole number or an expression of sizes, not {value!r}")
        try:
            shapes.evaluate(value, dict.fromkeys(shapes.names(value), 1))
        except InputError as e:
            self.fail(where, f"is {value!r}: {e.message}", e.fix or "see puzzles/SCHEMA.md")

    def value(self, where: str, expression: str | int, sizes: Mapping[str, int]) -> None:
        """Check that an expression has a value that can be an extent for the given sizes."""
        try:
            value = shapes.evaluate(expression, sizes)
        except InputError as e:
            self.fail(where, f"does not go with {expression!r}: {e.message}")
        if value < 0 and isinstance(expression, str):
            self.fail(where, f"makes {expression!r} {value}", "choose sizes for which no extent is negative")

    def targets(self, spec: Spec) -> None:
        """Check that the named GPUs exist."""
        from tilelab.machine import canonical_target

        for key in ("arch", "min_arch"):
            try:
                canonical_target(getattr(spec, key))
            except InputError as e:
                self.fail(key, f"is {getattr(spec, key)!r}, which is no target", e.fix or "use sm_80")
