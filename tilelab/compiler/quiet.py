"""Keep TileLang's own output (Python logging and C++ on file descriptor 2) away from the learner."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_lock = threading.RLock()
_depth = 0


class Said:
    """What was written on file descriptor 2 meanwhile: ``text`` is filled in when the block ends."""

    text: str = ""


@contextmanager
def quiet() -> Iterator[Said]:
    """Silence TileLang within the block; nested use is free.

    Only the outermost block redirects the descriptor, which belongs to the whole process.
    """
    global _depth
    said = Said()
    with _lock:
        _depth += 1
        outermost = _depth == 1
    logger = logging.getLogger("tilelang")
    level, disabled = logger.level, logging.root.manager.disable
    saved = -1
    sink = None
    if outermost:
        logger.setLevel(logging.CRITICAL + 1)
        with suppress(OSError):
            sink = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, after the descriptor is given back
            saved = os.dup(2)
            os.dup2(sink.fileno(), 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield said
    finally:
        if outermost:
            if saved >= 0:
                os.dup2(saved, 2)
                os.close(saved)
            if sink is not None:
                sink.seek(0)
                said.text = sink.read().decode("utf-8", "replace")
                sink.close()
            logger.setLevel(level)
            logging.disable(disabled)
        with _lock:
            _depth -= 1
