"""Sphinx's settings for the manual: `make docs` writes it to build/docs."""

import importlib.metadata

project = "fullpipe"
author = "the fullpipe authors"
release = importlib.metadata.version("fullpipe")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# Lexers that Pygments has not: shown as text.
suppress_warnings = ["misc.highlighting_failure"]
# A block without a language is a drawing or output, not Python.
highlight_language = "none"

html_theme = "furo"
html_title = "fullpipe"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_show_sourcelink = False
html_show_copyright = False
