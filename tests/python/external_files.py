"""Files of congestion controls for tests: one that works, and what breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fullpipe.authoring.new import write_new
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES
from fullpipe.scenario.model import make_scenario

PATH = {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp", "loss": "0.2%"}


def plan(name: str, **more: Any) -> dict[str, Any]:
    document = {"duration": "4s", "path": PATH, "flow": [{"cc": name, "name": "one"}]} | more
    return resolve(make_scenario(document))


def run(name: str, **more: Any) -> dict[str, Any]:
    result = SimEngine().run(plan(name, **more), lambda _done: True, {})
    return {name: result.tables[name].drop_columns(
        [c for c in result.tables[name].column_names if c == "cc"]).to_pydict()
        for name in TABLES}  # fmt: skip


GROW = "cc_additive_increase(conn, ctl, ctl->cwnd, left); /* a packet a round trip */"


def works(folder: Path, name: str = "mine") -> Path:
    """The file of `fullpipe cc new`."""
    return write_new(name, None, folder)


def changed(folder: Path, old: str, new: str) -> Path:
    """The same with a text replaced."""
    path = works(folder)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


#: What it is -> (old text, new text, what the refusal says). Refused before anything runs.
REFUSED = {
    "syntax error": ("u32 left = ack->acked_sacked;", "u32 left = ;", "mine.h:37: expected expr"),
    "missing function": ("mine_on_event(", "mine_on_evnt(", "mine_on_event() is missing"),
    "missing state": ("struct mine {", "struct other {", "struct mine is missing"),
    "empty state": ("u32 prior_cwnd;", "", "prior_cwnd"),
    "later contract": ("mine_CONTRACT 5", "mine_CONTRACT 7", "version 7 of the contract, this"),
    "earlier contract": ("mine_CONTRACT 5", "mine_CONTRACT 1", "since then, 2: the events LOST"),
    "floating point": ("u32 left =", "double gain = 0.5; u32 left = (u32)gain +", "integers only"),
    "a constant of 1.5": (GROW, "ctl->cwnd += (u32)(1.5 * left);", "mine.h:43: 1.5: an algor"),
    "a constant of 0x1p3": (GROW, "ctl->cwnd += (u32)0x1p3;", "mine.h:43: 0x1p3: an algorithm"),
    "a constant of 1e3": (GROW, "ctl->cwnd += (u32)1e3;", "mine.h:43: 1e3: an algorithm"),
    "the type of a quotient": (
        GROW, "ctl->cwnd += (u32)((__typeof__(1 / 1.))left / 3);", "mine.h:43: 1.: an algorithm"),
    "a type of the compiler": (GROW, "_Float64 x = left; ctl->cwnd += (u32)x;", "_Float64"),
    "libc header": ('#include "cc.h"', "#include <math.h>\n#include", ":4: #include <math.h>"),
    "libc function": (GROW, "ctl->cwnd += (u32)rand();", "rand"),
    "declared libc function": (
        GROW, "int rand(void); ctl->cwnd += (u32)rand();", "mine.h:43: rand() is not there",
    ),
    "global variable": (GROW, "static u32 calls; ctl->cwnd += calls++;", "calls is a variable"),
    "5 KB of stack": (
        GROW, "volatile u32 a[1280]; a[left & 1023] = 1; ctl->cwnd += a[7];", "512 bytes of stack",
    ),
    "state too large": ("u32 prior_cwnd;", "u32 prior_cwnd, more[2000];", "at most 4096"),
    "two algorithms": ("#define mine_FLAGS 0", "#define mine_FLAGS 0\n#define b_FLAGS 0",
                       "defines b and mine"),
    "write to ack": (GROW, "ack->acked_sacked = 0;", "read-only"),
    "flag that every host asks for": (
        "#define mine_FLAGS 0",
        "#define mine_FLAGS CC_OWNS_CWND\n#define mine_FLAGS_IF(F) F(CC_OWNS_CWND, p->beta > 9)",
        "NAME_FLAGS_IF: only CC_WANTS_RTT",
    ),
    "ring without window": ("mine_FLAGS 0", "mine_FLAGS CC_WANTS_RING", "needs CC_OWNS_CWND"),
    "wrong type": ("struct cc_ctl *ctl)\n{\n\tif (event", "int ctl)\n{\n\tif (event", "mine.h"),
    "not text": ("mine", "\udcff", ""),
}  # fmt: skip

#: Contained while it runs: the reason of the stop.
CONTAINED = {
    "endless loop": (GROW, "for (;;) ctl->cwnd_cnt++;", "stopped: no simulated time passed"),
    "calls itself": (GROW, "mine_on_ack(s, p, conn, ack, ctl);", "mine.h"),
    "endless recursion": (
        "CC_INLINE void mine_init",
        "__attribute__((noinline)) static u32 deep(volatile u32 *n)\n"
        "{ volatile u32 here = *n + 1; return deep(&here) + here; }\nCC_INLINE void mine_init",
        "",
    ),
    "division by zero": (GROW, "ctl->cwnd += left / conn->ecn_low;", "mine.h:43: division by zero"),
    "index outside": (GROW, "u32 a[4] = {0}; ctl->cwnd += a[left + 9];", "mine.h:43: an index"),
    "wild pointer": (GROW, "ctl->cwnd += *(u32 *)(8ull * left);", "memory that is not its own"),
}  # fmt: skip
