"""What code of algorithms from files may take, as the environment says it."""

from __future__ import annotations

import os

from fullpipe.base.errors import UserError

#: Seconds that a worker computes or sleeps without any simulated time, after which it is stopped.
STALL_S = "FULLPIPE_ALGORITHM_STALL_S"
DEFAULT_STALL_S = 10.0
#: MiB of address space that a worker may take.
MEMORY_MIB = "FULLPIPE_ALGORITHM_MEMORY_MIB"
DEFAULT_MEMORY_MIB = 4096
#: MiB of a file that a worker writes, and of the rows that it sends in a run.
OUTPUT_MIB = "FULLPIPE_ALGORITHM_OUTPUT_MIB"
DEFAULT_OUTPUT_MIB = 8192
#: Most threads of a worker: the host's process ids are for all.
MOST_THREADS = 256


def stall_s() -> float:
    """The limit that STALL_S sets. Raises UserError where it is no number above 0."""
    return _number(STALL_S, DEFAULT_STALL_S)


def memory_bytes() -> int:
    """The limit that MEMORY_MIB sets. Raises UserError where it is no number above 0."""
    return int(_number(MEMORY_MIB, DEFAULT_MEMORY_MIB) * 2**20)


def output_bytes() -> int:
    """The limit that OUTPUT_MIB sets. Raises UserError where it is no number above 0."""
    return int(_number(OUTPUT_MIB, DEFAULT_OUTPUT_MIB) * 2**20)


def too_large(most_bytes: int) -> str:
    """The message about output beyond its limit."""
    return f"more than {most_bytes / 2**20:g} MiB of output ({OUTPUT_MIB} sets the limit)"


def _number(name: str, default: float) -> float:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UserError(f"{name}: {text!r}: must be a number above 0")
    return value
