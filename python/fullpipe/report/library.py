"""Plotly's script, which pages bring along. Knows no page."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def script() -> bytes:
    """The script, UTF-8. Found without loading the package, which asks for its version in a tenth
    of a page's time."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("plotly: a part of this program's installation is missing")
    return (
        Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    ).read_bytes()


def file_name() -> str:
    """What a file of it is called, its version among it."""
    import plotly

    return f"plotly-{plotly.__version__}.min.js"
