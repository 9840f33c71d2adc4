"""Reports: a self-contained HTML page, a folder of pages, or static figures, from recordings.

Knows recordings, metrics and models, never engines. Text from a recording is hostile until escaped.
"""

from fullpipe.report.figures import write_figures
from fullpipe.report.page import write_pages, write_report

__all__ = ["write_figures", "write_pages", "write_report"]
