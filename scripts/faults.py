"""Do the tests see a small fault? Sets faults into the sources one at a time and runs a command:

    python scripts/faults.py FAULTS.toml cargo test -p fullpipe-net

FAULTS.toml has tables [[fault]] with `file`, `old` (a text that is there once) and `new`, such as a
turned sign, an off by one, a dropped condition or another unit; `kind` and `effect` say which it is
and what somebody would see of it. A fault is killed if the command fails, also because it takes all
of its CPU time. The file is as it was behind each. Work in a git worktree of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: CPU seconds of a process: a fault may make a loop endless.
CPU_S = 300


def outcome(fault: dict[str, str], command: list[str]) -> str:
    """killed or survived by the command; stale if its text is not there just once."""
    file = ROOT / fault["file"]
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text.count(fault["old"]) != 1:
        return "stale"
    file.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=_limit, check=False,
        )  # fmt: skip
    finally:
        file.write_text(text, encoding="utf-8")
    return "killed" if done.returncode else "survived"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not given.command:
        parser.error("name the command that runs the tests")
    if subprocess.run(given.command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode:
        parser.error("the command fails without a fault too")
    counts: Counter[str] = Counter()
    for fault in tomllib.loads(given.faults.read_text(encoding="utf-8"))["fault"]:
        found = outcome(fault, given.command)
        counts[found] += 1
        print(f"{found:9} {fault['file']}: {fault.get('effect', fault['new'])}", flush=True)
    print(", ".join(f"{count} {found}" for found, count in sorted(counts.items())))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
