"""Reports: a self-contained HTML page, a folder of pages, or static figures, from recordings.

Knows recordings, metrics and models, never engines. Text from a recording is hostile until escaped.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullpipe.report.figures import write_figures
    from fullpipe.report.page import write_pages, write_report

__all__ = ["write_figures", "write_pages", "write_report"]

_HOMES = {"write_figures": "figures", "write_pages": "page", "write_report": "page"}


def __getattr__(name: str) -> Any:
    """Loads what is asked for and no more: who wants a page does not wait for matplotlib."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
