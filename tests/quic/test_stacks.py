"""QUIC stacks in the simulator: what the network does to their packets, and what recordings say.
`make test-quic` runs these with the modules of stacks."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.congestion.stacks import STACKS
from fullpipe.recording.recording import Recording
from fullpipe.report.qlog import write_qlog
from qlog_files import check_by_the_schema, events_of_the_model, records

CONTROLS = [f"{name}:{control}" for name, stack in STACKS.items() for control in stack.controls]

#: What uses a part of the link only (docs/evidence/quic.md), and how much at least.
LITTLE = {"tquic:bbr3": 0.3}


def scenario(*flows: dict[str, Any], duration: str = "10s", **path: Any) -> dict[str, Any]:
    path = {"rate": "20mbit", "rtt": "20ms", "buffer": "1bdp", **path}
    return {"name": "quic", "duration": duration, "path": path, "flow": list(flows)}


def totals(document: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = fullpipe.run(document, **options).table("flows").to_pylist()
    return rows


def files(document: dict[str, Any], out: Path) -> dict[str, bytes]:
    fullpipe.run(document, out=out)
    return {file.name: file.read_bytes() for file in out.glob("*.parquet")}


@pytest.mark.parametrize("module", sorted({stack.module for stack in STACKS.values()}))
def test_a_module_has_the_stacks_that_scenarios_may_name(module: str) -> None:
    found = importlib.import_module(module).stacks()
    built = {name: tuple(controls) for name, (_, controls) in found.items()}
    named = {name: stack.controls for name, stack in STACKS.items() if stack.module == module}
    assert built == named


@pytest.mark.parametrize("cc", CONTROLS)
def test_the_same_seed_gives_the_same_bytes(cc: str, tmp_path: Path) -> None:
    document = scenario({"cc": cc}, {"cc": "cubic"}, loss="0.1%")
    assert files(document, tmp_path / "1") == files(document, tmp_path / "2")


@pytest.mark.parametrize("cc", ["tquic:bbr3", "quiche:bbr2", "ngtcp2:bbr"])
def test_another_process_gives_the_same_bytes(cc: str, tmp_path: Path) -> None:
    document = scenario({"cc": cc}, {"cc": "cubic"}, loss="0.1%")
    file = tmp_path / "one.toml"
    file.write_text(tomli_w.dumps(document))
    main = [sys.executable, "-c", "from fullpipe.cli import main; main()", "run", str(file)]
    for out in ("1", "2"):
        words = ["--no-report", "--out", str(tmp_path / out)]
        subprocess.run([*main, *words], check=True, capture_output=True)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / out).glob("*.parquet")}
        for out in ("1", "2")
    )
    assert first == second
    assert first


def test_stacks_of_all_modules_share_a_link_with_tcp() -> None:
    ccs = ["quiche:cubic", "tquic:cubic", "ngtcp2:cubic", "cubic"]
    flows = [{"cc": cc} for cc in ccs]
    rows = totals(scenario(*flows))
    assert sum(row["bytes_delivered"] for row in rows) > 0.8 * 20e6 / 8 * 10
    assert min(row["bytes_delivered"] for row in rows) > 0.05 * 20e6 / 8 * 10


@pytest.mark.parametrize("cc", CONTROLS)
def test_a_flow_alone_uses_the_link_and_no_more(cc: str) -> None:
    (flow,) = totals(scenario({"cc": cc}))
    # Of 1,514 bytes on the wire at most 1,439 are the stream's: see OVERHEAD_BYTES.
    most_bytes = 20e6 / 8 * 10 * 1439 / 1514
    least = LITTLE.get(cc, 0.75)
    assert least * most_bytes < flow["bytes_delivered"] <= most_bytes


def test_every_packet_is_delivered_lost_or_in_flight() -> None:
    flows = [{"cc": cc} for cc in CONTROLS]
    link = {
        "name": "bad", "rate": "50mbit", "buffer": "100packets", "delay": "10ms", "loss": "1%",
        "duplicate": "2%", "reorder": "2%",
    }  # fmt: skip
    document = {"name": "quic", "duration": "5s", "link": [link], "flow": flows}
    (run,) = fullpipe.run(document)
    health = run.metadata["health"]
    assert health["problems"] == []
    sent = sum(row["packets_sent"] for row in run.table("flows").to_pylist())
    counted = sum(health[f"packets_{what}"] for what in ("delivered", "lost", "in_flight"))
    # A duplicate is counted as sent where it is made: about 2 % more.
    assert sent < counted < 1.03 * sent


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_an_amount_is_delivered_and_completes(stack: str, direction: str) -> None:
    amount = {"cc": f"{stack}:cubic", "amount": "1MB", "direction": direction}
    (flow,) = totals(scenario(amount))
    assert flow["bytes_delivered"] == 1_048_576
    # Not before the link has carried it behind the handshake's round trip.
    assert flow["completion_us"] > 40_000 + 2**20 * 8 / 20


def test_an_application_that_writes_at_a_rate_gets_that_rate() -> None:
    (flow,) = totals(scenario({"cc": "noq:cubic", "app_rate": "2mbit"}))
    assert flow["bytes_delivered"] == pytest.approx(2e6 / 8 * 10, rel=0.01)


def test_a_flow_that_stops_leaves_the_link_to_the_other() -> None:
    document = scenario({"cc": "quinn:cubic", "stop": "2s"}, {"cc": "quinn:newreno", "start": "5s"})
    first, second = totals(document)
    assert first["bytes_delivered"] < 20e6 / 8 * 4
    assert first["completion_us"] < 4_000_000
    assert second["bytes_delivered"] > 0.8 * 20e6 / 8 * 5


@pytest.mark.parametrize("stack", ["tquic", "quiche"])
def test_a_stack_without_ecn_is_refused_by_name(stack: str) -> None:
    with pytest.raises(UserError, match=f"{stack} has no ECN"):
        fullpipe.run(scenario({"cc": f"{stack}:cubic"}, ecn=True))


def test_marks_of_an_ecn_queue_reach_the_sender_without_a_loss() -> None:
    (flow,) = totals(scenario({"cc": "quinn:cubic"}, ecn=True, buffer="20bdp", qdisc="fq_codel"))
    assert flow["packets_delivered_ce"] > 0
    assert flow["recoveries"] > 0
    assert flow["packets_lost"] == 0


def test_a_flow_without_ecn_is_never_marked() -> None:
    (flow,) = totals(scenario({"cc": "quinn:cubic"}, buffer="20bdp", qdisc="fq_codel"))
    assert flow["packets_delivered_ce"] == 0
    assert flow["packets_lost"] > 0


def test_bbr_tells_its_phases() -> None:
    for cc in ("quinn:bbr", "noq:bbr3", "s2n:bbr", "ngtcp2:bbr"):
        rows = (
            fullpipe.run(scenario({"cc": cc}, duration="12s", rtt="100ms"))
            .table("cc_samples")
            .to_pylist()
        )
        assert {row["phase"] for row in rows} >= {"startup", "down", "probe_rtt"}


@pytest.mark.parametrize(("cc", "too_much"), [("noq:bbr3", 0), ("s2n:bbr", 1), ("ngtcp2:bbr", 0)])
def test_the_model_of_a_bbr_is_that_of_the_path(cc: str, too_much: int) -> None:
    path = {"rtt": "40ms", "buffer": "2bdp"}
    rows = fullpipe.run(scenario({"cc": cc}, **path)).table("cc_samples").to_pylist()
    # The link's rate without the headers of Ethernet, IP and UDP: 42 bytes a packet. s2n-quic adds
    # the ten packets of an ACK to each RTT (docs/evidence/quic.md).
    link_bps = 20e6 * (1 - 42 / 1514) + too_much * 10 * 1472 * 8 / 0.040
    most_bps = max(row["max_bw_bps"] for row in rows if row["t_us"] > 5e6)
    assert most_bps == pytest.approx(link_bps, rel=0.03)
    last = rows[-1]
    # The path's, and at most three packets of 0.6 ms on their way into the link.
    assert 40_000 <= last["min_rtt_us"] < 42_000
    # Not fewer than there can be with the buffer full, and not more than one an RTT of the path.
    rounds = last["round_count"] / (last["t_us"] / 1e6)
    assert 1 / 0.121 < rounds <= 1 / 0.040


@pytest.mark.parametrize("stack", ["quinn", "noq", "ngtcp2"])
def test_an_application_that_pauses_leaves_nothing_to_send(stack: str) -> None:
    flow = {"cc": f"{stack}:cubic", "pattern": {"on": "4s", "off": "6s"}}
    rows = fullpipe.run(scenario(flow)).table("flow_samples").to_pylist()
    # What is unsent when the pause begins is a window and 128 KiB at most: 0.1 s of the link each.
    sent = {row["packets_sent"] for row in rows if 4.5e6 < row["t_us"] < 10e6}
    assert len(sent) == 1


def test_a_capture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="encrypted"):
        fullpipe.run(scenario({"cc": "quinn:cubic"}), pcap=tmp_path / "x.pcap")


@pytest.mark.parametrize("cc", [f"{name}:cubic" for name in STACKS])
def test_qlog_of_a_stack_is_as_the_drafts_and_another_project_ask(cc: str, tmp_path: Path) -> None:
    fullpipe.run(scenario({"cc": cc}, duration="4s", loss="0.5%"), out=tmp_path / "recorded")
    (file,) = write_qlog(Recording.open(tmp_path / "recorded"), tmp_path / "qlog")
    header, *events = records(file)
    assert header["trace"]["common_fields"]["protocol_types"] == ["QUIC"]
    check_by_the_schema(file)
    found = events_of_the_model(file)
    assert found["RecoveryMetricsUpdated"] > 0 and found["CongestionStateUpdated"] > 0
    assert sum(found.values()) == len(events)


def test_another_seed_gives_other_packets(tmp_path: Path) -> None:
    document = scenario({"cc": "noq:bbr3"})
    first = files(document, tmp_path / "1")
    assert first != files({**document, "seed": 2}, tmp_path / "2")


def test_sweeps_run_stacks(tmp_path: Path) -> None:
    document = {
        "sweep": {"name": "q", "seeds": 1}, "axis": {"cc": ["quinn:cubic", "cubic"]},
        "scenario": scenario({"cc": "{cc}"}, duration="3s"),
    }  # fmt: skip
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(document))
    main = [sys.executable, "-c", "from fullpipe.cli import main; main()", "sweep", str(file)]
    done = subprocess.run([*main, "--out", str(tmp_path / "q")], capture_output=True, text=True)
    assert done.returncode == 0
    assert "2 runs" in done.stdout + done.stderr


def test_the_hunt_takes_a_stack(tmp_path: Path) -> None:
    main = [sys.executable, "-c", "from fullpipe.cli import main; main()", "hunt", "quinn:cubic"]
    words = ["--worst", "utilisation", "--budget", "1s", "--out", str(tmp_path)]
    subprocess.run([*main, *words], check=True, capture_output=True)
    assert [file.name for file in tmp_path.iterdir()] == ["quinn-cubic-utilisation.toml"]
