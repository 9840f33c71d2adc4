"""Imports the Flent files named on stdin, one a line; prints one JSON line for each and a last one
with the peak memory. A process of its own, so that memory, hangs and crashes are its alone: the
kernel ends it beyond either limit."""

from __future__ import annotations

import json
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.flent import import_flent, read_flent

#: What one process may take: address space.
MOST_BYTES = 10**9
#: What one file may take: the CPU time of parsing so many numbers as JSON on the machine that runs
#: this. A file within the bounds has 1.5 million and took the time of 10 million.
MOST_NUMBERS, TIMED_NUMBERS = 30_000_000, 300_000


def main() -> None:
    """Reads names, imports each, reports."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    most_cpu_s = parse_cpu_s() * MOST_NUMBERS / TIMED_NUMBERS
    with tempfile.TemporaryDirectory() as folder:
        for index, name in enumerate(sys.stdin.read().splitlines()):
            signal.setitimer(signal.ITIMER_PROF, most_cpu_s)
            try:
                import_flent(read_flent(name), Path(folder) / str(index))
                outcome = "imported"
            except UserError as error:
                outcome = f"refused: {error}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(json.dumps({"file": name, "outcome": outcome}), flush=True)
    print(json.dumps({"peak_kib": peak_kib()}))


def parse_cpu_s() -> float:
    """The CPU time of parsing `TIMED_NUMBERS`."""
    text = "[" + ",".join(f"{number}.5" for number in range(TIMED_NUMBERS)) + "]"
    begin = time.process_time()
    json.loads(text)
    return time.process_time() - begin


def peak_kib() -> int:
    """This process's own peak; getrusage's would include the parent's from before exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("/proc/self/status names no VmHWM")


if __name__ == "__main__":
    main()
