"""Reads and writes Flent's files: `read_flent`, `import_flent`, `export_flent`. Rates are by bytes;
Flent's interpolated series are used only on request."""

from fullpipe.flent.container import FlentError
from fullpipe.flent.description import left_out, warnings_of
from fullpipe.flent.document import FlentFile, read_flent
from fullpipe.flent.exporting import export_flent
from fullpipe.flent.identity import Identity, identify, mislabelled
from fullpipe.flent.importing import import_flent
from fullpipe.flent.series import FlowTotal, flow_totals, interpolated, ping_rtts_ms, total_bps
from fullpipe.flent.shapes import TESTS

__all__ = [
    "TESTS",
    "FlentError",
    "FlentFile",
    "FlowTotal",
    "Identity",
    "export_flent",
    "flow_totals",
    "identify",
    "import_flent",
    "interpolated",
    "left_out",
    "mislabelled",
    "ping_rtts_ms",
    "read_flent",
    "total_bps",
    "warnings_of",
]
