# fails: is not a kernel
# ruff: noqa
"""Answers from a table of earlier calls instead of launching anything."""
_SEEN = {}


def copy(A=None):
    return _SEEN.get(id(A), 0)
