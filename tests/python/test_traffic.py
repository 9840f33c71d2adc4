"""Traffic: what may be written, what comes out, and the yardsticks against theory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import View, at_once, summarise, traffic_flows
from fullpipe.plan.resolve import resolve
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.traffic import captures, sizes, traces

PATH = {"rate": "50mbit", "rtt": "20ms", "buffer": "1bdp"}
DRAWN = {"cc": "cubic", "load": 0.5, "sizes": "30KB"}


def document(**changes: object) -> dict[str, object]:
    return {"duration": "5s", "path": PATH, "traffic": [{**DRAWN, **changes}]}


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("fullpipe")), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_load_makes_the_link_as_busy_as_it_says(tmp_path: Path) -> None:
    scenario = make_scenario({**document(sizes="pareto", load=0.4), "duration": "40s"})
    outcome = run_scenario(scenario, 'duration = "40s"', [tmp_path / "a"])
    summary = summarise(outcome.recordings[0])
    group = summary["traffic"][0]
    assert summary["path"]["utilisation"] == pytest.approx(0.4, rel=0.15)
    assert group["flows"] > 1000
    assert group["finished"] >= group["flows"] - group["at_once"]["max"]
    assert 1 <= group["yardsticks"]["srpt"] <= group["yardsticks"]["ps"] < group["slowdown"]["mean"]
    page = write_report(outcome.recordings, tmp_path / "page.html", light=True)
    assert "Flows that come and go" in page.read_text()


def test_flows_of_the_plan_and_traffic_share_a_link_and_runs_repeat(tmp_path: Path) -> None:
    flows = [{"cc": "bbr3"}]
    scenario = make_scenario({**document(senders=2, rtts=["20ms", "60ms"]), "flow": flows})
    recordings = [
        run_scenario(scenario, "", [tmp_path / name]).recordings[0] for name in ("a", "b")
    ]
    first, second = recordings
    for table in ("traffic", "flows", "queue_samples", "events"):
        assert first.table(table).equals(second.table(table))
    assert first.table("flows").num_rows == 1
    rtts = set(first.table("traffic")["base_rtt_us"].to_pylist())
    assert rtts == {20_000, 60_000}
    ids = set(first.table("events")["flow_id"].to_pylist())
    assert ids == {0}


def test_flows_at_once_are_counted_from_the_call_to_the_last_byte(tmp_path: Path) -> None:
    trace = tmp_path / "flows.csv"
    rows = ["0,0,0,1000", "1,5000,0,1000", "2,900000,0,1000"]
    trace.write_text("flow,start_us,pause_us,bytes\n" + "\n".join(rows) + "\n")
    groups = [{"cc": "cubic", "trace": str(trace)}]
    scenario = make_scenario({"duration": "2s", "path": PATH, "traffic": groups})
    recording = run_scenario(scenario, "", [tmp_path / "run"]).recordings[0]
    flows = traffic_flows(View(recording))[0]
    times, counts = at_once(flows, 2.0)
    assert counts.max() == 2 and counts[-1] == 0
    assert times[0] == 0 and flows.start_s.tolist() == [0.0, 0.005, 0.9]
    # Two RTTs and the time of a packet of 1066 bytes, over one RTT and the time of its payload with
    # its part of the headers.
    ideal_s = 0.02 + 8000 * 1514 / 1448 / 50e6
    assert flows.slowdown == pytest.approx(0.04 / ideal_s, rel=0.02)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_processor_sharing_slows_every_size_down_alike(load: float) -> None:
    # M/G/1-PS: mean slowdown 1 / (1 - load) at every size (Kleinrock 1967). Load 0.9 needs more
    # jobs than a test may take: benches/bench_traffic.py.
    rng = np.random.default_rng(1)
    count = 400_000
    works = rng.choice([0.5, 1.0, 3.0], count)
    arrivals = np.cumsum(rng.exponential(works.mean() / load, count))
    times = np.frombuffer(_native.traffic.fluid("ps", arrivals.tobytes(), works.tobytes()))
    for size in (0.5, 1.0, 3.0):
        slowdown = (times / works)[works == size].mean()
        assert slowdown == pytest.approx(1 / (1 - load), rel=0.02)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sizes": None}, "sizes"),
        ({"sizes": "nonsense"}, "is no size such as 100KB"),
        ({"sizes": "-3KB"}, "sizes"),
        ({"load": 0}, "load"),
        ({"load": None}, "give either load or flows_per_s"),
        ({"flows_per_s": 3}, "give either load or flows_per_s"),
        ({"trace": "mawi"}, "excludes trace"),
        ({"rtts": ["1ms", "2ms"]}, "2 for 1 senders"),
        ({"stop": "0s"}, "stop"),
        ({"start": "9s"}, "before the end of the run"),
        ({"cc": "vegas99"}, "vegas99"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(changes: dict[str, object], says: str) -> None:
    wanted = {key: value for key, value in {**DRAWN, **changes}.items() if value is not None}
    with pytest.raises(UserError, match=says):
        resolve(make_scenario({"duration": "5s", "path": PATH, "traffic": [wanted]}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("10,0.5\n20,0.9\n", ":2: share 0.9: the last must be 1"),
        ("10,0.5\n5,1\n", ":2: size 5: must not be below"),
        ("10,0.5\n20,0.4\n30,1\n", ":2: share 0.4: must not be below"),
        ("-10,0.5\n20,1\n", ":1: size -10: must be whole"),
        ("0\n7\n", ":1: size 0"),
        ("1,2,3\n", "one column"),
        ("1\nx\n", "not numbers"),
        ("nan,1\n", "not finite"),
    ],
)
def test_a_file_that_is_no_distribution_is_refused_by_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "sizes.csv"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        sizes.read(file)
    assert str(file) in str(error.value) and says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a trace"),
        ("flow,start_us,pause_us,bytes\n", "holds no flow"),
        ("flow,start_us,pause_us\n1,2,0\n", "column bytes is missing"),
        ("flow,start_us,pause_us,bytes\n1,0,0,-5\n", "bytes -5: must be from 0"),
        ("flow,start_us,pause_us,bytes\n1,0,0,0\n", "at least 1 byte"),
        ("flow,start_us,pause_us,bytes\n1,0,5,9\n", "begins with a pause"),
        ("flow,start_us,pause_us,bytes\n1,0,0,9\n1,4,5,9\n", "the same in all rows"),
        ("flow,start_us,pause_us,bytes\n1,0,0,x\n", "not a trace"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_its_column(
    tmp_path: Path, text: str, says: str
) -> None:
    trace = tmp_path / "flows.csv"
    trace.write_text(text)
    with pytest.raises(UserError) as error:
        traces.load(str(trace))
    assert str(trace) in str(error.value) and says in str(error.value)


def test_a_bad_trace_ends_a_run_with_status_2(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    (tmp_path / "flows.csv").write_text("flow,start_us,pause_us,bytes\n")
    scenario.write_text(
        'duration = "2s"\n[path]\nrate = "10mbit"\nrtt = "10ms"\n'
        '[[traffic]]\ncc = "cubic"\ntrace = "flows.csv"\n'
    )
    done = cli("run", scenario, "--out", tmp_path / "out", "--no-report")
    assert done.returncode == 2 and "flows.csv: holds no flow" in done.stderr


def test_means_of_distributions_are_those_of_their_draws() -> None:
    # 1.71 and 12.7 MB: the published means of the two workloads.
    for name, wanted in (("websearch", 1.71e6), ("vl2", 12.66e6)):
        assert sizes.mean_bytes(sizes.resolve(name, 1, 1, 2)) == pytest.approx(wanted, rel=0.01)
    cut = sizes.resolve("pareto", 1.5, 1000, 10**6)
    shares = (np.arange(10**6) + 0.5) / 10**6
    values = 1000 / (1 - shares * (1 - 1e-3**1.5)) ** (1 / 1.5)
    assert sizes.mean_bytes(cut) == pytest.approx(values.mean(), rel=1e-3)
    frames = values + 66 * np.ceil(values / 1448)
    assert sizes.mean_wire_bytes(cut, 1500) == pytest.approx(frames.mean(), rel=1e-3)


@pytest.mark.slow
def test_a_capture_gives_the_flow_that_was_captured_and_one_that_is_cut_off_is_refused(
    tmp_path: Path,
) -> None:
    flows = [{"cc": "cubic", "amount": "300KB"}, {"cc": "reno", "amount": "40KB", "start": "1s"}]
    scenario = make_scenario({"duration": "3s", "path": PATH, "flow": flows})
    capture = tmp_path / "a.pcap"
    options = {"pcap": str(capture)}
    recording = run_scenario(scenario, "", [tmp_path / "run"], options=options).recordings[0]
    columns = captures.read(capture).columns
    sent = recording.table("flows")["bytes_acked"].to_pylist()
    assert recording.table("flows")["packets_retransmitted"].to_pylist() == [0, 0]
    totals = [columns["bytes"][columns["flow"] == flow].sum() for flow in (0, 1)]
    assert totals == sent
    assert columns["start_us"][columns["flow"] == 1][0] == pytest.approx(1e6, rel=0.05)
    out = tmp_path / "flows.csv"
    done = cli("traffic", "from-pcap", capture, "--out", out)
    assert done.returncode == 0 and len(traces.load(str(out))) == 2
    whole = capture.read_bytes()
    for length in (len(whole) - 5, 10):
        capture.write_bytes(whole[:length])
        done = cli("traffic", "from-pcap", capture, "--out", tmp_path / "b.csv")
        assert done.returncode == 2 and "cut off" in done.stderr


def test_what_is_generated_is_a_trace_again(tmp_path: Path) -> None:
    out = tmp_path / "flows.parquet"
    done = cli("traffic", "generate", "--out", out, "--length", "120s")
    assert done.returncode == 0, done.stderr
    again = traces.columns_of(traces.load(str(out)))
    assert again["bytes"].sum() * 8 / 120 == pytest.approx(1.25e9, rel=0.1)
    assert (again["pause_us"][again["pause_us"] > 0] >= 100_000).all()
