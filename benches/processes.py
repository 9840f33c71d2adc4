"""What processes of a benchmark and runs of the simulator take: CPU time and memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: The command line, as an installed script runs it.
PROGRAM = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"


def simulated(document: dict[str, Any], **options: Any) -> tuple[dict[str, Any], float]:
    """What the simulator says of a run of a scenario, and its CPU seconds. `options` are those of
    `_native.sim.run`."""
    plan = json.dumps(resolve(make_scenario(document)))
    begin = time.process_time()
    health: dict[str, Any] = _native.sim.run(plan, **options)["health"]
    return health, time.process_time() - begin


def cpu_of(pid: int, with_children: bool = True) -> float:
    """CPU time of a process so far, and of its children that have ended (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


def children_cpu_s() -> float:
    """User and system time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_kib(module: str, call: str) -> int:
    """Peak memory of a process of its own that makes a call of a benchmark's module. A child's
    `ru_maxrss` begins with its parent's, so the kernel's own high-water mark is read (proc(5))."""
    code = (
        f"import {module}, re;{module}.{call};"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(answer.stdout)
