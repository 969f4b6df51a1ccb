"""The REST interface of the lab extension, behind the login of the Jupyter server.

| request | answer |
|---|---|
| ``GET  tilelab/api/puzzles?lang=en`` | the list of :meth:`tilelab.lab.shelf.Shelf.listing` |
| ``POST tilelab/api/open`` with ``{"puzzle", "lang"}`` | the learner's copy, made if it was missing: ``{"id", "path", "created"}`` |
| ``GET  tilelab/api/progress`` | ``{"solved", "total", "puzzles": {id: {"state", "score", "max"}}}`` |

A request that makes no sense is answered with 400, an unknown puzzle with 404, each with one sentence in ``message``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated

from tilelab.errors import InputError, TileLabError
from tilelab.lab.shelf import LANGUAGES, Shelf


def add_handlers(app: Any) -> None:
    """Add the handlers of this module to a tornado application of the Jupyter server."""
    base = url_path_join(app.settings["base_url"], "tilelab", "api")
    routes = {"puzzles": PuzzlesHandler, "open": OpenHandler, "progress": ProgressHandler}
    app.add_handlers(".*$", [(url_path_join(base, name), handler) for name, handler in routes.items()])


class _Handler(APIHandler):
    """What the handlers share: the shelf, the language, and errors as one sentence."""

    def shelf(self) -> Shelf:
        root = getattr(self.contents_manager, "root_dir", None)
        if not root:
            raise HTTPError(501, "TileLab needs a Jupyter server that keeps its files in a folder")
        return Shelf(root=Path(root))

    def language(self, given: object) -> str:
        if given not in LANGUAGES:
            raise InputError(f"unknown language {given!r}", fix=f"Use one of: {', '.join(LANGUAGES)}")
        return str(given)

    async def answer(self, work: Any, *args: Any) -> None:
        """Do ``work(*args)`` in a thread, so that the server goes on serving, and answer with what it returns."""
        try:
            result = await asyncio.to_thread(work, *args)
        except TileLabError as error:
            unknown = getattr(error, "unknown_puzzle", False)
            self.refuse(404 if unknown else 400, str(error))
            return
        self.finish(json.dumps(result))

    def refuse(self, status: int, message: str) -> None:
        self.set_status(status)
        self.finish(json.dumps({"message": message}))


class PuzzlesHandler(_Handler):
    """The list of puzzles."""

    @authenticated
    async def get(self) -> None:
        """Answer with every puzzle, its texts in the language asked for, and how far the learner is."""
        await self.answer(lambda: self.shelf().listing(self.language(self.get_query_argument("lang", "en"))))


class ProgressHandler(_Handler):
    """How far the learner is."""

    @authenticated
    async def get(self) -> None:
        """Answer with the state and score of each puzzle, and how many are solved."""
        await self.answer(lambda: self.shelf().progress())


class OpenHandler(_Handler):
    """Opening a puzzle."""

    @authenticated
    async def post(self) -> None:
        """Copy the puzzle's notebook into the learner's folder unless a copy is there, and answer where it is."""
        body = self.get_json_body()
        if not isinstance(body, dict) or not isinstance(body.get("puzzle"), str):
            self.refuse(400, 'the body must be a JSON object such as {"puzzle": "1_copy", "lang": "en"}')
            return
        await self.answer(lambda: self.shelf().open(body["puzzle"], self.language(body.get("lang", "en"))))
