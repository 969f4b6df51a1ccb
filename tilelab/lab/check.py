"""What the Check button runs in the kernel: check what a cell has defined and show the report below it.

The picture is the report's own; beside it lies a small JSON (:data:`REPORT`) that says to the extension how it went.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from tilelab.errors import TileLabError
from tilelab.finding import Finding, KernelRefused

REPORT = "application/vnd.tilelab.report+json"

_WORDS: Mapping[str, tuple[str, str]] = {
    "clean": ("Nothing is wrong with it.", "没有发现问题。"),
    "none": ("This cell defines no TileLang kernel.", "此单元格没有定义 TileLang 内核。"),
    "undefined": (
        "This notebook has defined no `{name}` yet. Run the cell that defines it.",
        "此笔记本尚未定义 `{name}`。请运行定义它的单元格。",
    ),
    "try": ("Try", "试试"),
    "line": ("line", "第 {line} 行"),
    "error": ("error", "错误"),
    "warning": ("warning", "警告"),
    "info": ("note", "提示"),
}


def check_cell(puzzle: str | None, lang: str, source: str) -> None:
    """Check the solution of ``puzzle``, or else each kernel that the cell's ``source`` defines, and display the report.

    What the learner did wrong is part of the report; nothing is raised for it.
    """
    from IPython import get_ipython

    shell = get_ipython()
    say = _Say(lang)
    try:
        data, verdict = _puzzle(puzzle, shell.user_ns, say) if puzzle else _cell(source, shell.user_ns, say)
    except (TileLabError, KernelRefused) as error:
        data, verdict = _sentence(str(error), bad=True), _verdict(puzzle, passed=False)
    shell.display_pub.publish({**data, REPORT: verdict})


class _Say:
    """The words of this module in one language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __call__(self, key: str, **values: Any) -> str:
        return _WORDS[key][self.lang == "zh"].format(**values)


def _puzzle(name: str, namespace: Mapping[str, Any], say: _Say) -> tuple[dict[str, Any], dict[str, Any]]:
    from tilelab.course import puzzle as named

    puzzle = named(name, say.lang)
    entry = puzzle.spec.entry
    if entry not in namespace:
        return _sentence(say("undefined", name=entry), bad=True), _verdict(puzzle.id, passed=False)
    report = puzzle.check(namespace[entry])
    result = report.to_json()
    return _bundle(report), _verdict(puzzle.id, passed=result["passed"], score=result["score"], max=result["max"])


def _cell(source: str, namespace: Mapping[str, Any], say: _Say) -> tuple[dict[str, Any], dict[str, Any]]:
    from tilelab.api import check

    found: list[tuple[str, Sequence[Finding]]] = []
    for name in kernels_in(source, namespace):
        try:
            found.append((name, check(namespace[name])))
        except KernelRefused as refused:
            found.append((name, (refused.finding,)))
    if not found:
        return _sentence(say("none"), bad=True), _verdict(None, passed=False)
    passed = not any(f.severity == "error" for _, findings in found for f in findings)
    text = "\n".join(f"{name}: {line}" for name, findings in found for line in (map(str, findings) if findings else [say("clean")]))
    return {"text/plain": text, "text/html": _findings_html(found, say)}, _verdict(None, passed=passed)


def kernels_in(source: str, namespace: Mapping[str, Any]) -> list[str]:
    """Return the names bound at the top of ``source`` that hold a TileLang kernel in ``namespace``, in order."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with magics, or one that did not run
        return []
    return [name for name in dict.fromkeys(_bound(tree)) if _is_kernel(namespace.get(name))]


def _bound(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (t.id for t in targets if isinstance(t, ast.Name))


def _is_kernel(value: object) -> bool:
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return (package == "tilelang" and "JIT" in kind.__name__) or kind.__name__ == "PrimFunc"


def _verdict(puzzle: str | None, *, passed: bool, score: float | None = None, max: float | None = None) -> dict[str, Any]:
    return {"puzzle": puzzle, "passed": passed, "score": score, "max": max}


def _bundle(report: Any) -> dict[str, Any]:
    """Return what Jupyter would show for ``report``."""
    if hasattr(report, "_repr_mimebundle_"):
        bundle = report._repr_mimebundle_()
        return dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    bundle = {"text/plain": str(report)}
    if hasattr(report, "_repr_html_"):
        bundle["text/html"] = report._repr_html_()
    return bundle


# ------------------------------------------------------------------------------------------------ HTML
_TONE = {"error": "var(--jp-error-color1,#c62828)", "warning": "var(--jp-warn-color1,#b26a00)", "info": "var(--jp-info-color1,#0277bd)"}


def _sentence(text: str, *, bad: bool) -> dict[str, Any]:
    tone = _TONE["error" if bad else "info"]
    return {"text/plain": text, "text/html": f'<div style="border-left:3px solid {tone};padding:6px 12px">{escape(text)}</div>'}


def _findings_html(found: Sequence[tuple[str, Sequence[Finding]]], say: _Say) -> str:
    parts = []
    for name, findings in found:
        good = not any(f.severity == "error" for f in findings)
        tone = "var(--jp-success-color1,#1a7f4b)" if good else _TONE["error"]
        rows = "".join(_finding_html(f, say) for f in findings) or f'<div style="margin-top:2px">{say("clean")}</div>'
        parts.append(f'<div style="border-left:3px solid {tone};padding:6px 12px;margin:4px 0"><code>{escape(name)}</code>{rows}</div>')
    return "".join(parts)


def _finding_html(f: Finding, say: _Say) -> str:
    line = f" · {say('line', line=f.line)}{'' if say.lang == 'zh' else f' {f.line}'}" if f.line else ""
    fix = f'<div style="opacity:.8"><i>{say("try")}:</i> {escape(f.fix)}</div>' if f.fix else ""
    return (
        f'<div style="margin-top:6px"><b style="color:{_TONE[f.severity]}">{say(f.severity)} {f.code}</b>'
        f'<span style="opacity:.7">{line}</span><div>{escape(f.message)}</div>{fix}</div>'
    )
