"""The checks of the virtual machine, as figures.

`twins`   ours against the kernel's own of the same name, alone on five paths
`cost`    guest instructions an ACK: fp_bbr3 against the kernel's bbr, and fp_cubic against cubic
`speed`   simulated over CPU time, one flow at 100 Mbit/s and two at 10 Mbit/s
`start`   CPU seconds of `fullpipe run`, all processes, from the kept machine until the first packet
          has left (seen by the first samples), and of the whole run, whose flow only begins; the
          least of five tries; exit status 1 above 1 until that packet
`same`    20 runs from the kept machine beside busy processes against one that boots, in every table
          and fact; exit status 1 where one differs

Usage: `.venv/bin/python benches/bench_kernel.py WHAT [--kernel 6.12] [--jobs 2]
[--paths 2,3] [--seconds 12] [--busy 4]`; paths and seconds are of the twins, busy of `same`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from processes import PROGRAM, children_cpu_s, cpu_of
from runs import recordings

from fullpipe import _native
from fullpipe.engines.tables import arrow_tables
from fullpipe.engines.vm import VmEngine, shared
from fullpipe.metrics import View, summarise
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario

TWINS = (("cubic", "kernel:cubic"), ("reno", "kernel:reno"), ("bbr1", "kernel:bbr"))
PATHS = (
    ("10mbit", "40ms", "1bdp", 60),
    ("10mbit", "10ms", "4bdp", 60),
    ("50mbit", "20ms", "4bdp", 40),
    ("100mbit", "10ms", "1bdp", 30),
    ("100mbit", "40ms", "1bdp", 30),
)
_WHATS = ("twins", "cost", "speed", "start", "same")
_TRIES = 5
_START_TARGET_S = 1.0
#: How often a start looks, and at what: the head of the shared memory, and as much of the stream.
_LOOK_S, _HEAD_BYTES, _STREAM_BYTES = 0.002, 24, 1 << 16
_REPEATED = 20
Run = Callable[[list[dict[str, Any]]], list[Recording]]


def document(
    path: tuple[str, str, str, int], *flows: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """A scenario."""
    rate, rtt, buffer, seconds = path
    return {
        "name": f"{rate} {rtt} {buffer}",
        "duration": f"{seconds}s",
        "warmup": "3s",
        "path": {"rate": rate, "rtt": rtt, "buffer": buffer},
        "flow": list(flows),
        **more,
    }


def twins(run: Run, numbers: Sequence[int], seconds: int | None) -> None:
    """Goodput, mean cwnd and loss episodes of each pair, on paths by number, from 1 on."""
    paths = [PATHS[number - 1] for number in numbers]
    cells = [((*path[:3], seconds or path[3]), pair) for path in paths for pair in TWINS]
    # Recoveries are seen when a sample is taken in one, so samples come faster than round trips.
    made = run(
        [document(path, {"cc": cc}, sample_interval="5ms") for path, pair in cells for cc in pair]
    )
    print(f"{'path':22} {'pair':24} {'goodput Mbit/s':>18} {'mean cwnd':>16} {'episodes':>9}")
    for index, (path, pair) in enumerate(cells):
        ours, theirs = made[2 * index : 2 * index + 2]
        rates, windows, episodes = zip(*(_figures(r) for r in (ours, theirs)), strict=True)
        print(
            f"{' '.join(path[:3]):22} {' / '.join(pair):24} "
            f"{rates[0]:7.2f} {rates[1]:7.2f} {_percent(rates)} "
            f"{windows[0]:6.1f} {windows[1]:6.1f} {_percent(windows)} "
            f"{episodes[0]:4.0f} {episodes[1]:4.0f}"
        )
    print("targets: goodput within 1 %, mean cwnd within 3 %, episodes within 1 (cubic, reno)")


def cost(run: Run) -> None:
    """Guest instructions in the whole stack for each packet acknowledged."""
    path = ("100mbit", "10ms", "2bdp", 20)
    pairs = (("bbr3-linux", "kernel:bbr"), ("bbr1", "kernel:bbr"), ("cubic", "kernel:cubic"))
    made = run([document(path, {"cc": cc}) for pair in pairs for cc in pair])
    for index, pair in enumerate(pairs):
        ours, theirs = (_instructions(r) for r in made[2 * index : 2 * index + 2])
        print(
            f"{pair[0]} {ours:.0f}, {pair[1]} {theirs:.0f} guest instructions a packet: "
            f"{ours / theirs:.3f} times (target 1.5 for the algorithm alone)"
        )


def _instructions(recording: Recording) -> float:
    view = View(recording, start_s=0.0)
    busy = recording.metadata["health"]["cpu_busy_mean"]
    return float(busy * 1e9 * view.end_s / view.flows["packets_delivered"].sum())


def speed(run: Run) -> None:
    """Simulated over CPU time on this machine as it is now."""
    for path, flows, hand in (
        (("100mbit", "40ms", "1bdp", 30), [{"cc": "bbr3-linux"}], 0.3),
        (("10mbit", "40ms", "1bdp", 60), [{"cc": "bbr3-linux"}, {"cc": "cubic"}], 2.0),
    ):
        whole_s, boot_s = (_cpu_s((*path[:3], seconds), flows) for seconds in (path[3], 1))
        print(
            f"{' '.join(path[:3])}, {len(flows)} flow(s): "
            f"{(path[3] - 1) / (whole_s - boot_s):.2f} simulated seconds a CPU second, "
            f"{path[3] / whole_s:.2f} over {path[3]} s with the boot ({boot_s:.1f} CPU seconds); "
            f"target 1; by hand, tc ten times a second: {hand}"
        )


def _cpu_s(path: tuple[str, str, str, int], flows: list[dict[str, Any]]) -> float:
    plan = resolve(make_scenario({**document(path, *flows), "warmup": "0s"}))
    before_s = children_cpu_s()
    VmEngine().run(plan, lambda _done: True, {})
    return children_cpu_s() - before_s


def start(kernel: str) -> None:
    """What one waits for before the first packet."""
    missed = False
    for cc in ("bbr3-linux", "cubic", "kernel:cubic"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "scenario.toml")
            file.write_text(tomli_w.dumps(_begins_only(cc)), encoding="utf-8")
            words = ["run", str(file), "--engine", "vm", "--kernel", kernel, "--no-report", "--out"]
            tries = [
                _started(Path(folder), [*words, f"{folder}/{index}"]) for index in range(_TRIES + 1)
            ]
        found = min(tries[1:])  # the first may have booted
        missed |= found.until_packet_s > _START_TARGET_S
        print(
            f"{cc}: {found.until_packet_s:.2f} CPU s until the first packet, "
            f"{found.of_qemu_s:.2f} of them QEMU's (target {_START_TARGET_S}); "
            f"{found.whole_s:.2f} the whole run; the least of {_TRIES}",
            flush=True,
        )
    sys.exit(missed)


def _begins_only(cc: str) -> dict[str, Any]:
    path = {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"}
    return {
        "duration": "10ms", "sample_interval": "1ms", "path": path, "flow": [{"cc": cc}],
    }  # fmt: skip


class Start(NamedTuple):
    """CPU seconds of a start, in hundredths as the kernel counts them."""

    until_packet_s: float
    of_qemu_s: float
    whole_s: float


def _started(folder: Path, words: Sequence[str]) -> Start:
    """Runs `fullpipe` with these words, with its temporary files in a folder."""
    before_s = children_cpu_s()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    while not _has_sent(folder):
        if process.poll() is not None:
            raise SystemExit("the run ended before its first packet was seen")
        time.sleep(_LOOK_S)
    (qemu,) = (
        int(pid)
        for task in Path(f"/proc/{process.pid}/task").iterdir()
        for pid in (task / "children").read_text().split()
    )
    python_s, qemu_s = (cpu_of(pid) for pid in (process.pid, qemu))
    if process.wait():
        raise SystemExit(f"fullpipe ended with status {process.returncode}")
    return Start(python_s + qemu_s, qemu_s, children_cpu_s() - before_s)


def _has_sent(folder: Path) -> bool:
    """Whether the machine that runs there has sampled a flow since it began."""
    for path in folder.glob("fullpipe-vm-*/shared"):
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            if not head.startswith(b"fullpipe"):
                continue
            file.seek(shared.stream_offset(head))
            received = _native.stream.decode(file.read(_STREAM_BYTES))
        times = arrow_tables(received["tables"])["flow_samples"].column("t_us").to_pylist()
        return any(t_us > 0 for t_us in times)
    return False


def same(kernel: str, busy: int) -> None:
    """Byte for byte."""
    flows = ({"cc": "bbr3-linux"}, {"cc": "cubic", "start": "500ms"})
    plan = resolve(make_scenario({**document(("20mbit", "20ms", "1bdp", 4), *flows)}))

    def one(**options: Any) -> Any:
        made = VmEngine().run(plan, lambda _done: True, {"kernel": kernel, **options})
        return made.metadata, made.health, made.tables

    metadata, health, tables = one(from_snapshot=False)
    spins = "while True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spins]) for _ in range(busy)]
    try:
        equal = 0
        for _ in range(_REPEATED):
            other = one()
            equal += (metadata, health) == other[:2] and all(
                table.equals(other[2][name]) for name, table in tables.items()
            )
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    print(
        f"{equal} of {_REPEATED} runs from the kept machine equal one that booted; load "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    sys.exit(equal < _REPEATED)


def _figures(recording: Recording) -> tuple[float, float, float]:
    flow = summarise(recording)["flows"][0]
    episodes = View(recording).flows["recoveries"][0]
    return flow["goodput_bps"] / 1e6, flow["cwnd_packets"]["mean"], float(episodes)


def _percent(pair: tuple[float, float]) -> str:
    return f"{100 * (pair[0] / pair[1] - 1):+5.1f}%"


def main() -> None:
    """Runs one of the checks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*_WHATS])
    parser.add_argument("--kernel", default="6.12", help="as `fullpipe run` takes it")
    parser.add_argument("--paths", default="1,2,3,4,5", help="numbers of paths; default: all")
    parser.add_argument("--seconds", type=int, help="of each run; 30 to 60")
    parser.add_argument("--jobs", type=int, default=2, help="machines at once")
    parser.add_argument("--busy", type=int, default=4, help="processes that do nothing but spin")
    options = parser.parse_args()
    numbers = [int(number) for number in options.paths.split(",")]
    checks: dict[str, Callable[[Run], None]] = {
        "twins": partial(twins, numbers=numbers, seconds=options.seconds),
        "cost": cost, "speed": speed,
        "start": lambda _run: start(options.kernel),
        "same": lambda _run: same(options.kernel, options.busy),
    }  # fmt: skip
    checks[options.what](
        lambda documents: recordings(documents, "vm", options.jobs, kernel=options.kernel)
    )


if __name__ == "__main__":
    main()
