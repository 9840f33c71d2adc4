"""A policy as a class and as C does what the agent does that it was written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.congestion.policy import apply
from fullpipe.gym import FEATURES, CongestionEnv, Layer, export

#: Grows on an empty path, shrinks by delay and loss; a hidden layer that leaves the sum nearly as
#: it is.
_SUM = [0.0, -0.4, -0.4, 0.0, -1.0, 0.0, 0.0, 0.0]
LAYERS: list[Layer] = [
    ([[0.5 * one for one in _SUM], [-0.5 * one for one in _SUM]], [0.05, -0.05], "tanh"),
    ([[1.0, -1.0]], [0.0], "linear"),
]
PATHS: list[dict[str, Any]] = [
    {"rate": "10mbit", "rtt": "20ms", "buffer": "2bdp"},
    {"rate": "40mbit", "rtt": "60ms", "buffer": "1bdp"},
    {"rate": "20mbit", "rtt": "30ms", "buffer": "1bdp", "loss": "0.5%"},
]


def agent(path: dict[str, Any]) -> dict[str, Any]:
    env = CongestionEnv({"duration": "8s", "path": path, "flow": [{"cc": "agent"}]})
    seen, _ = env.reset(seed=1)
    is_over = False
    while not is_over:
        seen, _, _, is_over, _ = env.step(np.clip(apply(LAYERS, seen), -1, 1))
    return dict(env.recordings().metrics().to_pylist()[0])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path["rate"])
def test_class_and_c_file_do_what_the_agent_does(path: dict[str, Any], tmp_path: Path) -> None:
    written, c_file = export(LAYERS, tmp_path, "learned")
    wanted = agent(path)
    # A sender decides at the first ACK after its round trip, the agent at its end.
    for cc in (f"{written}:Learned", str(c_file)):
        scenario = {"duration": "8s", "path": path, "flow": [{"cc": cc}]}
        row = fullpipe.run(scenario, jobs=1).metrics().to_pylist()[0]
        assert row["goodput_bps"] == pytest.approx(wanted["goodput_bps"], rel=0.03)
        for what in ("rtt_p50_us", "cwnd_mean_packets"):
            assert row[what] == pytest.approx(wanted[what], rel=0.05)


def test_the_class_and_its_weights_are_files_of_the_recording(tmp_path: Path) -> None:
    written, _ = export(LAYERS, tmp_path, "learned")
    scenario = {"duration": "1s", "path": PATHS[0], "flow": [{"cc": f"{written}:Learned"}]}
    before = fullpipe.run(scenario, jobs=1)
    weights = tmp_path / "learned_weights.py"
    weights.write_text(weights.read_text().replace("0.05", "0.25"))
    after = fullpipe.run(scenario, jobs=1)
    rows = [runs.metrics().to_pylist()[0] for runs in (before, after)]
    assert rows[0]["goodput_bps"] != rows[1]["goodput_bps"]


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ([], "at least one"),
        ([([[1.0] * 7], [0.0], "tanh")], r"layers\[0\]: weights \(1, 7\)"),
        ([([[1.0] * 8] * 2, [0.0] * 2, "tanh")], "last one has 2 outputs"),
        ([([[1.0] * 8], [0.0], "gelu")], "'gelu': must be one of tanh, relu, linear"),
        ([([[1.0] * 7 + [float("nan")]], [0.0], "tanh")], "finite"),
        ([([["a"] * 8], [0.0], "tanh")], "arrays of numbers"),
        ([([[4e4] * 8], [0.0], "tanh")], "at most 500"),
    ],
)
def test_layers_that_do_not_fit_are_refused(layers: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=why):
        export(layers, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_files_are_not_overwritten(tmp_path: Path) -> None:
    export(LAYERS, tmp_path, "mine")
    with pytest.raises(UserError, match="exists already"):
        export(LAYERS, tmp_path, "mine")
    assert len(FEATURES) == len(LAYERS[0][0][0])
