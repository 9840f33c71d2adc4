"""Cells run elsewhere come back as the same bytes. Tests on Ray itself: tests/cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.sweep.cells import cells_of, plan_runs
from fullpipe.sweep.cluster import address_of, check_reachable
from fullpipe.sweep.filling import work_of
from fullpipe.sweep.shipping import accept, execute
from fullpipe.sweep.store import Store
from sweep_files import document, filled, rows, sweep


@pytest.mark.parametrize("keep", ["metrics", "recordings"])
def test_a_group_run_elsewhere_is_the_group_run_here(tmp_path: Path, keep: str) -> None:
    found = sweep(sweep={"seeds": 1, "keep": keep})
    here, _ = filled(tmp_path / "here", found)
    there = Store(tmp_path / "there", create=True)
    runs = [planned.run for planned in plan_runs(found, cells_of(found), 1)]
    cells = work_of(found, there.folder)
    for group in (runs[:2], runs[2:]):
        assert accept(cells, execute(cells, group)) == []
    there.compact()
    assert {k: sorted(map(str, v)) for k, v in rows(there).items()} == {
        k: sorted(map(str, v)) for k, v in rows(here).items()
    }
    for run in runs:
        files = sorted(file.name for file in here.recording(run.facts.key).glob("*.parquet"))
        assert bool(files) == (keep == "recordings")
        for name in files:
            own, other = (store.recording(run.facts.key) / name for store in (here, there))
            assert own.read_bytes() == other.read_bytes()


def test_an_address_is_ray_a_host_with_port_or_a_file_that_holds_one(tmp_path: Path) -> None:
    file = tmp_path / "head"
    file.write_text("127.0.0.1:6399\n")
    assert address_of("ray") is None
    assert address_of("ray://10.0.0.1:10001") == "ray://10.0.0.1:10001"
    assert address_of(str(file)) == "127.0.0.1:6399"
    file.write_text("nothing")
    for wrong in ("cluster", "host:", ":6379", str(file)):
        with pytest.raises(UserError, match="--on"):
            address_of(wrong)


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_at_which_nothing_answers_is_refused(form: str) -> None:
    """Ray would try for ever. The port is free: it was another's until just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = form.format(listening.getsockname()[1])
        check_reachable(address)
    with pytest.raises(UserError, match=f"--on {address}: no cluster answers there: .*refused"):
        check_reachable(address)


@pytest.mark.parametrize("address", ["127.0.0.1:99999999", "nothing.invalid:1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="no cluster answers there"):
        check_reachable(address)


def test_the_pool_never_loads_ray(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(document()))
    code = (
        "import sys; from fullpipe import cli\n"
        "sys.argv[1:] = ['sweep', sys.argv[1], '--jobs', '1', '--out', sys.argv[2]]\n"
        "try:\n    cli.main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "assert 'ray' not in sys.modules and 'fullpipe.sweep.cluster' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(file), str(tmp_path / "store")]
    subprocess.run(command, check=True)
