"""What one waits for that is not the simulation: CPU seconds of help and completion, and of `run`
beyond the simulator itself, for a scenario of 60 s; of a congestion control in a file its first
run, `cc new` included, and what a later one costs beyond a built-in's.

Targets: help and completion 0.25 s, `run` with a page 0.8 s, without one 0.3 s; a file's first run
60 s, a later one 0.2 s beyond the built-in's. The least of some tries counts (of a file the median
of pairs): CPU time grows where other programs share the caches. Modules are compiled, as those of
an installed wheel are. Exit status 1: a target missed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from installed import compile_modules

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import make_scenario

PROGRAM = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"
TRIES = 5
SCENARIO = """
duration = "60s"
path = { rate = "10mbit", rtt = "40ms", buffer = "1bdp" }
flow = [{ cc = "bbr3" }, { cc = "cubic" }]
probe = [{ kind = "ping" }]
"""


def cpu_s(*words: str, **variables: str) -> float:
    """The least CPU time of a process of `fullpipe`, its children included."""
    found = []
    for index in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *(word.replace("{}", str(index)) for word in words)],
            check=True, capture_output=True, env={**os.environ, **variables},
        )  # fmt: skip
        found.append(_between_s(before, resource.getrusage(resource.RUSAGE_CHILDREN)))
    return min(found)


def simulator_s(file: Path) -> float:
    """The least CPU time of the simulator alone."""
    plan = json.dumps(resolve(make_scenario(load_document(file))))
    found = []
    for _ in range(TRIES):
        begin = time.process_time()
        _native.sim.run(plan)
        found.append(time.process_time() - begin)
    return min(found)


def own_file_s(folder: Path) -> tuple[float, float]:
    """CPU seconds of a file's first run, `cc new` included; and the median of what later runs cost
    beyond those of Reno, which decides the same, in pairs."""
    where = {"XDG_CACHE_HOME": str(folder / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for words in (("cc", "new", "mine"), _run_words("./mine.h", "first")):
        _program(words, folder, where)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    pairs = []
    for index in range(TRIES):
        pair = []
        for name in ("./mine.h", "reno"):
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            _program(_run_words(name, f"{name.strip('./')}{index}"), folder, where)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            pair.append(_between_s(begin, end))
        pairs.append(pair[0] - pair[1])
    return _between_s(before, after), sorted(pairs)[TRIES // 2]


def _run_words(name: str, out: str) -> tuple[str, ...]:
    return ("run", "scenario.toml", "--cc", name, "--out", out, "--no-report")


def _program(words: tuple[str, ...], folder: Path, variables: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        check=True, capture_output=True, cwd=folder, env={**os.environ, **variables},
    )  # fmt: skip


def _between_s(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints one line a measure."""
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "scenario.toml"
        file.write_text(SCENARIO)
        alone = simulator_s(file)
        asked = {"_FULLPIPE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "fullpipe run --en"}
        run = ("run", str(file), "--out")
        lines = [
            ("fullpipe --help", cpu_s("--help"), 0.25),
            ("fullpipe run --help", cpu_s("run", "--help"), 0.25),
            ("completion of `fullpipe run --en`", cpu_s(**asked), 0.25),
            ("run with a page, beyond the simulator", cpu_s(*run, f"{folder}/a{{}}") - alone, 0.8),
            (
                "run --no-report, beyond the simulator",
                cpu_s(*run, f"{folder}/b{{}}", "--no-report") - alone,
                0.3,
            ),
        ]
        first, later = own_file_s(folder)
        lines += [
            ("a file of `cc new`, its first run", first, 60),
            ("a file's later run, beyond Reno's", later, 0.2),
        ]
    missed = 0
    print(f"the simulator itself: {alone:.2f} CPU s")
    for what, value, target in lines:
        missed += value > target
        print(f"{what}: {value:.2f} CPU s (target {target}){' MISSED' if value > target else ''}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
