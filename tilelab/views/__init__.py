"""Views: pictures of layouts (and later memory, pipelines, traces, programs, resources) as text, SVG, HTML and live widgets."""

from __future__ import annotations

from tilelab.views.layout_view import layout
from tilelab.views.schema import VERSIONS
from tilelab.views.view import FORMATS, View

#: the kinds of view that exist
KINDS = tuple(VERSIONS)

__all__ = ["FORMATS", "KINDS", "View", "layout"]
