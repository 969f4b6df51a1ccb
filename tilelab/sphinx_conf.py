"""Sphinx settings for books with TileLab: executed pages, live pictures, and nothing from the network.

A book's ``conf.py`` starts with ``from tilelab.sphinx_conf import *``.
"""

from __future__ import annotations

from typing import Any

extensions = ["myst_nb"]
html_theme = "sphinx_book_theme"
html_theme_options: dict[str, Any] = {"use_download_button": False, "use_fullscreen_button": False, "home_page_in_toc": True}
html_copy_source = False
html_show_sourcelink = False
exclude_patterns = ["_build", "**.ipynb_checkpoints", "README.md"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "text/html", 0)]  # our own HTML, which stands alone, before a widget's
nb_ipywidgets_js: dict[str, Any] = {}  # the widget manager would come from a CDN

__all__ = [name for name in dir() if name.startswith(("extensions", "html_", "exclude_", "myst_", "nb_"))]
