"""Cells of "Over real UDP sockets" in docs/evidence/quic.md: the endpoints of quinn and noq in the
simulator, and the same endpoints over UDP sockets of Linux in the virtual machine, on the same six
paths. Needs `make build kernels quic`, QEMU, and the program of
crates/fullpipe-quic/examples/udp.rs:

    cd crates/fullpipe-quic
    cargo build --release --locked --no-default-features --features quinn,noq --example udp
    cd -
    .venv/bin/python benches/bench_quic_udp.py --results quic-udp.jsonl

Engine `vm` builds the path of the plan; the program runs where curl and lighttpd run for pages.
Each run is a line of `--results`; those that are there already are not repeated. Prints CSV.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.engines.rows import with_steps
from fullpipe.engines.tables import arrow_tables
from fullpipe.engines.vm import hardware, image, kernels, machine, shared, vmlinux
from fullpipe.engines.vm.shared import Job
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PROGRAM = Path("target/quic/release/examples/udp")
#: Folder of the job's files in the machine; the file with the server's words
#: (crates/fullpipe-agent/src/flows/web.rs).
_FOLDER, _SERVER = "/bpf", "/run/web/0.server"
SECONDS = 20
ENGINES = ("simulator", "udp")
#: Booting the programs, and the silence after which the server ends.
_MORE_SECONDS = 6
_STREAM_MIB = 16
_MEMORY_MIB = 1024
#: Where chance decides, the simulator runs so many seeds. Its losses are others than netem's.
_SIMULATED_SEEDS = 30
#: crates/fullpipe-net/src/rng.rs, `purpose::CC`
_PURPOSE_CC = 4

CONTROLS = ("quinn:cubic", "noq:cubic", "quinn:bbr", "noq:bbr3")
#: The reverse direction has a rate so that its packets are counted.
_BOTH = {"reverse_rate": "100mbit"}
PATHS: dict[str, tuple[dict[str, Any], Sequence[int]]] = {
    "10 Mbit/s, 20 ms, 1 BDP": ({"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"}, [1]),
    "10 Mbit/s, 100 ms, 0.5 BDP": ({"rate": "10mbit", "rtt": "100ms", "buffer": "0.5bdp"}, [1]),
    "10 Mbit/s, 40 ms, 4 BDP": ({"rate": "10mbit", "rtt": "40ms", "buffer": "4bdp"}, [1]),
    "10 Mbit/s, 40 ms, fq_codel with ECN": (
        {"rate": "10mbit", "rtt": "40ms", "buffer": "20bdp", "qdisc": "fq_codel", "ecn": True},
        [1],
    ),
    "10 Mbit/s, 40 ms, loss 0.5 %": (
        {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp", "loss": "0.5%"},
        [1, 2, 3, 4, 5],
    ),
    "50 Mbit/s, 40 ms, 1 BDP": ({"rate": "50mbit", "rtt": "40ms", "buffer": "1bdp"}, [1]),
}

Figures = dict[str, Any]


def simulated(path: Mapping[str, Any], cc: str, seed: int) -> Figures:
    """What a flow does in the simulator."""
    document = {
        "duration": f"{SECONDS}s", "seed": seed, "path": {**path, **_BOTH}, "flow": [{"cc": cc}],
        "host": {"program_timer": "1ms"},
    }  # fmt: skip
    runs = fullpipe.run(document)
    (flow,) = runs.table("flows").to_pylist()
    events = runs.table("events").to_pylist()
    queues = {row["queue"]: row for row in runs.table("queue_samples").to_pylist()}
    established = [one["t_us"] for one in events if one["event"] == "established"]
    return {
        "bytes": flow["bytes_delivered"],
        "sent": flow["packets_sent"],
        "acks": queues["reverse"]["sent_packets"],
        "lost": flow["packets_lost"],
        "dropped": queues["forward"]["dropped_packets"] + queues["forward"]["random_lost_packets"],
        "congestion_events": flow["recoveries"],
        "established_us": established[0] if established else -1,
    }


def over_udp(path: Mapping[str, Any], cc: str, seed: int) -> Figures:
    """What it does over sockets in the virtual machine."""
    page = {
        "cc": "cubic", "levels": [["1B"]], "lookup": "none", "start": "200ms", "loads": 1,
    }  # fmt: skip
    duration = f"{SECONDS + _MORE_SECONDS}s"
    document = {"duration": duration, "seed": seed, "path": {**path, **_BOTH}, "page": [page]}
    plan = resolve(make_scenario(document))
    files = {Path(file).name: Path(file).read_bytes() for file in _files(PROGRAM)}
    loader = next(name for name in files if name.startswith("ld-linux"))
    ecn = "true" if path.get("ecn") else "false"
    run = [f"{_FOLDER}/{loader}", "--library-path", _FOLDER, f"{_FOLDER}/{PROGRAM.name}"]
    given = [f"cc={cc}", f"seed={_derived(seed, _PURPOSE_CC, 0)}", "address={address}:443"]
    given += [f"ecn={ecn}", f"seconds={SECONDS}"]
    request = {
        "plan": with_steps(plan), "clock": "virtual", "objects": _FOLDER, "cc_trace": None,
        "background_processes": 0, "peer": None,
        "web": {
            "server": [*run, "server", *given],
            "client": [*run, "client", *given, f"peer={_SERVER}"],
            "header_bytes": 0,
        },
    }  # fmt: skip
    kernel = kernels.find(None, None)
    found = image.module_files(kernel)
    job = Job(request, image.modules(plan, kernel, found), files)
    built = hardware.Hardware(
        vmlinux.unpacked(kernel.image, user_cache() / "vmlinux").resolve(),
        image.build(kernel, found, user_cache() / "initramfs").resolve(),
        _MEMORY_MIB,
        shared.size_bytes(job, _STREAM_MIB),
    )
    ended = machine.run(built, job, lambda _ns: True)
    received = _native.stream.decode(ended.stream)
    if received["failure"] or not received["complete"]:
        raise SystemExit(f"{cc}: {received['failure']}; {ended.console}")
    # The agent takes the program for one that loads pages, and reports its last line.
    words = [problem for problem in received["problems"] if "the client:" in problem]
    others = [problem for problem in received["problems"] if problem not in words]
    if not words or "{" not in words[0]:
        raise SystemExit(f"{cc}: {received['problems']}")
    told = json.loads(words[0][words[0].index("{") :])
    client, server = told["client"], told["server"]
    tables = arrow_tables(received["tables"])
    queues = {row["queue"]: row for row in tables["queue_samples"].to_pylist()}
    samples = [row for row in server["samples"] if row[0] > client["start_ns"]]
    end_ns = client["start_ns"] + SECONDS * 10**9
    last = max((row for row in samples if row[0] <= end_ns), key=lambda row: row[0])
    failures = [end["failure"] for end in (client, server) if end["failure"]]
    return {
        "bytes": last[1],
        "sent": client["sent"],
        "acks": last[3],
        "lost": client["lost"],
        "dropped": queues["forward"]["dropped_packets"] + queues["forward"]["random_lost_packets"],
        "congestion_events": client["congestion_events"],
        "established_us": client["established_us"],
        "delivered": [row[1] for row in samples if row[0] <= end_ns],
        "problems": others + failures,
        "received": server["received"],
        "received_ce": server["received_ce"],
        "refused": client["refused"],
        "samples": client["samples"],
        **{name: value for name, value in received["figures"] if name.startswith("cpu_busy")},
    }


def _files(program: Path) -> list[str]:
    """The program and the libraries that it loads."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [str(program), *re.findall(r"(/\S+) \(0x", told)]


def _derived(seed: int, purpose: int, index: int) -> int:
    """As crates/fullpipe-net/src/rng.rs, so that both ends draw the simulator's numbers."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = (z + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    return mix((mix(seed ^ 0x9E3779B97F4A7C15) + (purpose << 32 | index)) & mask)


def difference(one: float, other: float) -> str:
    """How much the second is above the first, in %."""
    return "" if one == 0 else f"{100 * (other / one - 1):.2f}"


def row_of(name: str, cc: str, udp: Sequence[Figures]) -> list[str]:
    """A row of the file. Of several seeds it has means and the standard error of a difference."""
    path, seeds = PATHS[name]
    drawn = range(1, 2 if len(seeds) == 1 else 1 + _SIMULATED_SEEDS)
    sim = [simulated(path, cc, seed) for seed in drawn]

    def values(what: str) -> tuple[list[float], list[float]]:
        return [one[what] for one in sim], [one[what] for one in udp]

    row = [name, cc]
    for what, unit, digits in (("bytes", SECONDS * 1e6 / 8, 3), ("sent", 1, 0), ("acks", 1, 0)):
        both = values(what)
        one, other = map(statistics.mean, both)
        row += [f"{one / unit:.{digits}f}", f"{other / unit:.{digits}f}", difference(one, other)]
        error = math.sqrt(sum(variance_of_mean(found) for found in both))
        row.append(f"{100 * error / one:.1f}" if error else "")
    row += [f"{statistics.mean(found):.0f}" for found in values("lost")]
    row += [f"{statistics.mean(found) / 1000:.1f}" for found in values("established_us")]
    return row


def variance_of_mean(found: Sequence[float]) -> float:
    """Of single values: 0."""
    return statistics.variance(found) / len(found) if len(found) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    parser.add_argument("--path", action="append", help="only paths whose name has this")
    parser.add_argument("--cc", action="append", choices=CONTROLS)
    given = parser.parse_args()
    lines = given.results.read_text().splitlines() if given.results.is_file() else []
    found = [json.loads(line) for line in lines]
    known = {(one["path"], one["cc"], one["seed"]) for one in found}
    for name, (path, seeds) in PATHS.items():
        if given.path and not any(part in name for part in given.path):
            continue
        for cc in given.cc or CONTROLS:
            for seed in seeds:
                if (name, cc, seed) in known:
                    continue
                one = {"path": name, "cc": cc, "seed": seed, "udp": over_udp(path, cc, seed)}
                found.append(one)
                with given.results.open("a") as file:
                    print(json.dumps(one), file=file)
                for problem in one["udp"]["problems"]:
                    print(f"{name}, {cc}, seed {seed}: {problem}", file=sys.stderr)
    head = ["path", "cc"]
    for what in ("mbps", "datagrams", "acks"):
        head += [f"{what}_{of}" for of in (*ENGINES, "difference_percent", "difference_error")]
    head += [f"{what}_{engine}" for what in ("lost", "established_ms") for engine in ENGINES]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(head)
    for name in PATHS:
        for cc in CONTROLS:
            runs = [one["udp"] for one in found if (one["path"], one["cc"]) == (name, cc)]
            if runs:
                writer.writerow(row_of(name, cc, runs))


if __name__ == "__main__":
    main()
