"""Engine `sim`: the packet-level simulator (crates/fullpipe-sim), in this process; with algorithms
from files, in a worker without rights (congestion/userfiles/pool.py).

Its clock is virtual, and the same plan gives the same tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe import _native
from fullpipe.base.errors import AlgorithmError, RunError, UserError
from fullpipe.base.printable import printable
from fullpipe.base.writing import atomic_file
from fullpipe.congestion import stacks, userfiles
from fullpipe.engines.base import Progress, RunResult
from fullpipe.plan.plan import Plan
from fullpipe.plan.senders import cc_choices
from fullpipe.recording.recording import KERNEL_LOG
from fullpipe.scenario import link_traces

if TYPE_CHECKING:
    from fullpipe.engines.spool import SpooledRows

#: Options that name files to write.
_FILES = ("pcap", "cc_trace")
#: Characters of what files of a kernel print (crates/fullpipe-cc, log.rs).
_MOST_LOG = 1 << 17


class SimEngine:
    """The simulator."""

    name = "sim"

    def check(self, plan: Plan, _options: Mapping[str, Any] | None = None) -> None:
        """Raises UserError for features that only a kernel has."""
        for whose, choice in cc_choices(plan):
            if stacks.is_planned(choice):
                continue
            if choice["algorithm"] is None:
                raise UserError(
                    f"{whose}: {choice['name']} is the kernel's own and needs "
                    "--engine vm or live; the simulator runs the names of `fullpipe cc list`"
                )
        _check_stacks(plan)

    def run(self, plan: Plan, progress: Progress, options: Mapping[str, Any]) -> RunResult:
        """Runs the plan; options `pcap` and `cc_trace` are paths of a capture, and of a trace of
        every call of the flows' congestion controls (`fullpipe replay`), to write. With `debug_cc`
        files of C are compiled for a debugger and run in this process."""
        # A sweep's short runs are checked here and run without Arrow.
        from fullpipe.engines.spool import SpooledRows
        from fullpipe.engines.tables import arrow_tables
        from fullpipe.scenario.traffic.traces import traces_of

        self.check(plan)
        link_traces.verify(plan)
        for key, why in (
            ("pages", "[[page]], whose connections are two each"),
            ("traffic", "[[traffic]], whose connections are used again"),
        ):
            for option in ("pcap", "cc_trace"):
                if options.get(option) and plan.get(key):
                    raise UserError(f"--{option.replace('_', '-')}: not with {why}")
        if options.get("pcap") and stacks.used(cc_choices(plan)):
            raise UserError("--pcap: not with flows of QUIC stacks, whose packets are encrypted")
        flows = traces_of(plan)
        rows = SpooledRows()
        is_debugged = bool(options.get("debug_cc"))
        with _opened(options) as files:
            if _is_contained(plan) and not is_debugged:
                raw = _contained(plan, progress, files, flows, rows)
            else:
                raw = _here(plan, progress, files, flows, rows, is_debugged)
            try:
                tables = rows.with_last(arrow_tables(raw))
            except (KeyError, ValueError, TypeError, NotImplementedError) as error:
                raise AlgorithmError(f"the tables of this run are forged: {error}") from None
        health = {"problems": [], **raw.get("health", {})}
        for flow, why in health.pop("transport_failures", ()):
            name = plan["flows"][flow]["name"]
            health["problems"].append(f"flow {name}: its connection failed: {why}")
        names = [name for _, name in stacks.used(cc_choices(plan))]
        metadata: dict[str, Any] = {"stacks": stacks.versions(names)} if names else {}
        if log := raw.get("log"):
            metadata["facts"] = {KERNEL_LOG: printable(log, _MOST_LOG)}
        return RunResult(tables, metadata, health, interrupted=bool(raw.get("interrupted")))


def _check_stacks(plan: Plan) -> None:
    flows = stacks.used([(f"flow {flow['name']}", flow["cc"]) for flow in plan["flows"]])
    used = stacks.used(cc_choices(plan))
    for whose, name in used:
        if (whose, name) not in flows:
            raise UserError(f"{whose}: {name} is a QUIC stack's, which only [[flow]] can use")
    limited = {f"flow {flow['name']}" for flow in plan["flows"] if flow.get("max_pacing_rate_bps")}
    for whose, name in flows:
        if whose in limited:
            raise UserError(
                f"{whose}: max_pacing_rate: {name} is a QUIC stack's, whose program paces by "
                "itself; app_rate limits what its application writes"
            )
    if used:
        stacks.transports(stacks.modules_of(name for _, name in used))
        whose, name = used[0]
        if _is_contained(plan):
            raise UserError(
                f"{whose}: {name} is a QUIC stack's, which cannot run beside a congestion control "
                "from a file: that runs in a worker without rights"
            )


def _is_contained(plan: Plan) -> bool:
    """Whether the plan's algorithms come from files, and none from this program, which only this
    process can run."""
    names = _external(plan)
    return bool(names) and not any(map(userfiles.is_handed, names))


def _external(plan: Plan) -> list[str]:
    names = {choice["algorithm"] for _, choice in cc_choices(plan)}
    return sorted(filter(userfiles.is_external, names))


def _contained(
    plan: Plan,
    progress: Progress,
    files: Mapping[str, int],
    flows: Mapping[str, Any],
    rows: SpooledRows,
) -> dict[str, Any]:
    listener = userfiles.Listener(progress, rows)
    arguments = {"plan": json.dumps(plan), "traces": list(flows)}
    blobs = [column for trace in flows.values() for column in trace.parts()]
    answer = userfiles.ask(
        _external(plan),
        "run",
        arguments,
        blobs,
        listener,
        link_traces.paths(plan),
        files,
        userfiles.Bounds(end_ns=plan["duration_ns"]),
    )
    try:
        value = answer.value
        tables = userfiles.unpacked(value["tables"], answer.blobs)
        return {
            **tables,
            "health": userfiles.counts(value["health"]),
            "interrupted": bool(value["interrupted"]),
            "log": str(value["log"]),
        }
    except (KeyError, ValueError, TypeError) as error:
        raise AlgorithmError(f"the tables of this run are forged: {error}") from None


def _here(
    plan: Plan,
    progress: Progress,
    files: Mapping[str, int],
    flows: dict[str, Any],
    rows: SpooledRows,
    is_debugged: bool,
) -> dict[str, Any]:
    for algorithm in _external(plan):
        userfiles.load_here(algorithm, is_debugged)
    pcap, cc_trace = (os.dup(files[name]) if name in files else None for name in _FILES)
    try:
        modules = stacks.modules_of(name for _, name in stacks.used(cc_choices(plan)))
        transports = stacks.transports(modules)
        return _native.sim.run(json.dumps(plan), progress, pcap, cc_trace, flows, rows, transports)
    except ValueError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot be written: {error}") from None
    except RuntimeError as error:
        cause = error.__cause__
        if cause is None or not hasattr(error, "algorithm"):
            raise RunError(f"the simulator failed: {error}") from None
        if not isinstance(cause, Exception):
            raise cause from None  # KeyboardInterrupt
        from fullpipe.congestion.userfiles import classes

        raise UserError(classes.explain(error.algorithm, cause)) from cause


@contextmanager
def _opened(options: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Descriptors of the files that a run writes, by option. They replace older files when the
    block ends without an exception; devices and pipes are written at once."""
    with ExitStack() as stack:
        files = {}
        for name in _FILES:
            if options.get(name):
                path = Path(options[name])
                if not path.exists() or path.is_file():
                    path = stack.enter_context(atomic_file(path))
                try:
                    file = stack.enter_context(path.open("wb"))
                except OSError as error:
                    raise UserError(
                        f"{options[name]}: cannot be written: {error.strerror}"
                    ) from None
                files[name] = file.fileno()
        yield files
