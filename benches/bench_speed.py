"""Speed and memory of the simulator.

Prints delivered data packets a CPU second of two flows (BBRv3 and CUBIC) at 1 Gbit/s, 40 ms, 1 BDP
(target: 1.5 million), simulated over CPU time of two BBRv3 flows at 10 Gbit/s, 20 ms (target: above
1), the growth of memory from 60 s to 600 s (target: at most 1.2 times), and packets a CPU second
under CAKE as a part of those under a FIFO (target: at least half).
"""

from __future__ import annotations

import json
import time

from memory import peak_kib

from fullpipe import _native
from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario


def measure(rate: str, rtt: str, ccs: list[str], duration_s: int, **path: str) -> tuple[float, int]:
    """(CPU seconds, delivered data packets) of one run."""
    document = {
        "duration": f"{duration_s}s",
        "path": {"rate": rate, "rtt": rtt, "buffer": "1bdp", **path},
        "flow": [{"cc": cc} for cc in ccs],
    }
    plan = json.dumps(resolve(make_scenario(document)))
    begin = time.process_time()
    health = _native.sim.run(plan)["health"]
    return time.process_time() - begin, health["packets_delivered"]


def main() -> None:
    """Prints the figures."""
    seconds, packets = measure("1gbit", "40ms", ["bbr3", "cubic"], 60)
    print(f"1 Gbit/s, 2 flows: {packets / seconds / 1e6:.2f} million packets a CPU second")
    seconds, packets = measure("10gbit", "20ms", ["bbr3", "bbr3"], 10)
    print(f"10 Gbit/s, 2 flows: {10 / seconds:.2f} simulated seconds a CPU second")
    case = "measure('1gbit', '40ms', ['bbr3', 'cubic'], {})"
    short, long = (peak_kib("bench_speed", case.format(seconds)) for seconds in (60, 600))
    print(f"memory: {short / 1024:.0f} MiB for 60 s, {long / 1024:.0f} MiB for 600 s")
    print(f"growth: {long / short:.2f} times")
    per_packet = []
    for qdisc in ("fifo", "cake"):
        seconds, packets = measure("1gbit", "40ms", ["bbr3", "cubic"], 20, qdisc=qdisc)
        per_packet.append(seconds / packets)
    print(f"CAKE: {per_packet[0] / per_packet[1]:.2f} of a FIFO's packets a CPU second")


if __name__ == "__main__":
    main()
