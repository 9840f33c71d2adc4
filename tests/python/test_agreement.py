"""What the map says of a scenario: its region, the error there, or why it is in none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fullpipe import cli
from fullpipe.agreement.expected import beyond, region_of, sentence
from fullpipe.agreement.regions import the_map
from fullpipe.engines.runner import run_scenario
from fullpipe.recording.recording import Recording
from fullpipe.report.page import write_report
from fullpipe.scenario.model import Scenario, make_scenario
from helpers import resealed
from repository_scripts import bench

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "map.md"
INSIDE: dict[str, Any] = {
    "name": "inside", "duration": "2s", "warmup": "1s",
    "path": {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"},
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}],
}  # fmt: skip


def scenario(path: dict[str, Any] | None = None, **more: Any) -> Scenario:
    """INSIDE with changes."""
    return make_scenario({**INSIDE, "path": {**INSIDE["path"], **(path or {})}, **more})


def region_name(path: dict[str, Any]) -> str:
    found = region_of(scenario(path))
    return "" if found is None else found.name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ({"buffer": "0.3bdp"}, "FIFO below 0.5 BDP"),
        ({"buffer": "1bdp"}, "FIFO of 0.5 to 2 BDP"),
        # 2 BDP of 10 Mbit/s and 40 ms are 66 packets of 1514 bytes.
        ({"buffer": "60pkt"}, "FIFO of 0.5 to 2 BDP"),
        ({"buffer": "70pkt"}, "FIFO from 2 BDP on"),
        ({"buffer": "300KB"}, "FIFO from 2 BDP on"),
        ({"qdisc": "pie", "buffer": "1000pkt"}, "CoDel, PIE"),
        ({"rate": "340mbit", "rtt": "1500us"}, "FIFO on the papers' paths"),
    ],
)
def test_a_scenario_is_in_the_region_of_its_queue(path: dict[str, Any], name: str) -> None:
    assert region_name(path) == name


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        ({"rate": "400mbit"}, {}, "a rate outside 2 to 100 Mbit/s"),
        ({"rtt": "300ms"}, {}, "an RTT outside 5 to 200 ms"),
        ({"buffer": "17bdp"}, {}, "a buffer outside 0.5 to 16 BDP"),
        ({"loss": 0.1}, {}, "random loss outside 0 to 0.03"),
        ({"jitter": "9ms"}, {}, "jitter outside 0 to 5 ms"),
        ({"qdisc": "sfq", "buffer": "127pkt"}, {}, "qdisc sfq"),
        ({"qdisc": "fq_codel", "buffer": "50pkt"}, {}, "a limit of fq_codel of its own"),
        ({"qdisc": "pie", "buffer": "1000pkt", "qdisc_options": {"target": "5ms"}}, {},
         "options of pie"),
        ({"ecn": True}, {}, "ECN"),
        ({}, {"flow": [{"cc": "cubic", "count": 21}]}, "a number of flows outside 1 to 20"),
        ({}, {"flow": [{"cc": "cubic", "direction": "down"}]}, "traffic both ways"),
        ({}, {"flow": [{"cc": "tarn"}]}, "algorithm tarn"),
        ({}, {"flow": [{"cc": "cubic", "rtt": "300ms"}]}, "an RTT outside 5 to 200 ms"),
        ({"jitter": "2ms", "jitter_shape": "slotted"}, {}, "slotted jitter"),
        ({"loss": 0.01, "loss_per": "burst"}, {}, "loss that is not of single data packets"),
        ({}, {"udp": [{"rate": "1mbit", "payload": "200B"}]}, "other traffic than bulk flows"),
    ],
)  # fmt: skip
def test_a_scenario_outside_every_region_says_why(
    path: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    outside = scenario(path, **more)
    assert region_of(outside) is None
    assert beyond(outside).startswith(why)
    assert sentence(outside) == f"Not held against a kernel: {beyond(outside)}."


def test_sets_and_variants_of_an_algorithm_are_where_the_algorithm_is() -> None:
    variants = [{"cc": "bbr3-linux"}, {"cc": "cubic[beta=0.85]"}, {"cc": "mine"}]
    varied = scenario({}, flow=variants, cc={"mine": {"base": "reno"}})
    assert beyond(varied) == ""


def test_the_map_has_the_numbers_of_its_page() -> None:
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        words = [word.strip() for word in line.strip("|").split("|")]
        if len(words) == 8 and words[1].isdigit():
            rows[words[0]] = words[1:]
    drawn = [one for one in the_map().regions if one.source == "docs/evidence/map.md"]
    assert sum(one.cells for one in drawn[:5]) == int(rows["all"][0]) == 300
    for region in drawn:
        cells, *means, told_apart = rows[region.name]
        assert (region.cells, region.told_apart) == (int(cells), int(told_apart))
        assert [f"{one.mean:.4f}" for one in region.differences.values()] == means


def test_the_drawn_regions_span_what_is_drawn_and_every_cell_is_in_one() -> None:
    bench_map = bench("bench_map")
    drawn = {one.name: one for one in the_map().regions if one.source == bench_map.SOURCE}
    assert {name: one.limits for name, one in drawn.items()} == {
        name: bench_map.limits_of(name, draw)
        for draw in bench_map.DRAWS.values()
        for name in draw.queues
    }
    for draw in bench_map.DRAWS.values():
        for cell in bench_map.cells(100, 7, draw):
            found = region_of(make_scenario(bench_map.document_of(cell)))
            assert found is not None and found.name in drawn
            # At least 4 packets wait, which may be more of a small BDP than was drawn.
            assert found.name in draw.queues or draw is not bench_map.USUAL
            assert cell["qdisc"] == "fifo" or found.name == bench_map.queue_of(cell, draw)


def test_a_region_has_the_mean_and_the_90th_percentile_of_its_cells_differences() -> None:
    bench_map = bench("bench_map")
    cell = {
        "rate_mbps": 10.0, "rtt_ms": 20.0, "qdisc": "pie", "buffer_bdp": None, "loss": 0.0,
        "jitter_ms": 0.0, "own": "reno", "other": "reno", "own_flows": 1, "other_flows": 1,
    }  # fmt: skip
    # Eleven cells, 0.00 to 0.10 apart with either sign: 0.05 on average, nine in ten up to 0.09.
    found = [
        bench_map.Difference({**cell, "rtt_ms": 20.0 + n}, metric, (-1) ** n * n / 100, 0, 0, 1)
        for n in range(11)
        for metric in bench_map.METRICS
    ]
    apart = {id(one): one.mean == 0.1 for one in found}
    region = bench_map.region_of("CoDel, PIE", found, apart)
    assert (region.cells, region.told_apart) == (11, 1)
    for one in region.differences.values():
        assert (one.mean, one.nine_in_ten) == (0.05, 0.09)


def test_a_run_of_the_simulator_and_its_page_say_what_error_to_expect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "inside.toml"
    file.write_text(tomli_w.dumps(INSIDE), encoding="utf-8")
    arguments = ["fullpipe", "run", str(file), "--out"]
    monkeypatch.setattr("sys.argv", [*arguments, str(tmp_path / "one")])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    shown = " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "one" / "report.html").read_text(encoding="utf-8")
    region = region_of(make_scenario(INSIDE))
    assert region is not None and region.cells == 53
    share, queue = (region.differences[metric] for metric in ("share", "queue_rttmin"))
    assert share.nine_in_ten is not None and queue.nine_in_ten is not None
    assert "In this region (FIFO of 0.5 to 2 BDP; 53 cells) the means of simulator" in page
    assert f"by {share.mean:.3f} in share, {queue.mean:.2f} RTTmin in median queue" in page
    assert "on average, chance included, and in nine of ten cells by at most" in page
    assert f"{share.nine_in_ten:.3f} in share, {queue.nine_in_ten:.2f} RTTmin" in page
    # The terminal has one line of it, and where the rest is.
    assert f"within {share.nine_in_ten:.3f} in share and {queue.nine_in_ten:.2f} RTTmin" in shown
    monkeypatch.setattr("sys.argv", [*arguments, str(tmp_path / "two"), "--json"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    json.loads(capsys.readouterr().out)


def test_what_a_kernel_ran_has_no_error_of_the_simulator(tmp_path: Path) -> None:
    run_scenario(make_scenario(INSIDE), tomli_w.dumps(INSIDE), [tmp_path / "one"])
    metadata = tmp_path / "one" / "metadata.json"
    said = json.loads(metadata.read_text(encoding="utf-8"))
    metadata.write_text(json.dumps({**said, "engine": "vm"}), encoding="utf-8")
    resealed(tmp_path / "one")
    page = write_report([Recording.open(tmp_path / "one")], tmp_path / "page.html")
    assert "In this region" not in page.read_text(encoding="utf-8")
