"""The queue disciplines that there are. A new one is a class of `options.py` and a row of
`DISCIPLINES`, which holds the facts about the discipline on kernels. Knows no engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fullpipe.base.units import Buffer
from fullpipe.scenario.qdiscs.options import (
    Cake,
    Codel,
    DualPi2,
    Fifo,
    Fq,
    FqCodel,
    FqPie,
    Options,
    Pie,
    Prio,
    Red,
    Sfq,
    Tbf,
)

ONE_BDP = Buffer("bdp", 1.0)


@dataclass(frozen=True)
class Discipline:
    """What is known of a queue discipline beside its options.

    `modules`: the kernel modules that it needs. `unit`: what its limit counts, None where it can
    be either. `buffer`: the default limit, None where the kernel derives one. `tc`: what `tc qdisc
    add` takes to make one, if not its name alone."""

    options: type[Options]
    modules: tuple[str, ...] = ()
    unit: Literal["bytes", "packets"] | None = None
    buffer: Buffer | None = ONE_BDP
    tc: str = ""
    #: Kernels send ECT(0) only, and this discipline then queues every ECT packet as L4S.
    takes_ect_for_l4s: bool = False


def _packets(count: int) -> dict[str, Any]:
    return {"unit": "packets", "buffer": Buffer("packets", count)}


#: Default limits in packets are those of sch_fq.c, sch_codel.c, sch_fq_codel.c, include/net/pie.h,
#: sch_fq_pie.c, sch_sfq.c and sch_dualpi2.c.
DISCIPLINES: dict[str, Discipline] = {
    "fifo": Discipline(Fifo),
    "fq": Discipline(Fq, ("sch_fq",), **_packets(10_000)),
    "codel": Discipline(Codel, ("sch_codel",), **_packets(1000)),
    "fq_codel": Discipline(FqCodel, ("sch_fq_codel",), **_packets(10_240)),
    "red": Discipline(Red, ("sch_red",), "bytes", tc="red limit 100000 avpkt 1000"),
    "cake": Discipline(Cake, ("sch_cake",), "bytes", None),
    "pie": Discipline(Pie, ("sch_pie",), **_packets(1000)),
    "fq_pie": Discipline(FqPie, ("sch_fq_pie",), **_packets(10_240)),
    "sfq": Discipline(Sfq, ("sch_sfq",), **_packets(127)),
    "tbf": Discipline(Tbf, ("sch_tbf",), "bytes", tc="tbf rate 1mbit burst 10kb limit 100kb"),
    "prio": Discipline(Prio, ("sch_prio", "cls_u32")),
    "dualpi2": Discipline(DualPi2, ("sch_dualpi2",), **_packets(10_000), takes_ect_for_l4s=True),
}
