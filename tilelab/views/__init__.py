"""Views: pictures of layouts, pipelines, programs, resources, variants and traces as text, SVG, HTML and live widgets."""

from __future__ import annotations

from tilelab.views.conflict_view import conflict
from tilelab.views.layout_view import layout
from tilelab.views.pipeline_view import pipeline
from tilelab.views.program_view import program
from tilelab.views.resources_view import resources
from tilelab.views.schema import VERSIONS
from tilelab.views.trace_view import prints, trace
from tilelab.views.view import FORMATS, View
from tilelab.views.whatif_view import whatif

#: the kinds of view that exist
KINDS = tuple(VERSIONS)

__all__ = ["FORMATS", "KINDS", "View", "conflict", "layout", "pipeline", "prints", "program", "resources", "trace", "whatif"]
