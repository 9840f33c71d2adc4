"""docs/evidence/agreement.md counts the tests as its files of cells have them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fullpipe.statistics.distributions import equality
from repository_scripts import bench

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"
PAGE = (EVIDENCE / "agreement.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("catalogue", "41 cells of the catalogue, 6.12.117"),
        ("kernel_7_3", "22 of them, 7.3"),
        ("heavy_loss", "38 cells under heavy loss"),
        ("papers_paths", "40 cells on the papers' paths, 45 to 340 Mbit/s"),
        ("gbit", "20 cells at 1 and 10 Gbit/s, User Mode Linux"),
    ],
)
def test_the_summary_counts_the_tests_of_a_file_of_cells(name: str, words: str) -> None:
    with (EVIDENCE / "cells" / f"agreement_{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = next(int(word) for word in words.split() if word.isdigit())
    outcomes = [text for row in rows for key, text in row.items() if key.endswith("_test") and text]
    is_rejected = [text in ("small", "differs") for text in outcomes]
    assert len(rows) == cells
    assert (
        f"| {words} | {sum(is_rejected)} of {len(outcomes)} | {outcomes.count('differs')}" in PAGE
    )


def test_a_row_has_means_deviations_and_the_outcome_of_each_metric(tmp_path: Path) -> None:
    agreement = bench("bench_agreement")
    sim, vm = np.array([0.4, 0.6]), np.array([0.8, 0.8])
    found = equality(list(sim), list(vm), 1, 99)
    cell = "cc reno, flows one, queue 4 BDP, rate 10 Mbit/s, rtt_ms 40"
    tests = [agreement.Test(cell, "utilisation", sim, vm, found)]
    agreement._write_csv(tmp_path / "cells.csv", tests, [True])
    with (tmp_path / "cells.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row == {
        "cell": "reno, one, 4 BDP, 10 Mbit/s, 40", "runs_sim": "2", "runs_vm": "2",
        "utilisation_sim": "0.500", "utilisation_sim_sd": "0.141", "utilisation_vm": "0.800",
        "utilisation_vm_sd": "0.000", "utilisation_test": "differs",
    }  # fmt: skip
