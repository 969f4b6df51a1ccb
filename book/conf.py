"""Settings of TileLab's own book."""

from tilelab.sphinx_conf import *  # noqa: F403

project = "TileLab"
author = "The TileLab authors"
copyright = "2026, the TileLab authors"
html_title = "TileLab"
language = "en"
