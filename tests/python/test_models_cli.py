"""`fullpipe model` as users and scripts meet it, and predictions for reports."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fullpipe.cli import main
from fullpipe.models import predict
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import make_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHARE = ["share", "--cc", "bbr1", "--n", "8", "--against", "cubic", "--rate", "10mbit"]
SHARE += ["--rtt", "40ms", "--buffer", "8bdp"]


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def model(*arguments: str) -> Done:
    out, err, status = io.StringIO(), io.StringIO(), 0
    command = patch.object(sys, "argv", ["fullpipe", "model", *arguments])
    with command, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return Done(status, out.getvalue(), err.getvalue())


def document(*arguments: str) -> dict[str, Any]:
    done = model(*arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def changed(**options: str) -> list[str]:
    arguments = list(SHARE)
    for name, value in options.items():
        arguments[arguments.index(f"--{name}") + 1] = value
    return arguments


def test_share_of_bbr1_is_the_formulas() -> None:
    found = document(*SHARE, "--json")
    assert found["share"] == pytest.approx(0.6443, abs=5e-5)
    assert found["warnings"] == []


def test_a_buffer_in_bytes_or_packets_is_the_same_buffer() -> None:
    expected = document(*SHARE, "--json")["share"]
    assert document(*changed(buffer="400000B"), "--json")["share"] == pytest.approx(expected)
    packets = document(*changed(buffer="264pkt"), "--json")["share"]
    assert packets == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("cc", ["bbr2", "bbr3", "bbr3-linux"])
def test_share_of_newer_versions_comes_with_its_spread_over_seeds(cc: str) -> None:
    found = document(*changed(cc=cc, n="1", buffer="2bdp"), "--json")
    assert 0.1 < found["share"] < 0.7
    assert found["details"]["seeds"] == [1, 2, 3]
    assert 0 <= found["details"]["spread"] < 0.1


def test_every_model_can_be_asked_by_name() -> None:
    for cc, name in (("bbr3", "steady"), ("bbr1", "fluid"), ("bbr2", "fluid")):
        found = document(*changed(cc=cc, n="1"), "--model", name, "--json")
        assert 0 < found["share"] < 1


@pytest.mark.parametrize(
    "name",
    ["parking-lot", "wifi", "leo", "changing-rate", "cellular", "page-small", "call-and-video"],
)
def test_what_is_more_than_flows_over_one_steady_wire_is_predicted_by_none(name: str) -> None:
    document = load_document(SCENARIOS / f"{name}.toml")
    assert predict(resolve(make_scenario(document))) == []


def test_a_violated_assumption_is_named_on_screen_and_in_json() -> None:
    arguments = changed(buffer="0.5bdp")
    assert "full_queue" in json.dumps(document(*arguments, "--json")["warnings"])
    assert "warning: full_queue" in model(*arguments).stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rate": "0mbit"}, "--rate"), ({"rate": "-5mbit"}, "--rate"), ({"rate": "nan"}, "--rate"),
        ({"rate": "9999999gbit"}, "--rate"), ({"rtt": "0ms"}, "--rtt"), ({"rtt": "40"}, "--rtt"),
        ({"rtt": "-1ms"}, "--rtt"), ({"rtt": "2min"}, "rtt"), ({"buffer": "0bdp"}, "--buffer"),
        ({"buffer": "nanbdp"}, "--buffer"), ({"buffer": "-1bdp"}, "--buffer"), ({"n": "0"}, "n:"),
        ({"n": "-1"}, "n:"), ({"n": "many"}, "n"), ({"cc": "vegas"}, "cc"),
        ({"cc": "cubic"}, "cc"), ({"against": "bbr1"}, "against"),
        ({"cc": "bbr3", "rtt": "1us"}, "rtt"),
    ],
)  # fmt: skip
def test_bad_input_is_exit_2_with_the_options_name(options: dict[str, str], named: str) -> None:
    done = model(*changed(**options))
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_does_not_know_the_control_says_which_do() -> None:
    done = model(*changed(cc="bbr1"), "--model", "extended")
    assert done.returncode == 2
    assert "steady" in done.stderr


SCENARIO = """
duration = "{duration}"
warmup = "1s"
[path]
rate = "10mbit"
rtt = "40ms"
buffer = "4bdp"
{path}
[[flow]]
cc = "{cc}"
[[flow]]
cc = "cubic"
"""


def scenario(folder: Path, cc: str = "bbr1", duration: str = "4s", path: str = "") -> str:
    file = folder / "scenario.toml"
    file.write_text(SCENARIO.format(cc=cc, duration=duration, path=path))
    return str(file)


def test_fluid_prints_shares_loss_queue_and_a_trace(tmp_path: Path) -> None:
    found = document("fluid", scenario(tmp_path), "--json")
    flows = found["flows"]
    assert [flow["cc"] for flow in flows] == ["bbr1", "cubic"]
    assert sum(flow["share"] for flow in flows) == pytest.approx(1, abs=0.01)
    for key in ("jain", "loss", "queue_bytes", "occupancy", "utilisation", "jitter_ms"):
        assert isinstance(found[key], float)
    trace = found["trace"]
    assert len(trace["time_ms"]) == len(trace["queue_seg"]) > 100
    assert "horizon_includes_probe_rtt" in json.dumps(found["warnings"])


def test_fluid_takes_the_extended_model_where_bbr3_runs(tmp_path: Path) -> None:
    file = scenario(tmp_path, "bbr3-linux", "20s")
    found = document("fluid", file, "--json")
    assert found["model"] == "extended fluid model"
    assert found["warnings"] == []
    assert model("fluid", file, "--model", "published").returncode == 2


def test_a_step_for_the_model_that_sets_its_own_is_exit_2(tmp_path: Path) -> None:
    done = model("fluid", scenario(tmp_path, "bbr3", "20s"), "--step", "10us")
    assert done.returncode == 2
    assert "--step" in done.stderr


@pytest.mark.parametrize(
    ("cc", "path", "named"),
    [
        ("bbrnplus", "", "bbrnplus"),
        ("bbr1", 'qdisc = "fq_codel"', "qdisc"),
        ("bbr1", 'loss = "1%"', "loss"),
        ("bbr1", 'jitter = "5ms"', "jitter"),
    ],
)
def test_a_scenario_that_no_model_represents_is_exit_2(
    tmp_path: Path, cc: str, path: str, named: str
) -> None:
    done = model("fluid", scenario(tmp_path, cc, path=path))
    assert done.returncode == 2
    assert named in done.stderr


@pytest.mark.slow
def test_validate_prints_the_error_of_each_panel_and_what_is_missing(tmp_path: Path) -> None:
    rows = ["figure,bbr_version,loss_cca,capacity_mbps,rtt_ms,n_bbr,buffer_bdp,link_share"]
    rows += ["2a,v1,cubic,10,40,1,1,0.81407", "2a,v1,cubic,10,40,1,2,0.57308"]
    rows += ["5a,v3,cubic,10,40,1,2,0.47084"]
    file = tmp_path / "observed.csv"
    file.write_text("\n".join(rows))
    found = document(
        "validate", "--observed", str(file), "--figures", str(tmp_path / "figures"), "--json"
    )
    errors = {(p["figure"], p["model"]): p["mse"] for p in found["panels"]}
    # (0.972 - 0.81407)^2 and (0.78408 - 0.57308)^2, halved.
    assert errors["2a", "steady v1, as published"] == pytest.approx(0.03473, abs=1e-4)
    assert errors["5a", "extended fluid"] < 0.03
    assert found["missing_panels"] == ["2b", "2c"]
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf", ".png", ".svg"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "column figure"),
        ("a,b\n1,2\n", "column figure"),
        ("{header}\n", "no observations"),
        ("{header}\n5a,v9,cubic,10,40,1,1,0.5\n", "line 2: bbr_version"),
        ("{header}\n5a,v3,cubic,10,40,1,1,nan\n", "line 2: link_share"),
        ("{header}\n5a,v3,cubic,10,40,1,1,7\n", "line 2: link_share"),
        ("{header}\n5a,v3,cubic,-10,40,1,1,0.5\n", "line 2: rate"),
        ("{header}\n5a,v3,vegas,10,40,1,1,0.5\n", "line 2: against"),
        ("{header}\n5a,v3,cubic,10,40,1.5,1,0.5\n", "line 2: n_bbr"),
        ("{header}\n5a,v3,cubic\n", "line 2: link_share"),
        ("\x00\x01", "column figure"),
    ],
)
def test_a_file_that_is_no_list_of_shares_is_exit_2_with_its_line(
    tmp_path: Path, text: str, named: str
) -> None:
    header = "figure,bbr_version,loss_cca,capacity_mbps,rtt_ms,n_bbr,buffer_bdp,link_share"
    file = tmp_path / "observed.csv"
    file.write_text(text.format(header=header))
    done = model("validate", "--observed", str(file))
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def plan(cc: str, **path: str) -> dict[str, object]:
    flows = [{"cc": cc, "count": 2}, {"cc": "cubic"}]
    document = {
        "duration": "20s",
        "path": {"rate": "10mbit", "rtt": "40ms", "buffer": "4bdp", **path},
        "flow": flows,
    }
    return resolve(make_scenario(document))


def test_predictions_beside_a_measurement_come_from_every_model_that_knows_it() -> None:
    by_model = {p.model: p for p in predict(plan("bbr3-linux"))}
    assert set(by_model) == {"steady state of BBRv3", "extended fluid model"}
    extended = by_model["extended fluid model"]
    assert set(extended.shares) == {"bbr3-linux", "cubic"}
    assert 0.9 < sum(extended.shares.values()) < 0.96
    assert {p.model for p in predict(plan("bbr1"))} == {"steady state of BBRv1", "fluid model"}


@pytest.mark.parametrize(
    ("cc", "duration", "named"),
    [
        ("bbr1", "9s", "horizon_includes_probe_rtt"), ("bbr1", "30s", "long_horizon"),
        ("bbr3", "4s", "horizon_includes_probe_rtt"), ("bbr3", "30s", "long_horizon"),
    ],
)  # fmt: skip
def test_a_steady_state_beside_a_short_scenario_says_so_by_name(
    cc: str, duration: str, named: str
) -> None:
    steady = predict({**plan(cc), "duration_ns": int(duration[:-1]) * 10**9})[0]
    assert steady.model.startswith("steady state")
    assert named in [caution.assumption for caution in steady.cautions]


def test_outside_every_domain_nothing_is_predicted() -> None:
    assert predict(plan("bbrnplus")) == []
    assert predict(plan("bbr3", qdisc="cake")) == []
    assert predict(plan("bbr1", loss="1%")) == []
