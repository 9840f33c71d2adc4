"""The papers' analyses of variance come out of the command line, the totals by bytes beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flent_documents import flent_document, measured_document, write_document
from fullpipe.cli.flent import app

WIRED = tuple(f"wired_16up_{cc}" for cc in ("bbr3", "cubic", "reno"))
WIFI = tuple(f"wifi_12up_{cc}" for cc in ("cubic", "bbr3", "bbrnplus"))


def files(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Flent files with the numbers of the authors' files that the papers analyse."""
    return [
        str(write_document(folder / f"{name}.flent.gz", measured_document(name))) for name in names
    ]


def anova(*arguments: str) -> dict[str, Any]:
    """The JSON that `fullpipe flent anova --json` prints."""
    done = CliRunner().invoke(app, ["anova", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_ahsan2025a_table_2_throughput_with_the_totals_that_contradict_it(tmp_path: Path) -> None:
    found = anova(*files(tmp_path, WIRED), "--flent-interpolation", "--samples", "301")
    table = found["anova"]
    assert [group["count"] for group in table["groups"]] == [301, 301, 301]
    assert [group["sum"] for group in table["groups"]] == pytest.approx(
        [28895.804, 19210.379, 18434.638], abs=5e-4
    )
    assert [group["mean"] for group in table["groups"]] == pytest.approx(
        [95.99934912, 63.82185757, 61.24464464], abs=5e-9
    )
    assert [group["variance"] for group in table["groups"]] == pytest.approx(
        [189.197, 1047.043, 1005.275], abs=5e-4
    )
    assert table["f"] == pytest.approx(151.064, abs=5e-4)
    assert (table["df_between"], table["df_within"], table["df_total"]) == (2, 900, 902)
    assert table["ss_between"] == pytest.approx(225742.221, abs=5e-3)
    assert table["ss_within"] == pytest.approx(672454.481, abs=5e-3)
    assert table["p_value"] == pytest.approx(2.69865e-57, rel=1e-5)
    assert table["f_critical"] == pytest.approx(3.005726, abs=5e-7)
    assert found["pseudo_replicated"] is True
    by_bytes = [one["rate_bps"] / 1e6 for one in found["by_bytes"]]
    assert by_bytes == pytest.approx([94.52, 94.62, 94.69], abs=5e-3)


def test_ahsan2025a_table_3_ping(tmp_path: Path) -> None:
    found = anova(
        *files(tmp_path, WIRED), "--flent-interpolation", "--samples", "350", "--series", "ping"
    )
    table = found["anova"]
    assert [group["mean"] for group in table["groups"]] == pytest.approx(
        [27.52921, 2369.517, 2975.84], rel=1e-6
    )
    assert table["f"] == pytest.approx(762.271, abs=5e-4)
    assert (table["df_between"], table["df_within"]) == (2, 1047)
    assert table["p_value"] == pytest.approx(5.07761e-205, rel=1e-5)
    assert table["f_critical"] == pytest.approx(3.00432, abs=5e-6)


def test_ahsan2026_table_5_ping_on_wifi(tmp_path: Path) -> None:
    found = anova(*files(tmp_path, WIFI), "--flent-interpolation", "--series", "ping")
    table = found["anova"]
    assert [group["count"] for group in table["groups"]] == [348, 348, 356]
    assert table["f"] == pytest.approx(74.07, abs=5e-3)
    assert (table["df_between"], table["df_within"]) == (2, 1049)
    assert table["p_value"] == pytest.approx(8.09716e-31, rel=1e-5)
    assert table["f_critical"] == pytest.approx(3.0043, abs=5e-5)


def test_the_printed_table_is_the_papers_with_its_caveats(tmp_path: Path) -> None:
    arguments = [*files(tmp_path, WIRED), "--flent-interpolation", "--samples", "301"]
    done = CliRunner().invoke(app, ["anova", *arguments])
    assert done.exit_code == 0, done.output
    for text in (
        "SUMMARY", "28895.804", "95.99934", "Between Groups", "225742.2", "151.064", "2.69865E-57",
        "3.005726", "pseudo-replicated", "By bytes", "94.52", "94.62", "94.69",
    ):  # fmt: skip
        assert text in done.stdout, text


def test_one_run_a_group_is_no_repetition_without_asking_for_samples(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["anova", *files(tmp_path, WIRED)])
    assert done.exit_code != 0
    assert "runs are the unit of repetition" in str(done.exception)


def test_runs_are_compared_by_bytes_where_there_are_several(tmp_path: Path) -> None:
    paths = []
    for title, rates in (("a", (10.0, 11.0, 12.0)), ("b", (20.0, 21.0, 22.0))):
        for index, rate in enumerate(rates):
            document = flent_document((rate,), "cubic", (1.0, 1.0), title)
            paths.append(write_document(tmp_path / f"{title}{index}.flent.gz", document))
    found = anova(*map(str, paths))
    # By hand: means 11 and 21 Mbit/s, 3 runs each; SSB 150, SSW 4, F = 150 / (4 / 4).
    assert found["anova"]["f"] == pytest.approx(150, rel=1e-9)
    assert (found["anova"]["df_between"], found["anova"]["df_within"]) == (1, 4)
    assert found["pseudo_replicated"] is False
