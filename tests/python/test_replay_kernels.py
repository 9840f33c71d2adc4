"""Record and replay in the virtual machine: every call that a stock kernel makes of our
congestion controls, over a path with loss, marks and a full buffer, gives the same outputs in the
native build, bit for bit."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from fullpipe import kernel
from fullpipe.congestion import registry
from fullpipe.engines.vm import VmEngine, kernels
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

pytestmark = pytest.mark.vm

#: Of a record (crates/fullpipe-cc/src/replay.rs) and of the call in it (bpf/glue.h): what it is.
RECORD_CALL, CALL_KIND, EVENT_KIND = 2, 16, -96
CALL_EVENT, TX_START = 2, 1
ALGORITHMS = ("reno", "cubic", "dctcp", "prague", "bbr1", "bbr2", "bbr3", "bbr3-linux", "bbrnplus")


def plan_of(ccs: tuple[str, ...], seconds: int, rate: str) -> dict[str, Any]:
    """One flow of each."""
    return resolve(
        make_scenario(
            {
                "name": "trace",
                "duration": f"{seconds}s",
                "seed": 7,
                # Nine flows over 13 packets of BDP: with less room than this, which of them waits
                # for a timeout all the time hangs on instructions.
                "path": {"rate": rate, "rtt": "4ms", "buffer": "4bdp", "ecn": True,
                         "loss": "0.3%", "loss_marks": True},
                "flow": [{"cc": cc} for cc in ccs],
            }
        )
    )  # fmt: skip


def trace(plan: dict[str, Any], out: Path, version: str) -> tuple[kernel.Replay, dict[str, Any]]:
    """Runs it in the machine; returns the replay and the run's columns of flows."""
    # Nothing else needs a machine with so much memory: none is kept.
    options = {"kernel": version, "cc_trace": str(out), "from_snapshot": False}
    run = VmEngine().run(plan, lambda _done: True, options)
    assert run.failure is None
    return kernel.replay(out), run.tables["flows"].to_pydict()


def started(path: Path) -> set[int]:
    """The congestion controls of a trace, as it numbers them, that were told of a first packet."""
    told, content = set(), path.read_bytes()
    at = len(b"fpcctrc3")
    while at < len(content):
        record, size = struct.unpack_from("<II", content, at)
        call = content[at + 8 : at + 8 + size]
        at += 8 + size
        if record == RECORD_CALL:
            kinds = [int.from_bytes(call[k : k + 4], "little") for k in (CALL_KIND, EVENT_KIND)]
            if kinds == [CALL_EVENT, TX_START]:
                told.add(int.from_bytes(call[:4], "little"))
    return told


@pytest.mark.parametrize("version", kernels.VERSIONS)
def test_every_algorithm_on_each_kernel_replays_bit_for_bit(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version != kernels.DEFAULT and kernels.cached(version) is None:
        pytest.skip(f"Debian's kernel {version} could not be downloaded")
    plan = plan_of(ALGORITHMS, 3, "40mbit")
    # What is traced is loaded for this run: a machine that loads none before boots sooner.
    monkeypatch.setattr(registry, "cc_sets", dict)
    found, flows = trace(plan, tmp_path / "trace", version)
    assert not found.is_cut_off
    for one in found.algorithms:
        assert one.difference is None, one
        # Their receivers run them too.
        ends = 2 if one.algorithm in ("dctcp", "prague") else 1
        assert (one.lost, one.skipped, one.connections) == (0, 0, ends), one
        assert one.calls > 300, one
    assert len(found.algorithms) == len(ALGORITHMS)
    # A call of its own since 7.1 (cwnd_event_tx_start), before one of cwnd_event's.
    assert len(started(tmp_path / "trace")) == len(ALGORITHMS)
    assert sum(flows["packets_lost"]) > 100
    assert sum(flows["packets_delivered_ce"]) > 10
