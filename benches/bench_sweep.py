"""What a sweep costs above the simulator, what `kill -9` costs it, how fast its store answers, and
whether ten pages at once stay fluid.

`overhead`: 10,000 cells of 20 s at 10 Mbit/s on two cores by `fullpipe sweep`. It counts CPU time:
user and system time of all processes of the command over the time that its workers spent inside
the simulator's calls (`sweep_timed.py`); at most 1.25. The parent's memory is the peak of its
resident set. `killed`: the same sweep ended with SIGKILL five times after a random number of
groups; the compacted tables must equal those of the undisturbed one, byte for byte. `query`: a
store of 100,000 cells with the rows of those runs under other keys; the whole command `fullpipe
query`, the least time of five. `page`: ten pages of the sweep's store, each with its stream of
events, every few seconds a chart, a cell, a run of the bench; times of answers.

Exit status 1: a target is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import tomli_w
from installed import compile_modules
from processes import PROGRAM, cpu_of
from sweep_timed import FOLDER
from targets import Targets

from fullpipe.sweep.store import Store

PARTS = ("overhead", "killed", "query", "page")
COMMAND = [sys.executable, "-c", PROGRAM]
#: As an installed console script, and the timing.
SCRIPT = """import sys
from fullpipe.cli import main
if __name__ == "__main__":
    from fullpipe.sweep.pool import Pool
    Pool.__init__.__defaults__ = (None, "sweep_timed")
    sys.exit(main())
"""
KILLS = 5
PAGES = 10
#: What pages ask for, as often one as the other.
KINDS = ("light", "chart", "cell", "bench")
METRICS = ("share", "goodput_bps", "rtt_p50_us", "utilisation")
QUERY = (
    "select axis_cc, rtt_s, buffer, avg(share), avg(goodput_bps) from flows where own_cc "
    "group by all order by all"
)
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h


def document(cells: int) -> dict[str, object]:
    """A sweep of so many cells (a multiple of 16): one of four algorithms against CUBIC."""
    return {
        "scenario": {
            "duration": "20s", "path": {"rate": "10mbit", "rtt": "{rtt}", "buffer": "{buffer}bdp"},
            "flow": [{"cc": "{cc}"}, {"cc": "cubic"}],
        },
        "axis": {
            "rtt": {"from": "5ms", "to": "200ms", "count": cells // 16, "scale": "log"},
            "buffer": [0.5, 1, 2, 4], "cc": ["bbr3", "bbr1", "cubic", "reno"],
        },
    }  # fmt: skip


@dataclass
class Spent:
    """What a command and all that it started took."""

    cpu_s: float
    parent_bytes: int
    status: int


class Sweeper:
    """Runs `fullpipe sweep` on a file, with the simulator's calls timed."""

    def __init__(self, folder: Path, cells: int) -> None:
        self.folder = folder
        self.file = folder / "sweep.toml"
        self.file.write_text(tomli_w.dumps(document(cells)))
        self.script = folder / "fullpipe"
        self.script.write_text(SCRIPT)
        self.sums = folder / "sums"

    def start(self, store: Path) -> subprocess.Popen[bytes]:
        """The command, under way."""
        self.sums.mkdir(exist_ok=True)
        for old in self.sums.iterdir():
            old.unlink()
        words = ["sweep", str(self.file), "--jobs", "2", "--out", str(store)]
        here = str(Path(__file__).parent)
        return subprocess.Popen(
            [sys.executable, str(self.script), *words], stderr=subprocess.PIPE,
            env={**os.environ, FOLDER: str(self.sums), "PYTHONPATH": here},
        )  # fmt: skip

    def run(self, store: Path) -> tuple[Spent, float]:
        """Runs to the end: what it took, and the CPU s within the simulator."""
        spent = finish(self.start(store))
        if spent.status:
            raise SystemExit("the sweep failed")
        return spent, sum(float(file.read_text()) for file in self.sums.iterdir())


def finish(process: subprocess.Popen[bytes]) -> Spent:
    """Waits for a process and for those that it left behind, which this one adopts."""
    total, parent_bytes, status = 0.0, 0, 0
    while True:
        try:
            pid, code, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return Spent(total, parent_bytes, status)
        total += usage.ru_utime + usage.ru_stime
        if pid == process.pid:
            parent_bytes, status = usage.ru_maxrss * 1024, code


def tables(store: Path) -> dict[str, bytes]:
    """The files of a compacted store."""
    (part,) = Store(store).parts()
    return {file.name: file.read_bytes() for file in sorted(part.glob("*.parquet"))}


def bench_overhead(targets: Targets, sweeper: Sweeper, cells: int) -> None:
    """Undisturbed, into the store `whole`."""
    spent, simulator_s = sweeper.run(sweeper.folder / "whole")
    overhead = spent.cpu_s / simulator_s - 1
    targets.at_most("overhead of the sweep", overhead * 100, "% of the simulator's CPU time", 25)
    targets.at_most("peak memory of the parent", spent.parent_bytes / 1e6, "MB", 500)
    print(
        f"  {cells} cells: all processes {spent.cpu_s:.1f} CPU s, simulator {simulator_s:.1f}; "
        f"a cell {simulator_s / cells * 1e6:.0f} us and "
        f"{(spent.cpu_s - simulator_s) / cells * 1e6:.0f} us beside it"
    )


def bench_killed(targets: Targets, sweeper: Sweeper, seed: int) -> None:
    """Killed and resumed, into the store `killed`; compares with `whole`."""
    draw, store = random.Random(seed), sweeper.folder / "killed"
    killed = 0
    for _ in range(KILLS):
        process = sweeper.start(store)
        # Groups under way in the workers may end meanwhile.
        goal = _groups(store) + draw.randint(0, 1)
        delay_s = draw.uniform(0, 0.5)
        while process.poll() is None and _groups(store) < goal:
            time.sleep(0.01)
        time.sleep(delay_s)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        finish(process)
    sweeper.run(store)
    same = tables(store) == tables(sweeper.folder / "whole")
    bytes_are = "the same bytes" if same else "OTHER BYTES"
    text = f"killed {killed} times of {KILLS} at random and resumed: {bytes_are}"
    targets.hold(text, same and killed == KILLS)


def _groups(store: Path) -> int:
    place = store / "parts"
    return len(list(place.iterdir())) if place.is_dir() else 0


def bench_query(targets: Targets, whole: Path, folder: Path, cells: int) -> None:
    """A store of so many cells made of the rows of another, and the time of an answer."""
    store = Store(folder / "many", create=True)
    real = Store(whole)
    asked = next(iter(real.sweeps().values()))
    copies = -(-cells // asked.num_rows)
    found: dict[str, list[pa.Table]] = {name: [] for name in ("runs", "flows", "path", "asked")}
    for copy in range(copies):
        for name in found:
            rows = asked if name == "asked" else real.table(name)
            keys = [
                hashlib.sha256(f"{key} {copy}".encode()).hexdigest()[:32]
                for key in rows.column("key").to_pylist()
            ]
            rows = rows.set_column(rows.column_names.index("key"), "key", pa.array(keys))
            if name == "asked":
                cell = np.asarray(rows.column("cell")) + copy * asked.num_rows
                rows = rows.set_column(
                    rows.column_names.index("cell"), "cell", pa.array(cell, pa.uint64())
                )
            found[name].append(rows)
    joined = {name: pa.concat_tables(some) for name, some in found.items()}
    store.write_sweep("many", joined.pop("asked"), None)
    store.write(joined)
    command = [*COMMAND, "query", str(store.folder), QUERY]
    wall, cpu = [], []
    for _ in range(5):
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        cpu.append(finish(process).cpu_s)
        wall.append(time.monotonic() - begin)
    text = f"query over {copies * asked.num_rows} cells"
    targets.at_most(text, min(wall), "s, the whole command", 1)
    print(f"  of it CPU {min(cpu):.2f} s; rows are those of {asked.num_rows} runs, repeated")


class Page(threading.Thread):
    """A page as the server sees it: its stream, and now and then a chart, a cell, a run."""

    def __init__(self, link: str, seed: int, seconds: float) -> None:
        super().__init__()
        self.address = urlsplit(link)
        self.draw = random.Random(seed)
        self.seconds = seconds
        self.took: dict[str, list[float]] = {}
        self.cookie = ""

    def run(self) -> None:
        """Asks until the time is over."""
        self.cookie = self._ask("GET", f"/?{self.address.query}", "link")
        stream = self._connect()
        stream.request("GET", "/events", headers={"Cookie": self.cookie})
        begin = time.monotonic()
        stream.getresponse().readline()
        self._add("first event", begin)
        end = time.monotonic() + self.seconds
        kinds = self.draw.sample(KINDS, len(KINDS))
        while kinds or time.monotonic() < end:
            time.sleep(self.draw.uniform(0.5, 2.0))
            kind = kinds.pop() if kinds else self.draw.choice(KINDS)
            if kind == "bench":
                rate, rtt = self.draw.uniform(20, 100), self.draw.uniform(10, 100)
                bench = {"rate_mbps": rate, "rtt_ms": rtt, "duration_s": 30}
                self._ask("POST", "/api/run", kind, {"bench": bench})
            else:
                self._ask("GET", {
                    "light": "/api/about",
                    "chart": f"/api/chart?y={self.draw.choice(METRICS)}&x=rtt&by=buffer&kind=heat",
                    "cell": "/api/cell?buffer=1&cc=bbr3",
                }[kind], kind)  # fmt: skip
        stream.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(str(self.address.hostname), self.address.port or 0)

    def _add(self, kind: str, begin: float) -> None:
        self.took.setdefault(kind, []).append(time.monotonic() - begin)

    def _ask(self, method: str, path: str, kind: str, body: object = None) -> str:
        connection, begin = self._connect(), time.monotonic()
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Cookie": self.cookie})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 303):
            raise RuntimeError(f"{path}: {answer.status} {text[:200]!r}")
        self._add(kind, begin)
        connection.close()
        return (answer.getheader("Set-Cookie") or "").partition(";")[0]


def bench_page(targets: Targets, whole: Path, seconds: float) -> None:
    """Ten pages at once. Judged is the CPU time of the server for an answer of theirs, streams of
    events included: pages that ask every 1.25 s, ten of them, leave one core a quarter second. How
    long they wait depends on what else the machine does, and is printed."""
    process = subprocess.Popen([*COMMAND, "serve", str(whole)], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        link = process.stderr.readline().split()[-1]
        _pages(link, 1, 0.0)  # what is loaded at first
        begin_s = cpu_of(process.pid, with_children=False)
        took = _pages(link, PAGES, seconds)
        spent_s = cpu_of(process.pid, with_children=False) - begin_s
    finally:
        process.terminate()
        process.wait()
    for kind, times in sorted(took.items()):
        print(
            f"  {kind:12} {len(times):4} answers; waited for: s p50 {np.quantile(times, 0.5):.3f}, "
            f"p95 {np.quantile(times, 0.95):.3f}, most {max(times):.3f}"
        )
    print(f"  load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    answers = sum(len(took[kind]) for kind in KINDS)
    text = f"{PAGES} pages at once: an answer"
    targets.at_most(text, spent_s / answers, "CPU s of the server", 0.25)


def _pages(link: str, count: int, seconds: float) -> dict[str, list[float]]:
    pages = [Page(link, index, seconds) for index in range(count)]
    for page in pages:
        page.start()
    found: dict[str, list[float]] = {}
    for page in pages:
        page.join()
        for kind, took in page.took.items():
            found.setdefault(kind, []).extend(took)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Prints a line a measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="1,600 cells, a query over 16,000")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--seed", type=int, default=1, help="of the kills")
    given = parser.parse_args(words)
    wanted = given.only or PARTS
    cells, many, seconds = (1600, 16_000, 10.0) if given.quick else (10_000, 100_000, 30.0)
    compile_modules()
    # What a command leaves behind, its fork server, becomes a child of this process.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    targets = Targets()
    with tempfile.TemporaryDirectory(prefix="fullpipe-bench-") as name:
        folder = Path(name)
        sweeper = Sweeper(folder, cells)
        bench_overhead(targets, sweeper, cells)  # the others need its store
        if "killed" in wanted:
            bench_killed(targets, sweeper, given.seed)
        if "query" in wanted:
            bench_query(targets, folder / "whole", folder, many)
        if "page" in wanted:
            bench_page(targets, folder / "whole", seconds)
    return targets.status


if __name__ == "__main__":
    sys.exit(main())
