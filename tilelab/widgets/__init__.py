"""Live widgets (anywidget) for views, in any Jupyter front end."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from tilelab.errors import EnvironmentLacks
from tilelab.views import html

if TYPE_CHECKING:
    from tilelab.views import View


class ViewWidget(anywidget.AnyWidget):
    """A live view.

    Attributes:
        view: The view's JSON; setting another redraws it.
        selection: What the reader points at or has pinned: ``{"buffer", "element", "thread", "register", "word", "pinned"}``.
    """

    view = traitlets.Dict().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    @classmethod
    def of(cls, view: View) -> ViewWidget:
        """Return the widget that draws ``view``.

        Raises:
            EnvironmentLacks: The bundle of this kind was not built.
        """
        code = html.bundle(view.kind)
        if not code:
            raise EnvironmentLacks(
                f"the live {view.kind} view was not built into this installation", fix="run `npm ci && npm run build` in visualizers/"
            )
        return _kind(view.kind, code)(view=view.to_json())

    def bundle(self) -> dict[str, Any]:
        """Return the MIME bundle that makes a front end show this widget."""
        return {"application/vnd.jupyter.widget-view+json": {"version_major": 2, "version_minor": 0, "model_id": self.model_id}}


@cache
def _kind(kind: str, code: str) -> type[ViewWidget]:
    return type(f"{kind.capitalize()}Widget", (ViewWidget,), {"_esm": code, "__module__": __name__})
