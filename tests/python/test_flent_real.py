"""Debian's flent opens what we export: its summary has our numbers, its plots have our lines."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from flent_documents import measured_document, write_document
from fullpipe.engines.runner import run_scenario
from fullpipe.flent import export_flent, import_flent, read_flent
from fullpipe.metrics import View, goodput_bps, jain
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario

FLENT = shutil.which("flent")
Flent = Callable[..., str]
PING = {"kind": "ping"}
#: Shape -> its flows and probes, and plots of it that Flent has.
SHAPES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "tcp_nup": (
        {"flow": [{"cc": "bbr3", "count": 2}, {"cc": "cubic"}], "probe": [PING]},
        ("totals", "box_totals", "ping_cdf", "tcp_cwnd"),
    ),
    "tcp_1up": (
        {"flow": [{"cc": "bbr3"}], "probe": [PING]},
        ("totals", "box_totals", "ping_cdf", "tcp_rtt"),
    ),
    "rrul": (
        {
            "flow": [
                {"cc": "cubic", "count": 4},
                {"cc": "bbr3", "count": 4, "direction": "down"},
            ],
            "probe": [PING, {"kind": "udp"}],
        },
        ("all_scaled", "totals", "ping_cdf"),
    ),
    "rtt_fair": (
        {
            "flow": [
                {"cc": cc, "rtt": rtt, "direction": way}
                for way in ("up", "down")
                for cc, rtt in (("bbr3", "20ms"), ("cubic", "60ms"))
            ],
            "probe": [PING],
        },
        ("all_scaled", "totals", "box_totals"),
    ),
}


@pytest.fixture(scope="module", params=SHAPES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(shape, recording, file) of each shape."""
    shape, folder = request.param, tmp_path_factory.mktemp(request.param)
    path = {"rate": "20mbit", "reverse_rate": "20mbit", "rtt": "20ms", "buffer": "2bdp"}
    document = {"name": "made by fullpipe", "duration": "20s", "seed": 1, "path": path}
    scenario = make_scenario(document | SHAPES[shape][0])
    recording = run_scenario(scenario, "", [folder / "recording"]).recordings[0]
    assert export_flent(recording, folder / "made.flent.gz").test == shape
    return shape, recording, folder / "made.flent.gz"


@pytest.fixture(scope="module")
def flent() -> Iterator[Flent]:
    """Runs Flent with arguments; what it prints."""
    assert FLENT is not None
    interpreter = Path(FLENT).read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!")
    process = subprocess.Popen(
        [interpreter.strip(), str(Path(__file__).with_name("flent_often.py")), FLENT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MPLBACKEND": "Agg", "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip

    def run(*arguments: str) -> str:
        assert process.stdin is not None and process.stdout is not None
        print(json.dumps(arguments), file=process.stdin, flush=True)
        status, output, messages = json.loads(process.stdout.readline())
        assert status == 0 and "ERROR" not in messages, messages
        return str(output)

    yield run
    process.communicate()
    assert process.returncode == 0


def summary(flent: Flent, file: Path) -> dict[str, list[str]]:
    """Series -> the figures that `flent -f summary` prints beside it: average, median, ..."""
    lines = re.findall(
        r"^ (\S.*?) +: +(.+)$", flent("-i", str(file), "-f", "summary"), re.MULTILINE
    )
    return {name: figures.split() for name, figures in lines}


def test_flents_summary_gives_our_goodput_and_ping(exported: Any, flent: Flent) -> None:
    shape, recording, file = exported
    printed = summary(flent, file)
    rates = goodput_bps(View(recording, start_s=0)) / 1e6
    series = [name for name, _ in read_flent(file).flows]
    assert len(series) == rates.size
    for name, rate in zip(series, rates, strict=True):
        assert float(printed[name][0]) == pytest.approx(rate, abs=0.006), name
    ups = [rate for name, rate in zip(series, rates, strict=True) if "upload" in name]
    if len(ups) > 1:
        assert float(printed["TCP upload sum"][0]) == pytest.approx(sum(ups), abs=0.006)
        assert float(printed["TCP upload avg"][0]) == pytest.approx(np.mean(ups), abs=0.006)
    icmp = next(name for name in printed if name.startswith("Ping (ms) ICMP"))
    probes = recording.table("ping_samples").to_pandas()
    answered = probes[probes["probe"] == probes["probe"].iloc[0]]["rtt_us"].dropna() / 1e3
    assert float(printed[icmp][0]) == pytest.approx(answered.mean(), abs=0.006)
    assert float(printed[icmp][1]) == pytest.approx(answered.median(), abs=0.006)
    assert answered.size > 80
    if shape == "rtt_fair":
        for way, mine in (("upload", rates[:2]), ("download", rates[2:])):
            assert float(printed[f"TCP {way} fairness"][0]) == pytest.approx(jain(mine), abs=0.006)


@pytest.mark.slow
def test_flents_plots_show_lines_that_the_values_alone_draw(exported: Any, flent: Flent) -> None:
    # Legends are coloured too, so the measure is what the same file without values shows.
    shape, _, file = exported
    without = emptied(file)
    for plot in SHAPES[shape][1]:
        more = coloured(flent, file, plot) - coloured(flent, without, plot)
        assert more > 300, (shape, plot, more)


def emptied(file: Path) -> Path:
    """A copy of the file with the same series, none of which has a value."""
    document = json.loads(gzip.decompress(file.read_bytes()))
    document["results"] = {
        name: [None] * len(values) for name, values in document["results"].items()
    }
    document["raw_values"] = {name: [] for name in document["raw_values"]}
    copy = file.with_name("emptied.flent.gz")
    copy.write_bytes(gzip.compress(json.dumps(document).encode()))
    return copy


def coloured(flent: Flent, file: Path, plot: str) -> int:
    """How many pixels of a plot that Flent draws are neither black, white nor grey."""
    image = file.with_name(f"{file.name}-{plot}.png")
    flent("-i", str(file), "-p", plot, "-o", str(image))
    pixels = matplotlib.image.imread(image)[..., :3]
    assert pixels.shape[0] > 300 and pixels.shape[1] > 400
    return int(((pixels.max(axis=2) - pixels.min(axis=2)) > 0.16).sum())


def test_an_imported_file_is_exported_with_its_own_totals(tmp_path: Path, flent: Flent) -> None:
    file = write_document(tmp_path / "original.flent.gz", measured_document("wired_16up_bbr3"))
    original = read_flent(file)
    recording = import_flent(original, tmp_path / "recording")
    export_flent(Recording.open(recording.path), tmp_path / "again.flent.gz")
    mine, theirs = (summary(flent, file) for file in (tmp_path / "again.flent.gz", original.path))
    for name in [series for series, _ in original.flows] + ["TCP upload sum"]:
        assert mine[name][0] == theirs[name][0], name
    assert mine["Ping (ms) ICMP"][1] == theirs["Ping (ms) ICMP"][1]
