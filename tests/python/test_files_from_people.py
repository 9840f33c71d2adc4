"""Files as people save them: byte-order marks, keys in the wrong table, paths of `--set`."""

from pathlib import Path

import pytest

from fullpipe.api.calls import run
from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.recording.recording import Recording
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import load_scenario, make_scenario

LINK = '[[link]]\nname = "a"\nrate_trace = "slow.trace"\n'
FLOW = '[[flow]]\ncc = "cubic"\n'


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder with a scenario and a trace, and the current folder, which is another one."""
    beside, here = tmp_path / "beside", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
    (beside / "s.toml").write_text(f'duration = "1s"\n{LINK}{FLOW}')
    (beside / "slow.trace").write_text("1\n2\n")
    monkeypatch.chdir(here)
    return beside, here


def rate_bps(path: Path, change: str) -> int | None:
    return load_scenario(path, [f"link.0.rate_trace={change}"]).link[0].mean_rate


def test_a_path_of_set_lies_where_those_of_the_file_do(folders: tuple[Path, Path]) -> None:
    beside, here = folders
    # mahimahi(1): a line is a packet of 1504 B in its ms, and the last ms ends the trace.
    (beside / "fast.trace").write_text("1\n1\n1\n2\n")
    (here / "fast.trace").write_text("1\n1\n1\n1\n1\n2\n")
    slow = rate_bps(beside / "s.toml", "slow.trace")
    assert rate_bps(beside / "s.toml", "fast.trace") == 2 * (slow or 0)
    (beside / "fast.trace").unlink()
    assert rate_bps(beside / "s.toml", "fast.trace") == 3 * (slow or 0)


def test_a_missing_trace_is_named_once(folders: tuple[Path, Path]) -> None:
    beside, _ = folders
    with pytest.raises(UserError, match=r"link\.0\.rate_trace: .*") as caught:
        rate_bps(beside / "s.toml", "none.trace")
    assert str(caught.value).count("none.trace") == 1
    assert str(beside / "none.trace") in str(caught.value)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    text = f'duration = "1s"\n[path]\nrate = "1mbit"\nrtt = "10ms"\n{FLOW}'
    path.write_text(text, encoding="utf-8-sig")
    run(path, out=tmp_path / "out")
    recorded = Recording.open(tmp_path / "out").scenario_toml
    assert parse_toml(recorded) == parse_toml(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[run]\nduration = "5s"\n',
         r"duration: is missing: it stands under \[run\] and belongs at the top of the file, "
         r"before the first \[table\] \(wrong too: run\)"),
        ('duration = "5s"\n[run]\nwarmup = "1s"\nseed = 3\n',
         r"run: unknown table; its keys warmup and seed belong at the top of the file"),
        ('duration = "5s"\n[host]\nseed = 3\n',
         r"host\.seed: unknown key; seed belongs at the top of the file"),
        ('duration = "5s"\n[run]\nwhat = 3\n', r"run: unknown key; allowed are version"),
    ],
)  # fmt: skip
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'{text}[path]\nrate = "1mbit"\nrtt = "10ms"\n{FLOW}')
    with pytest.raises(UserError, match=said):
        load_scenario(path)


def test_a_duration_within_the_path_is_told_where_it_belongs() -> None:
    path = {"rate": "1mbit", "rtt": "10ms", "duration": "5s"}
    with pytest.raises(UserError, match=r"duration: is missing: it stands under \[path\]"):
        make_scenario({"path": path, "flow": [{"cc": "cubic"}]})


def test_a_capture_is_no_scenario(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xd4\xc3\xb2\xa1\x02\0\x04\0")
    with pytest.raises(UserError, match=r"is a capture of packets \(pcap\); a scenario is a TOML"):
        load_document(path)
