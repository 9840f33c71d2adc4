"""What processes of a benchmark take: CPU time and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path


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
