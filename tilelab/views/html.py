"""HTML: the state as JSON, the bundle inlined, a shim in place of a widget's model, and the SVG and a table where no script runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tilelab.views.style import MONO, SANS, theme_css
from tilelab.views.words import word

if TYPE_CHECKING:
    from tilelab.views.view import View

STATIC = Path(__file__).parent.parent / "static"

# The page asks for nothing from anywhere, and says so to the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' blob:; img-src data:"

_CSS = (
    theme_css(".tilelab-view")
    + f".tilelab-view{{font:14px/1.45 {SANS};color:var(--tl-ink);max-width:100%}}"
    + ".tilelab-view svg{max-width:100%;height:auto}"
    + ".tilelab-view[data-live] .tl-still{display:none}"
    + ".tilelab-view .tl-still table{border-collapse:collapse;margin:8px 0}"
    + f".tilelab-view .tl-still :is(td,th){{font:12px {MONO};text-align:left;"
    + "padding:2px 10px 2px 0;border-bottom:1px solid var(--tl-line)}"
    + ".tilelab-view .tl-still summary{cursor:pointer;color:var(--tl-soft);font-size:13px}"
)

_BOOT = """(function (me) {
  const root = (me && me.closest && me.closest(".tilelab-view")) || document.querySelector(".tilelab-view:not([data-live])");
  const text = (name) => root.querySelector("script." + name).textContent;
  const find = "script.tl-code[data-kind='" + root.dataset.kind + "']";
  const code = (root.querySelector(find) || document.querySelector(find)).textContent;
  const state = { view: JSON.parse(text("tl-data")), selection: {} }, on = {};
  const model = { get: (k) => state[k], set: (k, v) => { state[k] = v; (on["change:" + k] || []).forEach((f) => f()); },
    on: (e, f) => { (on[e] = on[e] || []).push(f); }, off: () => {}, save_changes: () => {} };
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  import(url)
    .then((m) => { root.dataset.live = ""; m.default.render({ model, el: root.querySelector(".tl-live") }); URL.revokeObjectURL(url); })
    .catch((e) => { delete root.dataset.live; console.warn("TileLab: the still picture stays:", e); });
})(document.currentScript);"""


def page(views: Sequence[View], *, title: str = "") -> str:
    """Return one self-contained page with ``views``; code shared by several is written once."""
    name = title or (views[0].title if views else "TileLab")
    lang = "zh-CN" if views and views[0].lang.startswith("zh") else "en"
    codes = "".join(_code(kind) for kind in dict.fromkeys(v.kind for v in views))
    body = "\n".join(_section(v, "") for v in views)
    return (
        f'<!doctype html>\n<html lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(name)}</title><style>{theme_css(':root')}body{{margin:24px;background:var(--tl-paper)}}</style></head>\n"
        f"<body>{codes}<main>{body}</main></body></html>\n"
    )


def embed(view: View) -> str:
    """Return ``view`` as a piece of HTML for a notebook's output or a page of the book."""
    return _section(view, _code(view.kind))


def _section(view: View, code: str) -> str:
    data = json.dumps(view.to_json(), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    live = f'<script type="application/json" class="tl-data">{data}</script>{code}<script>{_BOOT}</script>' if bundle(view.kind) else ""
    return (
        f'<div class="tilelab-view" data-kind="{view.kind}"><style>{_CSS}</style>'
        f'<div class="tl-live"></div><div class="tl-still">{view.to_svg()}{table(view)}</div>{live}</div>'
    )


def table(view: View, rows: int = 128) -> str:
    """Return the accessible table behind the picture, folded."""
    header, body = view.table(rows)
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in header)
    lines = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in body)
    grid = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return f"<details><summary>{escape(word('show_table', view.lang))}</summary>{grid}</details>"


def bundle(kind: str) -> str:
    """Return the ES module that draws ``kind``, or nothing where it was not built: the still picture shows then."""
    path = STATIC / f"{kind}.js"
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else ""


@cache
def _read(path: Path, _stamp: int) -> str:
    return path.read_text(encoding="utf-8")


def _code(kind: str) -> str:
    code = bundle(kind)
    safe = code.replace("</script", "<\\/script")
    return f'<script type="text/plain" class="tl-code" data-kind="{kind}">{safe}</script>' if code else ""


def front_end() -> bool:
    """Return whether a Jupyter kernel runs this process and widgets can be made, so that a front end may show one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None and find_spec("anywidget") is not None
