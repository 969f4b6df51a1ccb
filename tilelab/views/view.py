"""The View: data with several lowerings (text, SVG, HTML, matplotlib, live widget), all of the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tilelab.errors import InputError
from tilelab.files import write_text
from tilelab.views import encode, html
from tilelab.views.schema import VERSIONS

#: kind → module with ``text(view)``, ``svg(view)``, ``table(view, rows)`` and ``matplotlib(view)``
_LOWERINGS = {
    "conflict": "tilelab.views.conflict_view",
    "layout": "tilelab.views.layout_lower",
    "pipeline": "tilelab.views.pipeline_lower",
    "program": "tilelab.views.program_lower",
    "resources": "tilelab.views.resources_lower",
    "trace": "tilelab.views.trace_lower",
    "whatif": "tilelab.views.whatif_view",
}
FORMATS = ("text", "svg", "html", "json")
SUFFIXES = {".txt": "text", ".svg": "svg", ".html": "html", ".htm": "html", ".json": "json"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A picture of something, as data.

    Attributes:
        kind: Which view this is, e.g. ``"layout"``.
        title: What it shows.
        data: JSON values, and numpy arrays where the JSON has an encoded array (see :mod:`tilelab.views.schema`).
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.
    """

    kind: str
    title: str
    data: Mapping[str, Any]
    lang: str = "en"

    def to_json(self) -> dict[str, Any]:
        """Return the view as JSON values, with ``schema`` and ``version``; :meth:`from_json` reads it back."""
        head = {
            "schema": f"tilelab.view.{self.kind}",
            "version": VERSIONS[self.kind],
            "kind": self.kind,
            "title": self.title,
            "lang": self.lang,
        }
        return {**head, "data": encoded(self.data)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> View:
        """Return the view that was written as ``record``.

        Raises:
            InputError: It is not a view, or of a version unknown here.
        """
        kind, version = record.get("kind", ""), record.get("version")
        if kind not in VERSIONS or record.get("schema") != f"tilelab.view.{kind}":
            raise InputError(f"{record.get('schema')!r} is not the schema of a view", fix="give what View.to_json() returned")
        if version != VERSIONS[kind]:
            raise InputError(f"this {kind} view is of version {version}; this TileLab reads version {VERSIONS[kind]}", fix="draw it again")
        return View(kind=kind, title=record["title"], data=_decode(record["data"]), lang=record["lang"])

    def to_text(self) -> str:
        """Return the view as plain text, for a terminal."""
        return str(self._lowering().text(self))

    def to_svg(self) -> str:
        """Return one self-contained SVG picture; it follows the system's light or dark colours."""
        return str(self._lowering().svg(self))

    def to_html(self) -> str:
        """Return a page that opens from disk with no network: the live view, and the SVG and a table where scripts do not run."""
        return html.page([self])

    def to_matplotlib(self) -> Any:
        """Return the picture as a ``matplotlib.figure.Figure``."""
        return self._lowering().matplotlib(self)

    def table(self, rows: int = 256) -> tuple[list[str], list[list[str]]]:
        """Return the same content as a table: the header and at most ``rows`` rows of text."""
        header, body = self._lowering().table(self, rows)
        return header, body

    def widget(self) -> Any:
        """Return the live widget (anywidget); ``.selection`` follows what is hovered or pinned."""
        return import_module("tilelab.widgets").ViewWidget.of(self)  # a higher layer, asked for by name

    def render(self, fmt: str) -> str:
        """Return the view in one of :data:`FORMATS`."""
        if fmt == "json":
            return json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":"))
        if fmt not in FORMATS:
            raise InputError(f"no format is called {fmt!r}", fix=f"there are {', '.join(FORMATS)}")
        return str({"text": self.to_text, "svg": self.to_svg, "html": self.to_html}[fmt]())

    def save(self, path: str | Path) -> Path:
        """Write the view to ``path`` in the format of its suffix; the file appears whole or not at all.

        Raises:
            InputError: The suffix is none of .txt .svg .html .json, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path}: no format has the suffix {path.suffix!r}", fix=f"use {', '.join(SUFFIXES)}")
        write_text(path, self.render(SUFFIXES[path.suffix]))
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return text, and HTML that holds the SVG and the live view; a widget as well where a front end listens."""
        bundle: dict[str, Any] = {"text/plain": self.to_text(), "text/html": html.embed(self)}
        if html.front_end() and html.bundle(self.kind):
            bundle.update(self.widget().bundle())
        return bundle

    def _lowering(self) -> Any:
        return import_module(_LOWERINGS[self.kind])


def encoded(data: Any) -> Any:
    """Return ``data`` as JSON values: each array as :mod:`tilelab.views.encode` writes it."""
    return _map(data, np.ndarray, encode.encode)


def _map(value: Any, kind: type, fn: Any) -> Any:
    if isinstance(value, kind):
        return fn(value)
    if isinstance(value, Mapping):
        return {k: _map(v, kind, fn) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_map(v, kind, fn) for v in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "form" in value and "shape" in value:
            return encode.decode(value)
        return {k: _decode(v) for k, v in value.items()}
    return [_decode(v) for v in value] if isinstance(value, list) else value
