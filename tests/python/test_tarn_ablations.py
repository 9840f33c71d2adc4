"""The ablations of Tarn's evidence can still be made of its sources."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import fullpipe
from fullpipe.scenario.model import make_scenario
from fullpipe.scorecard.values import cell_labels
from fullpipe.sweep.cells import cells_of
from repository_scripts import bench


@pytest.fixture(scope="module", name="ablations")
def _ablations() -> ModuleType:
    return bench("bench_ablations")


def test_each_ablation_fits_the_sources_and_names_figures_that_are_measured(
    ablations: ModuleType, tmp_path: Path
) -> None:
    cells = list(ablations.cells("tarn"))
    for cell in cells:
        make_scenario(cell.scenario)
    measured = {(cell.row, cell.name) for cell in cells}
    for mechanism in ablations.mechanisms():
        ablations.left_out(mechanism, tmp_path)
        assert mechanism.figures or mechanism.paths, mechanism.name
        for row, name, figure in mechanism.figures:
            if item := ablations.scorecard_item(row):
                sweep = item.runs("tarn", quick=False, engine="sim", seeds=1)
                assert name in cell_labels(cells_of(sweep)), mechanism.name
                assert figure in [measure.id for measure in item.measure], mechanism.name
            else:
                assert (row, name) in measured, mechanism.name
        assert set(mechanism.paths) <= set(ablations.TITLES), mechanism.name


def test_tarn_from_a_copy_of_its_files_runs_as_the_built_in_does(
    ablations: ModuleType, tmp_path: Path
) -> None:
    nothing = ablations.Mechanism(
        "nothing", edits=(("tarn.h", "#define TARN_CALM_ROUNDS 3 ", "#define TARN_CALM_ROUNDS 3 "),)
    )
    path = {"rate": "20mbit", "rtt": "20ms", "buffer": "2bdp"}
    delivered = [
        fullpipe.run({"duration": "3s", "path": path, "flow": [{"cc": cc}]}, seeds=[1])[0]
        .table("flows")["bytes_delivered"]
        .to_pylist()
        for cc in ("tarn", ablations.left_out(nothing, tmp_path))
    ]
    assert delivered[0] == delivered[1]
