"""Reports: a self-contained HTML page, a folder of pages, or static figures, from recordings.

Knows recordings, metrics and models, never engines. Text from a recording is hostile until escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullpipe.base.deferred import deferred

if TYPE_CHECKING:
    from fullpipe.report.figures import write_figures
    from fullpipe.report.page import write_pages, write_report

__all__ = ["write_figures", "write_pages", "write_report"]

# Who wants a page does not wait for matplotlib.
__getattr__ = deferred(
    __name__, {"figures": ["write_figures"], "page": ["write_pages", "write_report"]}
)
