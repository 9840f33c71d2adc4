"""Engine `live`: the agent on this host's kernel, in real time. The path is made of network
namespaces, or is a real network to the agent of another host (`--peer`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from fullpipe import _native
from fullpipe.base.errors import RunError, UserError
from fullpipe.base.scratch import scratch
from fullpipe.engines import assets, host_settings
from fullpipe.engines.arrivals import refuse_many_flows, with_arrivals
from fullpipe.engines.base import Progress, RunResult
from fullpipe.engines.child import die_with_parent, stop
from fullpipe.engines.ecn import refuse_accurate_ecn, refuse_ecn
from fullpipe.engines.host import refuse_host
from fullpipe.engines.rows import refuse_links, refuse_rows, with_steps
from fullpipe.engines.streams import decoded
from fullpipe.engines.tables import arrow_tables
from fullpipe.engines.unfinished import with_totals
from fullpipe.plan.plan import Plan

_POLL_S = 0.1
#: Seconds beyond the run's duration that the agent may take for set-up and clean-up.
_GRACE_S = 60.0
DEFAULT_PORT = 7717


class LiveEngine:
    """This host's kernel."""

    name = "live"

    def check(self, plan: Plan, options: Mapping[str, Any] | None = None) -> None:
        """Raises UserError if the agent is missing, or, with options, if this host's kernel lacks
        what the plan needs."""
        refuse_links(plan, self.name)
        refuse_many_flows(plan, self.name)
        refuse_ecn(plan, self.name)
        assets.refuse_stacks(plan, self.name)
        assets.agent()
        for algorithm in assets.algorithms(plan):
            assets.bpf_object(algorithm)
        if options is not None:
            refuse_accurate_ecn(plan, os.uname().release)
            # Between two hosts, `host` says how they are, and nothing sets it.
            if not options.get("peer"):
                refuse_host(plan, self.name)

    def _check_rights(self) -> None:
        if os.geteuid() != 0:
            raise UserError(
                "--engine live builds network namespaces and loads congestion controls, which "
                "needs root: sudo fullpipe run ... (or --engine vm, which needs no rights)"
            )

    def run(self, plan: Plan, progress: Progress, options: Mapping[str, Any]) -> RunResult:
        """Runs the plan; options `peer` (HOST[:PORT]) and `token` for a real network."""
        self.check(plan, options)
        peer = _peer(options)
        if peer is None:
            self._check_rights()
        else:
            refuse_rows(plan)
            if plan.get("pages") or plan.get("datagrams") or plan.get("traffic"):
                raise UserError(
                    "page, udp, traffic: not between two hosts so far; leave --peer out"
                )
        request: dict[str, Any] = {
            "plan": with_arrivals(with_steps(plan)),
            "clock": "wall",
            "cc_trace": options.get("cc_trace"),
            "background_processes": int(options.get("background_processes", 0)),
            "peer": peer,
        }
        with scratch("fullpipe-live-") as folder:
            assets.put_objects(plan, folder)
            request["objects"] = str(folder)
            stream, interrupted, words = _run_agent(request, folder, plan, progress)
        received = decoded(stream, assets.algorithms(plan))
        failure = received["failure"]
        if not received["complete"] and not interrupted:
            failure = failure or f"the agent ended early: {words or 'no reason given'}"
        if failure and not received["tables"]["flow_samples"]["t_us"][1]:
            raise RunError(failure)
        facts = dict(received["facts"])
        kernel = facts.pop("kernel", os.uname().release)
        name = host_settings.interface_to(peer["host"]) if peer else None
        interface = host_settings.read_interface(name) if name else None
        metadata = {"kernel": kernel, "facts": facts | host_settings.facts(interface)}
        health = {"problems": list(received["problems"]), **dict(received["figures"])}
        if interface is not None:
            path = plan["path"]
            health["problems"] += host_settings.concerns(
                interface, path["rate_bps"], path["mtu_bytes"]
            )
        complete = with_totals(arrow_tables(received["tables"]), plan)
        tables = {name: _in_order(table) for name, table in complete.items()}
        return RunResult(tables, metadata, health, interrupted, failure)


def _run_agent(
    request: Mapping[str, Any], folder: Path, plan: Plan, progress: Progress
) -> tuple[bytes, bool, str]:
    """The agent's output stream, whether the run was stopped on request, and its stderr."""
    output = folder / "stream"
    output.touch()
    (folder / "request").write_text(json.dumps(request))
    with (
        (folder / "request").open("rb") as stdin,
        (folder / "errors").open("wb") as errors,
        output.open("rb") as reader,
    ):
        process = subprocess.Popen(
            [str(assets.agent()), "run", str(output)],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )
        left_s = plan["duration_ns"] / 1e9 + _GRACE_S
        interrupted = False
        unread = b""
        try:
            while process.poll() is None and left_s > 0:
                try:
                    process.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    left_s -= _POLL_S
                unread += reader.read()
                done_ns, used = _native.stream.follow(unread, 0)
                unread = unread[used:]
                if not progress(done_ns or 0) and not interrupted:
                    interrupted = True
                    process.send_signal(signal.SIGTERM)
        finally:
            stop(process)
    words = (folder / "errors").read_text(errors="replace").strip()
    if left_s <= 0:
        words = f"it did not end within {_GRACE_S:g} s after the run"
    return output.read_bytes(), interrupted, words


def _in_order(table: pa.Table) -> pa.Table:
    """Rows of two hosts sorted by time, then flow. Rows of one host are sorted already."""
    keys = [name for name in ("t_us", "flow_id") if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in keys])


def _peer(options: Mapping[str, Any]) -> dict[str, Any] | None:
    text = options.get("peer")
    if text is None:
        return None
    host, _, port = str(text).rpartition(":") if ":" in str(text) else (text, "", DEFAULT_PORT)
    if not str(port).isdigit() or not 0 < int(port) < 65536 or not host:
        raise UserError(f"--peer {text}: must be HOST or HOST:PORT, such as lab2:{DEFAULT_PORT}")
    if not options.get("token"):
        raise UserError(
            "--peer: needs the token that `fullpipe agent serve` printed there, as --token "
            "or in FULLPIPE_TOKEN"
        )
    return {"host": host, "port": int(port), "token": options["token"]}
