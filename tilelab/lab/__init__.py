"""TileLab inside Jupyter: the server's half of the lab extension, and what the Check button runs in the kernel.

Nothing heavy is imported here: every Jupyter server on which TileLab is installed imports this package when it starts.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "tilelab.lab"}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "../labextension", "dest": "tilelab"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Add the REST handlers to a Jupyter server."""
    from tilelab.lab.handlers import add_handlers

    add_handlers(server.web_app)
    server.log.info("TileLab: puzzles at %s", server.web_app.settings["base_url"] + "tilelab/api/puzzles")
