"""Tables of docs/evidence/quic.md: each congestion control of the QUIC stacks alone on 20 paths and
beside TCP, CUBIC and NewReno beside TCP's of the same name, what timers change, what BBRs believe
of a link that slows down, packets a CPU second. Needs `make quic`. Prints Markdown, and CSV of
the flows alone; `--jobs N` runs in N processes, `--stacks quiche` makes the columns of these stacks
only, `--tables alone` these tables only.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.congestion.stacks import STACKS

TCP = ["cubic", "bbr3"]
#: What tells the bandwidth that it believes in.
TELLS = ["bbr1", "bbr3", "quinn:bbr", "noq:bbr3", "s2n:bbr", "quiche:bbr2", "ngtcp2:bbr"]
RTT = "40ms"

Document = dict[str, Any]


def path(rate: str = "20mbit", rtt: str = RTT, buffer: str = "1bdp", **others: Any) -> Document:
    return {"path": {"rate": rate, "rtt": rtt, "buffer": buffer, **others}}


#: 20 paths: rates and RTTs, buffers, queue disciplines, losses, jitter, reordering, changing rates.
PATHS: dict[str, Document] = {
    **{
        f"{rate} Mbit/s, {rtt} ms": path(f"{rate}mbit", f"{rtt}ms")
        for rate in (5, 20, 50)
        for rtt in (10, 40, 100)
    },
    "buffer 0.25 BDP": path(buffer="0.25bdp"),
    "buffer 4 BDP": path(buffer="4bdp"),
    "fq_codel": path(buffer="4bdp", qdisc="fq_codel"),
    # Without a limit of the buffer: 4 BDP of memory overflow in slow start, and then CAKE's BLUE
    # drops at random for as long as its queue is never found empty.
    "CAKE": {"path": {"rate": "20mbit", "rtt": RTT, "qdisc": "cake"}},
    "PIE": path(buffer="4bdp", qdisc="pie"),
    "fq_codel, ECN": path(buffer="4bdp", qdisc="fq_codel", ecn=True),
    "DualPI2, ECN": path(buffer="4bdp", qdisc="dualpi2", ecn=True),
    "loss 0.1 %": path(loss="0.1%"),
    "loss 1 %": path(loss="1%"),
    "jitter 5 ms": path(jitter="5ms"),
    "reverse 1 Mbit/s": path(reverse_rate="1mbit"),
}

#: Where two flows share: 20 Mbit/s and 40 ms unless the name says otherwise.
SHARED = {
    "1 BDP": path(),
    "4 BDP": path(buffer="4bdp"),
    "100 ms": path(rtt="100ms"),
}

#: Without jitter, which flow's packets find a full queue is a matter of phase.
BESIDE_NAMESAKES = {
    name + words: {"path": {**where["path"], **jitter}}
    for words, jitter in (("", {}), (", jitter 4 ms", {"jitter": "4ms"}))
    for name, where in SHARED.items()
}


def scenario(where: Document, ccs: Sequence[str], **others: Any) -> Document:
    flows = [{"cc": cc, "start": f"{100 * index}ms"} for index, cc in enumerate(ccs)]
    return {"name": "quic", "duration": "20s", "warmup": "5s", "flow": flows, **where, **others}


def alone(job: tuple[str, str]) -> tuple[float, float, float]:
    """Utilisation in %, median queueing delay in ms, lost packets in %; NaN: not possible."""
    name, cc = job
    try:
        (row,) = fullpipe.run(scenario(PATHS[name], [cc])).metrics("path").to_pylist()
    except UserError:  # no ECN
        return math.nan, math.nan, math.nan
    values = row["utilisation"], row["queue_delay_p50_ms"], row["loss_ratio"]
    used, queue_ms, lost = (math.nan if value is None else value for value in values)
    return 100 * used, queue_ms, 100 * lost


def share(job: tuple[str, str, str]) -> float:
    """Share of the first of two flows in their goodput, in %: mean of two seeds."""
    name, cc, other = job
    document = scenario(SHARED[name], [cc, other], start_spread="100ms")
    rows = fullpipe.run(document, seeds=[1, 2], jobs=1).metrics("flows").to_pylist()
    first = sum(row["goodput_bps"] for row in rows if row["flow_id"] == 0)
    return 100 * first / sum(row["goodput_bps"] for row in rows)


def beside_namesake(job: tuple[str, str]) -> tuple[float, float, str]:
    """Share of a flow in the goodput of it and a TCP flow of the same algorithm, in %: the mean of
    four seeds and its standard error, after 20 of 120 s; and how many packets of each were lost a
    minute. Starts are random, so that neither is the first."""
    name, cc = job
    flows = [{"cc": cc}, {"cc": namesake(cc)}]
    document = {
        "name": "quic", "duration": "120s", "warmup": "20s", "start_spread": "1s", "flow": flows,
        **BESIDE_NAMESAKES[name],
    }  # fmt: skip
    runs = fullpipe.run(document, seeds=[1, 2, 3, 4], jobs=1)
    rates = [row["goodput_bps"] for row in runs.metrics("flows").to_pylist()]
    lost = [row["packets_lost"] for row in runs.table("flows").to_pylist()]
    shares = [100 * one / (one + other) for one, other in zip(rates[::2], rates[1::2], strict=True)]
    a_minute = [sum(lost[flow::2]) / (2 * len(shares)) for flow in (0, 1)]
    error = statistics.stdev(shares) / math.sqrt(len(shares))
    return statistics.mean(shares), error, "{:.0f}, {:.0f}".format(*a_minute)


def namesake(cc: str) -> str:
    """TCP's congestion control of the same algorithm."""
    return "reno" if cc.endswith("reno") else "cubic"


def with_timer(job: tuple[str, str]) -> tuple[float, float]:
    """Utilisation in % and lost packets in % on 50 Mbit/s, 20 ms."""
    timer, cc = job
    document = scenario(path("50mbit", "20ms"), [cc], host={"program_timer": timer})
    (row,) = fullpipe.run(document).metrics("path").to_pylist()
    return 100 * row["utilisation"], 100 * (row["loss_ratio"] or 0.0)


def after_a_drop(cc: str) -> dict[str, float]:
    """What a flow believes and does 10 s after its link fell from 50 to 10 Mbit/s."""
    link = {
        "name": "falls", "rate": "50mbit", "delay": "10ms", "buffer": "100KB",
        "rate_steps": [["10s", "10mbit"]],
    }  # fmt: skip
    document = {"duration": "30s", "warmup": "20s", "link": [link], "flow": [{"cc": cc}]}
    runs = fullpipe.run(document)
    (row,) = runs.metrics("path").to_pylist()
    late = [one for one in runs.table("cc_samples").to_pylist() if one["t_us"] > 20e6]
    return {
        "bw": statistics.median(one["bw_bps"] for one in late) / 1e6,
        "queue": row["queue_delay_p50_ms"], "loss": 100 * (row["loss_ratio"] or 0.0),
    }  # fmt: skip


def packets_a_cpu_second(cc: str) -> float:
    """Packets of both directions over the CPU seconds of a run, of several the most."""
    found = []
    for _ in range(2):
        before = time.process_time()
        runs = fullpipe.run(scenario(path("100mbit", "20ms"), [cc], duration="20s"))
        spent = time.process_time() - before
        rows = runs.table("queue_samples").to_pylist()
        last = {row["queue"]: row["sent_packets"] for row in rows}
        sent = sum(last.values()) if len(last) > 1 else 1.5 * sum(last.values())
        found.append(sent / spent)
    return max(found)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"| {' | '.join(head)} |")
    print(f"|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def _shown(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def print_alone(pool: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    """Prints docs/evidence/cells/quic_alone.csv; without the paths that a stack refuses."""
    print("### Alone\n")
    pairs = [(name, cc) for name in PATHS for cc in ccs]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["path", "cc", "utilisation_percent", "queue_delay_p50_ms", "lost_percent"])
    for (name, cc), found in zip(pairs, pool.map(alone, pairs), strict=True):
        if not math.isnan(found[0]):
            used, queue_ms, lost = found
            writer.writerow([name, cc, f"{used:.1f}", _shown(queue_ms, 1), f"{lost:.2f}"])
    print(flush=True)


def print_shares(pool: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    print("### Share of a flow beside one of TCP's, %\n")
    columns = [(name, other) for other in TCP for name in SHARED]
    jobs = [(name, cc, other) for cc in ccs for name, other in columns]
    shares = dict(zip(jobs, pool.map(share, jobs), strict=True))
    rows = [
        [f"`{cc}`", *(f"{shares[name, cc, other]:.0f}" for name, other in columns)] for cc in ccs
    ]
    table(["cc", *(f"`{other}`, {name}" for name, other in columns)], rows)


def print_namesakes(pool: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    own = [cc for cc in ccs if ":" in cc and cc.endswith(("cubic", "reno"))]
    ccs = [*(["cubic", "reno"] if TCP[0] in ccs else []), *own]
    pairs = [(name, cc) for cc in ccs for name in BESIDE_NAMESAKES]
    values = dict(zip(pairs, pool.map(beside_namesake, pairs), strict=True))
    print("### Beside TCP's of the same name: share, %, and packets lost a minute\n")
    rows = []
    for cc in ccs:
        found = [values[name, cc] for name in BESIDE_NAMESAKES]
        cells = [f"{mean:.0f} ± {error:.0f}; {lost}" for mean, error, lost in found]
        rows.append([f"`{cc}`", *cells])
    table(["cc", *BESIDE_NAMESAKES], rows)


def print_timers(pool: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    print("### Timers: utilisation and loss, %\n")
    timers = ("0", "1ms", "4ms")
    ccs = [cc for cc in ccs if ":" in cc]
    pairs = [(timer, cc) for cc in ccs for timer in timers]
    found = dict(zip(pairs, pool.map(with_timer, pairs), strict=True))
    rows = [
        [f"`{cc}`", *("{:.1f}, {:.2f}".format(*found[timer, cc]) for timer in timers)] for cc in ccs
    ]
    table(["cc", *timers], rows)


def print_drop(pool: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    print("### A link that falls from 50 to 10 Mbit/s\n")
    ccs = [cc for cc in TELLS if cc in ccs or (TCP[0] in ccs and ":" not in cc)]
    rows = [
        [f"`{cc}`", f"{one['bw']:.1f}", f"{one['queue']:.0f}", f"{one['loss']:.1f}"]
        for cc, one in zip(ccs, pool.map(after_a_drop, ccs), strict=True)
    ]
    table(["cc", "its bandwidth, Mbit/s", "queue, ms", "lost, %"], rows)


def print_costs(_: ProcessPoolExecutor, ccs: Sequence[str]) -> None:
    """One after the other, as what runs beside them would cost them time."""
    print("### Packets a CPU second\n")
    ccs = [cc for cc in ccs if cc != "bbr3"]
    table(["cc", "packets"], [[f"`{cc}`", f"{packets_a_cpu_second(cc):,.0f}"] for cc in ccs])


TABLES = {
    "alone": print_alone, "shares": print_shares, "namesakes": print_namesakes,
    "timers": print_timers, "drop": print_drop, "costs": print_costs,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stacks", nargs="+", choices=STACKS, help="these only, without TCP")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    options = parser.parse_args()
    stacks = options.stacks or list(STACKS)
    controls = [f"{stack}:{control}" for stack in stacks for control in STACKS[stack].controls]
    ccs = [*([] if options.stacks else TCP), *controls]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.tables:
            TABLES[name](pool, ccs)


if __name__ == "__main__":
    main()
