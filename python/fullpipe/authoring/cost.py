"""The cost of a congestion control in instructions for each ACK at a sender. A kernel in the
virtual machine, whose clock counts instructions, measures every call of the eBPF programs
(kernel.bpf_stats_enabled).

The overhead of measuring is subtracted. It comes from programs that only call the kernel's own
CUBIC, and from an empty one (bpf/kernel_cubic.c). The glue's cost (bpf/glue.h) is that of the same
programs with an algorithm of the same flags that only sets a pacing rate once.

What does not depend on a user's file is measured once and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.scratch import scratch
from fullpipe.base.writing import atomic_file
from fullpipe.congestion.registry import cc_set
from fullpipe.congestion.userfiles import describe, is_file_name, read
from fullpipe.engines import assets, engine
from fullpipe.engines.base import RunResult
from fullpipe.engines.vm import hardware
from fullpipe.engines.vm.kernels import find as find_kernel
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: Congestion controls to compare with, the kernel's own first.
COMPARED = ("kernel:cubic", "bbr3")
_PATH = {"rate": "100mbit", "rtt": "10ms", "buffer": "2bdp"}
_SECONDS, _COUNTED_SECONDS = 5, 2
#: Programs that are called with an ACK; and one that the kernel's CUBIC has to measure counting.
_ACKS = ("fp_cong_control", "fp_cong_avoid")
_NOTHING = "fp_min_tso_segs"

#: Program -> calls, and instructions for each call.
Programs = Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class Cost:
    """The cost of one congestion control in instructions; `glue` is None if it has none."""

    name: str
    #: Of the whole guest (sender, router and receiver) for each packet.
    guest_a_packet: float
    #: The algorithm alone for each ACK passed to it, with its other calls included.
    own_an_ack: float
    #: The glue between the algorithm and the kernel, likewise.
    glue_an_ack: float | None
    acks: int
    programs: Programs

    def document(self) -> dict[str, Any]:
        """The cost as a JSON object."""
        return {
            "cc": self.name,
            "guest_a_packet": round(self.guest_a_packet),
            "own_an_ack": round(self.own_an_ack),
            "glue_an_ack": None if self.glue_an_ack is None else round(self.glue_an_ack),
            "acks": self.acks,
            "programs": {
                name: {"calls": calls, "instructions_a_call": round(each)}
                for name, (calls, each) in self.programs.items()
            },
        }


def costs(cc: str, release: str) -> list[Cost]:
    """The costs of a congestion control and of those in COMPARED, on a kernel. Raises UserError and
    RunError as a run does."""
    kernels_own, *ours = COMPARED
    theirs, nothing = _kernels_own(_counted_once(kernels_own, release))
    measured = [_cost(kernels_own, theirs, None, _of_guest_once(kernels_own, release))]
    glue: dict[int, Programs] = {}
    for name in (cc, *ours):
        flags = _flags(name)
        if flags not in glue:
            glue[flags] = _without(_of_nothing(flags, release), nothing)
        once = name in ours
        programs = (_counted_once if once else counted)(name, release)
        guest = (_of_guest_once if once else _of_guest)(name, release)
        measured.append(_cost(name, _without(programs, nothing), glue[flags], guest))
    return sorted(measured, key=lambda cost: cost.name != cc)


def _cost(name: str, programs: Programs, glue: Programs | None, guest: float) -> Cost:
    acks = sum(programs[program][0] for program in _ACKS if program in programs)
    whole = sum(calls * each for calls, each in programs.values()) / acks
    between = None
    if glue is not None:
        # A call without a counterpart in the glue's run counts for the algorithm.
        glue_costs = {program: each for program, (calls, each) in glue.items() if calls}
        between = (
            sum(n * glue_costs.get(program, 0.0) for program, (n, _) in programs.items()) / acks
        )
    return Cost(name, guest, whole - (between or 0.0), between, acks, programs)


def counted(name: str, release: str) -> Programs:
    """The cost of each program in a run of 2 s, with the overhead of measuring but without the
    one-time cost of a connection."""
    facts = _run(name, release, _COUNTED_SECONDS, {"cc_cost": True}).metadata["facts"]
    return {
        program["program"]: (program["calls"], program["ns"] / program["calls"])
        for program in json.loads(facts["cc_cost"])
        if program["calls"] and program["program"] not in ("fp_init", "fp_release")
    }


def _counted_once(name: str, release: str) -> Programs:
    return _programs(_once("counted", name, release, lambda: counted(name, release)))


def _programs(stored: Mapping[str, Sequence[Any]]) -> Programs:
    return {program: (int(calls), float(each)) for program, (calls, each) in stored.items()}


def _of_guest_once(name: str, release: str) -> float:
    return float(_once("guest", name, release, lambda: _of_guest(name, release)))


def _once(kind: str, name: str, release: str, measure: Callable[[], Any]) -> Any:
    """What was measured of a name that is no user's file, kept under a hash of all that decides
    it."""
    image = find_kernel(release, None).image.stat()
    facts = (
        kind,
        name,
        _PATH,
        _SECONDS,
        _COUNTED_SECONDS,
        image.st_size,
        image.st_mtime_ns,
        hardware.version(),
        _digest_of_code(),
    )
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    file = user_cache() / "costs" / f"{key}.json"
    with suppress(OSError, ValueError):
        return json.loads(file.read_text(encoding="utf-8"))
    value = measure()
    with suppress(UserError), atomic_file(file) as partial:
        partial.write_text(json.dumps(value), encoding="utf-8")
    return value


def _digest_of_code() -> str:
    """A hash of what runs in the guest besides a user's file."""
    digest = hashlib.sha256()
    objects = sorted(assets.objects_folder().glob("*.o"))
    headers = sorted([*shipped("cc").glob("*.h"), *shipped("bpf").glob("*.[ch]")])
    for file in (assets.agent(), assets.turnstile(), *objects, *headers):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _kernels_own(programs: Programs) -> tuple[Programs, float]:
    """The cost of the kernel's own CUBIC, and the overhead of measuring one call."""
    nothing = programs[_NOTHING][1]
    remaining = {name: cost for name, cost in programs.items() if name != _NOTHING}
    return _without(remaining, nothing), nothing


def _without(programs: Programs, nothing: float) -> Programs:
    return {name: (calls, max(each - nothing, 0.0)) for name, (calls, each) in programs.items()}


def _of_nothing(flags: int, release: str) -> Programs:
    def measure() -> Programs:
        with scratch("fullpipe-cost-") as folder:
            file = folder / "nothing.h"
            file.write_text(_does_nothing(flags), encoding="utf-8")
            return counted(str(file), release)

    return _programs(_once("counted", f"nothing with flags {flags}", release, measure))


def _does_nothing(flags: int) -> str:
    state = "struct nothing *s, const struct nothing_params *p, const struct cc_conn *conn"
    return f"""#include "cc.h"
#include "params.h"
#define nothing_FLAGS {flags}
#define nothing_PARAMS(P) P(none, 0, 0, 1, 1, "", "", "", "")
struct nothing_params {{ nothing_PARAMS(CC_PARAM_FIELD) }};
struct nothing {{ u32 none; }};
CC_INLINE void nothing_init({state}, struct cc_ctl *ctl) {{
	ctl->pacing_rate_Bps = 12500000; /* else the glue has a rate to find at every call */
}}
CC_INLINE void nothing_on_ack({state}, const struct cc_ack *ack, struct cc_ctl *ctl) {{}}
CC_INLINE void nothing_on_event({state}, const struct cc_event *event, struct cc_ctl *ctl) {{}}
CC_INLINE void nothing_info(const struct nothing *s, const struct nothing_params *p,
                            struct cc_info *info) {{}}
"""


def _flags(name: str) -> int:
    file = name.partition("[")[0]
    if is_file_name(file):
        return int(describe(read(file))["flags"])
    algorithm = cc_set(name).algorithm
    return next(
        int(entry["flags"]) for entry in _native.cc.algorithms() if entry["name"] == algorithm
    )


def _of_guest(name: str, release: str) -> float:
    result = _run(name, release, _SECONDS, {})
    packets = sum(result.tables["flows"]["packets_delivered"].to_pylist())
    return float(result.health["cpu_busy_mean"] * 1e9 * _SECONDS / packets)


def _run(name: str, release: str, seconds: int, options: Mapping[str, Any]) -> RunResult:
    document = {"path": _PATH, "duration": f"{seconds}s", "flow": [{"cc": name}]}
    plan = resolve(make_scenario(document, Path(name).name))
    return engine("vm").run(plan, lambda _done: True, {"kernel": release, **options})


def words_of(measured: Sequence[Cost]) -> str:
    """The costs as a sentence."""
    each = ", ".join(f"{cost.name} {cost.own_an_ack:,.0f}" for cost in measured)
    return f"instructions an ACK of the algorithm alone: {each}"
