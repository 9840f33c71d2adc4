"""`fullpipe test`: templates have the series, marks and times of the tests that Flent installs, and
their runs are exported as these tests."""

from __future__ import annotations

import collections
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fullpipe.base.units import parse_dscp
from fullpipe.cli import main
from fullpipe.engines.runner import run_scenario
from fullpipe.flent.exporting import flent_document
from fullpipe.flent.templates import names, scenario_of, template
from fullpipe.scenario.model import make_scenario

FLENT_TESTS = Path("/usr/share/flent/flent/tests")
NETWORK = {"path": {"rate": "10mbit", "reverse_rate": "10mbit", "rtt": "20ms"}}
LENGTH_S, DELAY_S = 60, 5


class Definition(dict[str, Any]):
    """A .conf of Flent's as Python runs it: what it does not need is a name for nothing."""

    def __init__(self, name: str, parameters: dict[str, str]) -> None:
        super().__init__(
            o=collections.OrderedDict, LENGTH=LENGTH_S, DELAY=DELAY_S, TOTAL_LENGTH=70,
            HOST="host", HOSTS=[f"host{i}" for i in range(1, 5)], LOCAL_BIND=None, STEP_SIZE=0.2,
            include=self.include, glob=lambda *_, **__: "", min_host_count=lambda _: None,
            set_test_parameter=parameters.__setitem__,
            get_test_parameter=lambda name, default=None, cast=str, **_: cast(
                parameters.get(name, default)
            ),
            try_test_parameters=lambda *_, **__: [""],
            for_stream_config=self.each_stream, parameters=parameters,
        )  # fmt: skip
        self.include(f"{name}.conf")

    def __missing__(self, key: str) -> None:
        if key.startswith("__") or key in __builtins__:  # type: ignore[operator]
            raise KeyError(key)

    def include(self, name: str) -> None:
        if name.endswith((".conf", "rtt_fair.inc", "http.inc", "voip.inc")):
            text = (FLENT_TESTS / name).read_text(encoding="utf-8")
            exec(
                compile(
                    re.split(
                        r"\n(?:PLOTS = o\(\[|PLOTS\[|PLOTS\.update|for k in list\(PLOTS)", text
                    )[0],
                    name,
                    "exec",
                ),
                self,
            )

    def each_stream(self, add: Any, n: int | None = None) -> None:
        parts = {
            key: self["parameters"].get(key, "").split(",")
            for key in ("labels", "ping_labels", "markings")
        }
        for i in range(n or 4):
            if n:
                add(i)
                continue
            add(
                i, host=f"host{i + 1}", label=parts["labels"][i],
                ping_label=parts["ping_labels"][i], marking=parts["markings"][i],
            )  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_a_run_of_a_template_has_the_series_marks_and_times_of_flents_own_definition(
    name: str, tmp_path: Path
) -> None:
    theirs = Definition(name, {"upload_streams": "3", "download_streams": "3"})["DATA_SETS"]
    document = scenario_of(template(name), NETWORK, "x", length="1s", streams=3)
    scenario = make_scenario(document)
    recording = run_scenario(scenario, tomli_w.dumps(document), [tmp_path / "r"]).recordings[0]
    exported, shape = flent_document(recording)
    assert exported["metadata"]["NAME"] == name == shape.test
    ours = [re.sub(r"(host.)-\d+ms", r"\1", series) for series in exported["results"]]
    assert {one for one in ours if not re.search("::tcp|qdisc", one)} == set(theirs)
    plan = recording.metadata["plan"]
    for series, flow in zip(shape.flows, plan["flows"], strict=True):
        spec = theirs[re.sub(r"(host.)-\d+ms", r"\1", series)]
        assert flow["dscp"] == mark(spec), series
        assert flow["direction"] == {"TCP_STREAM": "up", "TCP_MAERTS": "down"}[spec["test"]]
        assert flow["start_ns"] == spec.get("delay", 0) * 10**9
        assert flow["stop_ns"] - flow["start_ns"] == (spec["length"] - LENGTH_S + 1) * 10**9
    for series, probe in zip(shape.pings, plan["probes"], strict=True):
        spec = theirs[re.sub(r"(host.)-\d+ms", r"\1", series)]
        assert probe["dscp"] == mark(spec), series
        assert probe["kind"] == {"udp_rtt": "udp", "ping": "ping"}[spec["runner"]]
        assert probe["interval_ns"] == 200_000_000
        assert plan["duration_ns"] == (spec["length"] - LENGTH_S + 1) * 10**9


def mark(spec: dict[str, Any]) -> int:
    return parse_dscp((spec.get("marking") or "CS0").split(",")[0])


def test_the_axis_of_a_run_is_flents(tmp_path: Path) -> None:
    document = scenario_of(template("rrul"), NETWORK, "x", length="10s")
    scenario = make_scenario(document)
    recording = run_scenario(scenario, tomli_w.dumps(document), [tmp_path / "r"]).recordings[0]
    exported, _ = flent_document(recording)
    metadata = exported["metadata"]
    assert (metadata["LENGTH"], metadata["TOTAL_LENGTH"], metadata["STEP_SIZE"]) == (10, 20, 0.2)
    rates = exported["results"]["TCP upload BE"]
    alive = [x for x, v in zip(exported["x_values"], rates, strict=True) if v is not None]
    assert 5.0 < alive[0] <= 5.4 and 15.0 <= alive[-1] <= 15.8
    pings = [entry["t"] for entry in exported["raw_values"]["Ping (ms) ICMP"]]
    assert len(pings) >= 90


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch", "--path", "net.toml"], "known are"),
        (["rrul"], "--path"),
        (["rrul", "--path", "missing.toml"], "cannot be read"),
        (["rrul", "--path", "empty.toml"], "a network is needed"),
        (["rrul", "--path", "net.toml", "--length", "long"], "--length long"),
        (["rrul", "--path", "net.toml", "--length", "1ms"], "at least 1s"),
        (["rrul", "--path", "net.toml", "--cc", "nosuch"], "nosuch"),
        (["rtt_fair", "--path", "net.toml", "--rtts", "1ms"], "--rtts"),
        (["rrul", "--path", "net.toml", "--engine", "x"], "--engine"),
    ],
)
def test_bad_input_ends_with_status_2_and_says_what_is_wrong(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "net.toml").write_text(tomli_w.dumps(NETWORK))
    (tmp_path / "empty.toml").write_text("duration = '1s'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["fullpipe", "test", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
