"""`fullpipe trace calls` and `trace diff`: traces of calls as tables."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from external_files import works
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.engines.sim import SimEngine
from fullpipe.kernel import replay
from fullpipe.kernel.calls import first_difference, read_calls, write_calls
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: Bytes in front of a call's `conn` in a trace: the record's head, whose, and struct fp_call.
_BEFORE_CONN = 8 + 8 + 16
#: Fields of struct cc_conn, in bytes from its beginning (cc/cc.h).
_DELIVERED_US, _LAST_SEND_US, _SND_UNA, _SRTT_US = 24, 32, 72, 80


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def traced(out: Path, *controls: str, **more: Any) -> Any:
    document = {"duration": "4s", "path": {"rate": "10mbit", "rtt": "20ms", "loss": "0.2%"},
                "flow": [{"cc": cc} for cc in controls]} | more  # fmt: skip
    plan = resolve(make_scenario(document))
    return SimEngine().run(plan, lambda _done: True, {"cc_trace": out}).tables


def trace(*words: str) -> Any:
    return CliRunner().invoke(app, ["trace", *words])


def now_us_of_calls(trace: bytes) -> list[int]:
    """The first field of struct cc_conn in every call of a trace, by the format's description."""
    found, at = [], 8
    while at < len(trace):
        kind, size = struct.unpack_from("<II", trace, at)
        if kind == 2:
            found.append(struct.unpack_from("<Q", trace, at + _BEFORE_CONN)[0])
        at += 8 + size
    return found


def test_a_table_has_the_calls_that_a_replay_counts_and_the_traces_times(tmp_path: Path) -> None:
    traced(tmp_path / "t", "cubic", "bbr3")
    table = read_calls(tmp_path / "t", ["cc", "call", "conn_now_us", "sequence", "differs"])
    for found in replay(tmp_path / "t").algorithms:
        mine = table.filter(np.array(table["cc"].to_pylist()) == found.kernel_name)
        assert mine.num_rows == found.calls > 1000
        assert mine["call"].to_pylist().count("ack") == found.acks > 100
        assert mine["sequence"].to_pylist() == list(range(found.calls))
    assert table["conn_now_us"].to_pylist() == now_us_of_calls((tmp_path / "t").read_bytes())
    assert set(table["differs"].to_pylist()) == {""}


def test_variables_after_the_calls_are_those_that_the_run_recorded(tmp_path: Path) -> None:
    tables = traced(tmp_path / "t", "cubic")
    calls = read_calls(tmp_path / "t", ["conn_now_us", "w_max_packets", "k_s", "cwnd"]).to_pandas()
    samples = tables["cc_samples"].to_pandas()
    compared = 0
    for sample in samples.itertuples():
        before = calls[calls["conn_now_us"] <= sample.t_us]
        if before.empty or before["conn_now_us"].iloc[-1] == sample.t_us:
            continue
        last = before.iloc[-1]
        np.testing.assert_equal([last["w_max_packets"], last["k_s"]],
                                [sample.w_max_packets, sample.k_s])  # fmt: skip
        compared += not np.isnan(sample.k_s)
    assert compared > 10


def test_csv_and_parquet_have_the_same_rows_and_facts_only_where_they_are(tmp_path: Path) -> None:
    traced(tmp_path / "t", "bbr3")
    for ending in ("csv", "parquet"):
        write_calls(tmp_path / "t", tmp_path / f"calls.{ending}")
    table = pq.read_table(tmp_path / "calls.parquet")
    text = pyarrow.csv.read_csv(tmp_path / "calls.csv")
    assert text.column_names == table.column_names and text.num_rows == table.num_rows
    for name in ("cwnd", "ack_rtt_us", "event_value", "bw_bps", "pacing_gain"):
        assert text[name].to_pylist() == table[name].to_pylist()
    is_ack = np.array(table["call"].to_pylist()) == "ack"
    assert (table["ack_rtt_us"].is_valid().to_numpy() == is_ack).all()
    # What a call finds is what the one before it left, but for what the host changed between.
    cwnd, before = (np.array(table[name].to_pylist()) for name in ("cwnd", "before_cwnd"))
    assert (before[1:] == cwnd[:-1]).mean() > 0.99
    assert set(table["phase"].to_pylist()) >= {"startup", "drain"}


def test_a_file_of_the_user_has_its_own_variables_in_the_table(tmp_path: Path) -> None:
    traced(tmp_path / "t", str(works(tmp_path)))
    prior = read_calls(tmp_path / "t", ["prior_cwnd_packets"])["prior_cwnd_packets"].to_pylist()
    assert prior[0] == 0 and prior[-1] > 0


def test_equal_runs_do_not_differ_and_a_constant_shows_at_the_first_reduction(
    tmp_path: Path,
) -> None:
    traced(tmp_path / "a", "reno", "bbr3")
    traced(tmp_path / "again", "reno", "bbr3")
    assert first_difference(tmp_path / "a", tmp_path / "again") is None
    traced(tmp_path / "b", "reno[beta=0.75]", "bbr3")
    found = first_difference(tmp_path / "a", tmp_path / "b")
    assert found is not None and found.call == "ssthresh" and found.only_in is None
    calls = read_calls(tmp_path / "a", ["cc", "call", "sequence", "before_cwnd"]).to_pandas()
    first = calls[(calls["cc"] == "reno") & (calls["call"] == "ssthresh")].iloc[0]
    assert (found.connection, found.sequence) == (1, first["sequence"])
    cwnd = int(first["before_cwnd"])
    assert found.values == {"ssthresh": (cwnd // 2, cwnd * 768 // 1024)}


def test_a_changed_fact_and_a_missing_call_are_found(tmp_path: Path) -> None:
    traced(tmp_path / "a", "reno")
    trace = (tmp_path / "a").read_bytes()
    number = 700
    records, at = [], 8
    while at < len(trace):
        kind, size = struct.unpack_from("<II", trace, at)
        records.append((kind, at, at + 8 + size))
        at += 8 + size
    _, begin, _ = [one for one in records if one[0] == 2][number]
    changed = bytearray(trace)
    changed[begin + _BEFORE_CONN + 8] ^= 1  # now_ns
    (tmp_path / "b").write_bytes(changed)
    found = first_difference(tmp_path / "a", tmp_path / "b")
    assert found is not None and found.sequence == number
    assert list(found.values) == ["conn_now_ns"]
    (tmp_path / "c").write_bytes(trace[: records[-1][1]])
    found = first_difference(tmp_path / "a", tmp_path / "c")
    assert found is not None and found.only_in == 0
    assert found.sequence == len(records) - 2  # from 0, and one introduces the algorithm


def test_decisions_are_compared_whatever_the_hosts_clocks_and_numbers_begin_with(
    tmp_path: Path,
) -> None:
    traced(tmp_path / "a", "reno")
    trace = bytearray((tmp_path / "a").read_bytes())
    at = 8
    while at < len(trace):
        kind, size = struct.unpack_from("<II", trace, at)
        if kind == 2:
            # Another clock, sequence numbers that wrap, and an RTT of one microsecond more.
            conn = at + _BEFORE_CONN
            for place in (0, _DELIVERED_US, _LAST_SEND_US):
                us = struct.unpack_from("<Q", trace, conn + place)[0]
                struct.pack_into("<Q", trace, conn + place, us + 77_000_000)
            for place in (_SND_UNA, _SND_UNA + 4):
                number = struct.unpack_from("<I", trace, conn + place)[0]
                struct.pack_into("<I", trace, conn + place, (number + 2**32 - 5000) % 2**32)
            srtt_us = struct.unpack_from("<I", trace, conn + _SRTT_US)[0]
            struct.pack_into("<I", trace, conn + _SRTT_US, srtt_us + 1)
        at += 8 + size
    (tmp_path / "b").write_bytes(trace)
    assert first_difference(tmp_path / "a", tmp_path / "b") is not None
    assert first_difference(tmp_path / "a", tmp_path / "b", decisions_only=True) is None
    traced(tmp_path / "c", "reno[beta=0.75]")
    found = first_difference(tmp_path / "b", tmp_path / "c", decisions_only=True)
    assert found is not None and found.call == "ssthresh"
    # Of the facts only what a host measured otherwise: its clock and numbers are not the reason.
    assert set(found.values) <= {"ssthresh", "conn_srtt_us"}


def test_the_commands_draw_write_and_compare(tmp_path: Path) -> None:
    traced(tmp_path / "a", "cubic")
    traced(tmp_path / "b", "cubic[beta=0.8]")
    picture = tmp_path / "x.svg"
    shown = trace("calls", str(tmp_path / "a"))
    assert shown.exit_code == 0 and "w_max_packets" in shown.output
    drawn = trace("calls", str(tmp_path / "a"), "--plot", "cwnd,k_s", "--to", str(picture))
    assert drawn.exit_code == 0 and "k_s" in picture.read_text()
    answer = trace("diff", str(tmp_path / "a"), str(tmp_path / "b"))
    assert answer.exit_code == 1 and "w_est_packets: " in answer.output
    answer = trace("diff", str(tmp_path / "a"), str(tmp_path / "b"), "--decisions")
    assert answer.exit_code == 1 and "ssthresh: " in answer.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--to", "calls.txt"], "must end in .parquet or .csv"),
        (["--plot", "cwnd"], "--plot needs --to"),
        (["--plot", "cwnds", "--to", "x.svg"], "has no 'cwnds'; it has t_us, cc,"),
        (["--plot", "call", "--to", "x.svg"], "holds text"),
        (["--plot", ",", "--to", "x.svg"], "names no column"),
    ],
)
def test_a_wrong_request_is_refused_with_what_would_be_right(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    traced(tmp_path / "a", "reno", duration="1s")
    answer = trace("calls", "a", *arguments)
    assert isinstance(answer.exception, UserError) and reason in str(answer.exception)
    assert not list(tmp_path.glob("[cx]*"))


def test_what_is_no_trace_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"no trace")
    with pytest.raises(UserError, match="not a trace of congestion-control calls"):
        write_calls(tmp_path / "t", tmp_path / "calls.csv")
    with pytest.raises(UserError, match="No such file"):
        write_calls(tmp_path / "none", tmp_path / "calls.csv")
    assert not (tmp_path / "calls.csv").exists()
