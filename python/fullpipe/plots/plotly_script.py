"""Plotly's script, which pages carry along. This module must not know a page."""

from __future__ import annotations

from importlib.metadata import version

from markupsafe import Markup
from plotly.offline import get_plotlyjs


def script() -> str:
    """The text of the script, some 5 MB."""
    text: str = get_plotlyjs()
    return text


def inline() -> Markup:
    """The script as an element of a page."""
    return Markup("<script>") + Markup(script()) + Markup("</script>")


def file_name() -> str:
    """The name of a file with the script; it contains Plotly's version."""
    return f"plotly-{version('plotly')}.min.js"
