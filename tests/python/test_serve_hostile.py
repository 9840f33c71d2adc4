"""The page against other pages, stores of others, and bodies that no page sends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from fullpipe.base.errors import UserError
from fullpipe.recording import checksums
from fullpipe.recording.recording import Recording
from fullpipe.report.predictions import compare
from fullpipe.report.runs import grouped, read_run
from fullpipe.serve import bench
from fullpipe.serve.app import make_app
from sweep_files import document, filled, sweep

HOST = "127.0.0.1:8000"
BASE = f"http://{HOST}"

CLASS = """
from pathlib import Path
import fullpipe
Path({mark!r}).write_text("ran")

class Evil(fullpipe.Controller):
    def on_ack(self, conn, ack, ctl):
        ctl.cwnd = 10
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "store"
    filled(place, sweep())
    return place


def client_of(folder: Path, trusted: tuple[Path, ...] = ()) -> TestClient:
    made = TestClient(make_app(folder, "secret", frozenset({HOST}), trusted), base_url=BASE)
    assert made.get("/?token=secret").status_code == 200
    return made


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8001", "http://evil.example", "null", ""])
def test_another_page_is_refused_even_with_the_cookie(folder: Path, origin: str) -> None:
    client = client_of(folder)
    answer = client.post("/api/run", json={"bench": {"duration_s": 1}}, headers={"origin": origin})
    assert answer.status_code == 403
    assert client.get("/api/sweep", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("origin", [BASE, None])
def test_the_page_itself_is_answered(folder: Path, origin: str | None) -> None:
    headers = {"origin": origin} if origin else {}
    bodies = {"bench": {"duration_s": 1, "rate_mbps": 1}}
    assert client_of(folder).post("/api/run", json=bodies, headers=headers).status_code == 200


_LEAF = (
    st.none() | st.booleans() | st.integers() | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=8)
    | st.sampled_from(["fifo", "40ms", "\ud800", "'", 10**400, 1e-320])
)  # fmt: skip
_ANY = st.recursive(
    _LEAF,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["rtt", "cc", "", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_BENCH = st.dictionaries(st.sampled_from([*bench.Bench.model_fields, "x"]), _ANY, max_size=3)
_CELL = st.dictionaries(st.sampled_from(["rtt", "buffer", "cc", "rtt_s", ""]), _ANY, max_size=2)
_BODY = (
    st.fixed_dictionaries({"bench": _BENCH | _ANY})
    | st.fixed_dictionaries({"cell": _CELL | _ANY})
    | _ANY
).map(lambda body: json.dumps(body).encode())


@pytest.mark.slow
@settings(max_examples=150)
@given(_BODY | st.binary(max_size=40))
@example(b"[" * 60_000)
@example(b'{"cell":' + b'{"rtt":' * 9000)
@example(b'{"bench":{"flows":' + b"[" * 20_000)
@example(b'{"cell": {"rtt": "\\ud800"}}')
@example(b'{"bench": {"rate_mbps": "50"}}')
def test_whatever_a_body_holds_the_answer_is_a_result_or_a_reason(
    folder_of_all: Path, body: bytes
) -> None:
    """Exceptions of the server reach this test: TestClient raises them."""
    answer = client_of(folder_of_all).post("/api/run", content=body)
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert answer.json()["error"]


@pytest.fixture(scope="module")
def folder_of_all(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The store, and scenarios that are read and resolved, but not run."""

    def refuse(*_runs: Any) -> None:
        raise UserError("not run in this test")

    before = bench.execute
    bench.execute = refuse  # type: ignore[assignment]
    yield folder
    bench.execute = before


def test_numbers_of_the_page_are_numbers_and_no_text() -> None:
    with pytest.raises(UserError, match="rate_mbps"):
        bench.read_bench({"rate_mbps": "50"})


def _hostile_store(place: Path, folder: Path, code: Path) -> Path:
    """A store whose sweep names code in a file, as its author would send it."""
    shutil.copytree(folder, place)
    (named,) = (place / "sweeps").glob("*.toml")
    wanted = document(axis={"rtt": ["10ms", "40ms"], "buffer": [0.5, 1, 4], "cc": [f"{code}:Evil"]})
    named.write_text(tomli_w.dumps(wanted))
    checksums.manifest_of(named).unlink()
    return place


def test_code_that_a_store_names_runs_only_where_it_is_trusted(
    folder: Path, tmp_path: Path
) -> None:
    mark, code = tmp_path / "mark", tmp_path / "evil.py"
    code.write_text(CLASS.format(mark=str(mark)))
    store = _hostile_store(tmp_path / "store", folder, code)
    cell = {"rtt": "40ms", "buffer": "4.0"}
    client = client_of(store)
    shown = client.get("/api/cell?rtt=40ms&buffer=4.0").json()
    assert len(shown["rows"]) == 4 and shown["document"] is None
    assert "evil.py" in shown["refused"] and "sha256" in shown["refused"]
    answer = client.post("/api/run", json={"cell": cell})
    assert answer.status_code == 400 and "--trust" in answer.json()["error"]
    assert client.get("/api/chart?y=share&x=rtt").status_code == 200
    assert not mark.exists()

    other = tmp_path / "other.py"
    other.write_text("")
    assert client_of(store, (other,)).post("/api/run", json={"cell": cell}).status_code == 400
    assert not mark.exists()
    trusting = client_of(store, (code,))
    # Trusted code runs, without rights.
    ran = trusting.get("/api/cell?rtt=40ms&buffer=4.0").json()["refused"]
    assert "PermissionError" in ran and not mark.exists()


def test_a_file_of_c_in_a_store_is_not_compiled(folder: Path, tmp_path: Path) -> None:
    code = tmp_path / "evil.h"
    code.write_text('#include "/etc/shadow"\n')
    store = _hostile_store(tmp_path / "store", folder, tmp_path / "x.py")
    (named,) = (store / "sweeps").glob("*.toml")
    named.write_text(named.read_text().replace("x.py:Evil", "evil.h"))
    refused = client_of(store).get("/api/cell?rtt=40ms&buffer=4.0").json()["refused"]
    assert "evil.h" in refused and "--trust" in refused


@pytest.mark.parametrize("section", ["flow", "traffic", "page"])
def test_a_report_runs_no_code_that_a_recording_names(section: str, tmp_path: Path) -> None:
    from fullpipe.engines.runner import run_scenario
    from fullpipe.scenario.model import make_scenario

    mark, code = tmp_path / "mark", tmp_path / "evil.py"
    code.write_text(CLASS.format(mark=str(mark)))
    wanted = {
        "duration": "2s", "path": {"rate": "10mbit", "rtt": "20ms"}, "flow": [{"cc": "cubic"}],
    }  # fmt: skip
    toml = tomli_w.dumps(wanted)
    run_scenario(make_scenario(wanted), toml, [tmp_path / "run"])
    hostile = {
        "flow": {**wanted, "flow": [{"cc": f"{code}:Evil"}]},
        "traffic": {**wanted, "traffic": [{"cc": f"{code}:Evil", "load": 0.1, "sizes": "1MB"}]},
        "page": {**wanted, "page": [{"cc": f"{code}:Evil"}]},
    }[section]
    (tmp_path / "run" / "scenario.toml").write_text(tomli_w.dumps(hostile))
    (tmp_path / "run" / "checksums.json").unlink(missing_ok=True)  # its author would remove it
    (group,) = grouped([read_run(Recording.open(tmp_path / "run"))])
    assert compare(group) is None
    assert not mark.exists()
