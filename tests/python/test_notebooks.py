"""The notebooks run from top to bottom, and are kept without what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
#: The kernel is waited for, however busy the machine is.
_EVER_S = 10**6
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def test_there_are_four_and_none_has_outputs() -> None:
    assert len(BOOKS) == 4
    for path in BOOKS:
        book = read(path)
        nbformat.validate(book)
        for cell in book.cells:
            assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None)


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book = read(path)
    context = {"metadata": {"path": str(tmp_path)}}
    limits = {"timeout": None, "startup_timeout": _EVER_S, "iopub_timeout": _EVER_S}
    nbclient.NotebookClient(book, **limits, resources=context).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert kinds & {"text/html", "image/svg+xml", "image/png"}
