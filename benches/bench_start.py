"""CPU seconds of help, completion and `fullpipe run` of a scenario of 60 s, of which the simulator
takes 0.03; of `run --light`, `compare`, and `report`, `plot` and `effects` over runs that are
there; of a congestion control in a file, its first run (`cc new` included) and what a later run
costs more than a built-in one.

Targets: help 0.4 s, `run --no-report` 0.6 s, `run` with its page 1.0 s, `run --light` 1.2 s,
`compare` 2.0 s, `report` of ten runs 1.2 s, `plot` 1.0 s, `effects` 1.2 s; a file's first run 60 s,
a later one 0.2 s more than a built-in. Of several tries the least counts (of a file
the median of pairs): CPU time grows where other programs share the caches. Modules are compiled, as
those of an installed wheel are. Exit status 1: a target missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from installed import compile_modules
from processes import PROGRAM, children_cpu_s
from targets import Targets

TRIES = 5
SCENARIO = """
duration = "60s"
path = { rate = "10mbit", rtt = "40ms", buffer = "1bdp" }
flow = [{ cc = "bbr3" }, { cc = "cubic" }]
probe = [{ kind = "ping" }]
"""

SWEEP = """
[scenario]
duration = "5s"
path = { rate = "{rate}", rtt = "20ms", buffer = "1bdp" }
flow = [{ cc = "{cc}" }, { cc = "reno" }]
[axis]
rate = ["5mbit", "10mbit", "20mbit"]
cc = ["bbr3", "cubic"]
[sweep]
seeds = 3
"""


def cpu_s(*words: str, **variables: str) -> float:
    """The least CPU time of a process of `fullpipe`, its children included."""
    found = []
    for index in range(TRIES):
        before_s = children_cpu_s()
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *(word.replace("{}", str(index)) for word in words)],
            check=True, capture_output=True, env={**os.environ, **variables},
        )  # fmt: skip
        found.append(children_cpu_s() - before_s)
    return min(found)


def own_file_s(folder: Path) -> tuple[float, float]:
    """CPU seconds of a file's first run, `cc new` included; and the median of what later runs cost
    more than those of Reno, which decides the same, in pairs."""
    where = {"XDG_CACHE_HOME": str(folder / "cache")}
    before_s = children_cpu_s()
    for words in (("cc", "new", "mine"), _run_words("./mine.h", "first")):
        _program(words, folder, where)
    first_s = children_cpu_s() - before_s
    pairs = []
    for index in range(TRIES):
        pair = []
        for name in ("./mine.h", "reno"):
            begin_s = children_cpu_s()
            _program(_run_words(name, f"{name.strip('./')}{index}"), folder, where)
            pair.append(children_cpu_s() - begin_s)
        pairs.append(pair[0] - pair[1])
    return first_s, sorted(pairs)[TRIES // 2]


def reading_lines(folder: Path) -> list[tuple[str, float, float]]:
    """Of commands that compare runs, or read those of a run of ten repetitions and of a sweep."""
    ten, sweep = folder / "ten", folder / "sweep.toml"
    sweep.write_text(SWEEP)
    store = str(folder / "store")
    scenario = str(folder / "scenario.toml")
    _program(("run", scenario, "--repeat", "10", "--out", str(ten), "--no-report"), folder, {})
    _program(("sweep", str(sweep), "--out", store), folder, {})
    compare = ("compare", "bbr3", "cubic", "--rate", "10mbit", "--repeat", "5", "--out")
    report = ("report", str(ten), "--out", str(folder / "ten.html"))
    plot = ("plot", store, "--y", "share", "--x", "rate", "--by", "cc")
    effects = ("effects", store, "--y", "share", "--of", "rate,cc")
    return [
        ("compare", cpu_s(*compare, f"{folder}/c{{}}"), 2.0),
        ("report of ten runs", cpu_s(*report), 1.2),
        ("plot", cpu_s(*plot), 1.0),
        ("effects", cpu_s(*effects), 1.2),
    ]


def _run_words(name: str, out: str) -> tuple[str, ...]:
    return ("run", "scenario.toml", "--cc", name, "--out", out, "--no-report")


def _program(words: tuple[str, ...], folder: Path, variables: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        check=True, capture_output=True, cwd=folder, env={**os.environ, **variables},
    )  # fmt: skip


def main() -> None:
    """Prints one line a measure."""
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "scenario.toml"
        file.write_text(SCENARIO)
        completion = {
            "_FULLPIPE_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": "fullpipe run --en",
        }
        run = ("run", str(file), "--out")
        lines = [
            ("fullpipe --help", cpu_s("--help"), 0.4),
            ("fullpipe run --help", cpu_s("run", "--help"), 0.4),
            ("completion of `fullpipe run --en`", cpu_s(**completion), None),
            ("run --no-report", cpu_s(*run, f"{folder}/b{{}}", "--no-report"), 0.6),
            ("run with its page", cpu_s(*run, f"{folder}/a{{}}"), 1.0),
            ("run --light", cpu_s(*run, f"{folder}/l{{}}", "--light"), 1.2),
            *reading_lines(folder),
        ]
        first, later = own_file_s(folder)
        lines += [
            ("a file of `cc new`, its first run", first, 60),
            ("a file's later run, more than Reno's", later, 0.2),
        ]
    targets = Targets()
    for what, value, target in lines:
        limit = "" if target is None else f" (target {target})"
        targets.hold(f"{what}: {value:.2f} CPU s{limit}", target is None or value <= target)
    sys.exit(targets.status)


if __name__ == "__main__":
    main()
