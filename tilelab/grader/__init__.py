"""Grading: submissions run confined, only Programs come out, and those are judged here. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "grade": "tilelab.grader.grading",
    "grade_kernel": "tilelab.grader.grading",
    "Report": "tilelab.grader.report",
    "Check": "tilelab.grader.report",
    "Spec": "tilelab.grader.spec",
    "load_spec": "tilelab.grader.schema",
    "Limits": "tilelab.grader.sandbox",
}
__all__ = ["Check", "Limits", "Report", "Spec", "grade", "grade_kernel", "load_spec"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab.grader' has no attribute {name!r}")
