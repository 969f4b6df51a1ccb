"""Errors a user can cause. Each message says what was given, why it fails and what to try."""

from __future__ import annotations

from typing import Any


class TileLabError(Exception):
    """Base of all TileLab errors; ``exit_code`` is what the command line answers with."""

    exit_code = 2

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(f"{message}. {fix}" if fix else message)
        self.message = message
        self.fix = fix


class InputError(TileLabError):
    """A command, file, option or tensor is wrong (exit code 2)."""


class EnvironmentLacks(TileLabError):
    """The environment lacks something; ``fix`` says how to get it (exit code 3)."""

    exit_code = 3


class VerifyError(TileLabError):
    """A Program breaks the grammar of :mod:`tilelab.ir` or holds something that may not cross the trust boundary.

    ``what`` names the thing; ``loc`` is the :class:`tilelab.ir.SourceLoc` of its statement, where known.
    """

    what: str = ""
    loc: Any = None
