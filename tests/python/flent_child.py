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

#: What one process and one file may take: address space, and CPU time.
MOST_BYTES, MOST_CPU_S = 10**9, 5.0


def main() -> None:
    """Reads names, imports each, reports."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        for index, name in enumerate(sys.stdin.read().splitlines()):
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
            try:
                import_flent(read_flent(name), Path(folder) / str(index))
                outcome = "imported"
            except UserError as error:
                outcome = f"refused: {error}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - begin
            print(json.dumps({"file": name, "outcome": outcome, "cpu_s": seconds}), flush=True)
    print(json.dumps({"peak_kib": peak_kib()}))


def peak_kib() -> int:
    """This process's own peak; getrusage's would include the parent's from before exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("/proc/self/status names no VmHWM")


if __name__ == "__main__":
    main()
