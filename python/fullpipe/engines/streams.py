"""What an agent wrote, as tables. The states of algorithms from files are read by their own code,
in a worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles

#: Bytes of tables for a byte of a stream, whose numbers are packed, and of any stream.
_GROWTH, _LEAST_BYTES = 32, 1 << 26


def decoded(stream: bytes, algorithms: Iterable[str | None]) -> dict[str, Any]:
    """As `_native.stream.decode`, where a flow may run any of these algorithms. Raises UserError if
    one of a file fails."""
    from_files = sorted({name for name in algorithms if name and userfiles.is_external(name)})
    if not from_files:
        return _native.stream.decode(stream)
    most = _LEAST_BYTES + _GROWTH * len(stream)
    bounds = userfiles.Bounds(blob_bytes=most)
    answer = userfiles.ask(from_files, "decode", {}, [stream], bounds=bounds)
    try:
        trace, *blobs = answer.blobs
        value = answer.value
        return {
            "tables": userfiles.unpacked(value["tables"], blobs),
            "facts": [(str(name), str(text)) for name, text in value["facts"]],
            "figures": [(str(name), float(number)) for name, number in value["figures"]],
            "problems": [str(problem) for problem in value["problems"]],
            "failure": None if value["failure"] is None else str(value["failure"]),
            "progress_ns": int(value["progress_ns"]),
            "complete": bool(value["complete"]),
            "trace": trace,
        }
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"the tables of this run are forged: {error}") from None
