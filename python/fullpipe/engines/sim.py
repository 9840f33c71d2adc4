"""Engine `sim`: the packet-level simulator (crates/fullpipe-sim), in this process.

Its clock is virtual, and the same plan gives the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import external
from fullpipe.engines.base import Progress, RunResult
from fullpipe.plan.senders import cc_choices
from fullpipe.scenario import link_traces


class SimEngine:
    """The simulator."""

    name = "sim"

    def check(self, plan: Mapping[str, Any]) -> None:
        """Raises UserError for features that only a kernel has."""
        for whose, choice in cc_choices(plan):
            if choice["algorithm"] is None:
                raise UserError(
                    f"{whose}: {choice['name']} is the kernel's own and needs "
                    "--engine vm or live; the simulator runs the names of `fullpipe cc list`"
                )

    def run(
        self, plan: Mapping[str, Any], progress: Progress, options: Mapping[str, Any]
    ) -> RunResult:
        """Runs the plan; options `pcap` and `cc_trace` are paths of a capture, and of a trace of
        every call of the flows' congestion controls (`fullpipe replay`), to write."""
        # A sweep's short runs are checked here and run without Arrow.
        from fullpipe.engines.spool import SpooledRows
        from fullpipe.engines.tables import arrow_tables
        from fullpipe.recording.recording import OPTIONAL_TABLES
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
        algorithms = {choice["algorithm"] for _, choice in cc_choices(plan)}
        for algorithm in algorithms:
            if external.is_external(algorithm):
                external.load(algorithm)
        flows = traces_of(plan)
        rows = SpooledRows(OPTIONAL_TABLES["traffic"]) if plan.get("traffic") else None
        for algorithm in algorithms:
            if external.is_class(algorithm):
                _classes().renew(algorithm)
        try:
            files = (options.get("pcap"), options.get("cc_trace"))
            raw = _native.sim.run(json.dumps(plan), progress, *files, flows, rows)
        except ValueError as error:
            raise UserError(str(error)) from None
        except OSError as error:
            raise UserError(f"cannot be written: {error}") from None
        except RuntimeError as error:
            cause = error.__cause__
            if cause is not None and hasattr(error, "algorithm"):
                if not isinstance(cause, Exception):
                    raise cause from None  # KeyboardInterrupt
                raise UserError(_classes().explain(error.algorithm, cause)) from cause
            if hasattr(error, "details"):
                raise UserError(f"{external.explain(*error.details)}: {error}") from None
            raise RunError(f"the simulator failed: {error}") from None
        tables = arrow_tables(raw)
        if rows is not None:
            tables["traffic"] = rows.with_last(tables["traffic"])
        health = {"problems": [], **raw.get("health", {})}
        return RunResult(tables, {}, health, interrupted=bool(raw.get("interrupted")))


def _classes() -> Any:
    from fullpipe.congestion.external import classes  # most runs need none

    return classes
