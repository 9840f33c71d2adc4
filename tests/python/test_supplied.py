"""What is no regular file is refused wherever a file is read, and nothing waits for it."""

from __future__ import annotations

import os
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import NotRegularError, open_lock, open_regular, read_regular
from fullpipe.cli import main
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


def _link_to_pipe(path: Path) -> None:
    target = path.with_name("another-name")
    os.mkfifo(target)
    path.symlink_to(target)


IRREGULAR: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "a pipe"),
    "link to a pipe": (_link_to_pipe, "a pipe"),
    "folder": (Path.mkdir, "a folder"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
    "socket": (_socket, "a socket"),
    "file of the kernel": (lambda path: path.symlink_to("/proc/self/status"), "a file of the"),
}


@pytest.mark.parametrize("kind", IRREGULAR)
def test_only_regular_files_are_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's name has at most 107 letters
    make, what = IRREGULAR[kind]
    path = tmp_path / "file"
    make(path)
    for opened in (open_regular, open_lock, lambda file: read_regular(file, 1)):
        with pytest.raises(NotRegularError, match=f"is {what}.*, not a regular file"):
            opened(path)


def test_a_file_is_read_up_to_its_limit_and_locks_are_made(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    assert read_regular(path, 1 << 20) == bytes(1 << 20)
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_regular(path, 1 << 20)
    with open_lock(tmp_path / "lock") as lock:
        assert os.fstat(lock.fileno()).st_size == 0


SCENARIO = 'duration = "1s"\n[path]\nrate = "5mbit"\nrtt = "20ms"\n[[flow]]\ncc = "reno"\n'
BEFORE_FLOW = SCENARIO.partition("[[flow]]")[0]
LINK = 'duration = "1s"\n[[link]]\nname = "a"\nrate = "5mbit"\ndelay = "5ms"\n'
FLOW = '[[flow]]\ncc = "reno"\n'
#: A scenario -> the file that it names.
SCENARIOS = {
    LINK.replace('rate = "5mbit"', 'rate_trace = "x"') + FLOW: "x",
    LINK + 'delay_jitter = "1ms"\ndelay_distribution = "./x"\n' + FLOW: "x",
    BEFORE_FLOW + '[[traffic]]\ncc = "reno"\nload = 0.5\nsizes = "x"\n': "x",
    BEFORE_FLOW + '[[traffic]]\ncc = "reno"\ntrace = "x.csv"\n': "x.csv",
    SCENARIO.replace("reno", "./x.py"): "x.py",
}
COMMANDS = [
    ("run", "x"),
    ("sweep", "x"),
    ("tune", "x"),
    ("packetdrill", "x"),
    ("differential", "x"),
    ("flent", "import", "x"),
    ("replay", "x"),
    ("trace", "show", "x"),
    ("trace", "sequence", "x"),
    ("model", "validate", "x"),
    ("cc", "check", "./x.h"),
    ("sweep", "sweep.toml", "--on", "x"),
    ("experiment", "list", "--catalogue", "entries"),
    ("report", "recording"),
    ("test", "http", "--path", "whole.toml", "--har", "x"),
    ("plot", "recording", "-m", "goodput_bps", "--style", "x"),
]


def _run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fullpipe", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def _refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    assert _run(list(words), monkeypatch) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_that_names_a_pipe_is_refused(
    scenario: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(SCENARIOS[scenario])
    Path("scenario.toml").write_text(scenario)
    assert "x" in _refused(monkeypatch, capsys, "run", "scenario.toml", "--no-report")


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_that_is_given_a_pipe_refuses_it(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("x", "x.h", "entries/x.toml", "recording/metadata.json"):
        Path(path).parent.mkdir(exist_ok=True)
        os.mkfifo(path)
    axis = '[axis]\nrtt = ["20ms"]\n[sweep]\nseeds = 1\n'
    table = '[scenario]\nduration = "1s"\npath = {rate = "5mbit", rtt = "{rtt}"}\n'
    Path("whole.toml").write_text(SCENARIO)
    Path("sweep.toml").write_text(table + '[[scenario.flow]]\ncc = "reno"\n' + axis)
    _refused(monkeypatch, capsys, *command)


@pytest.mark.hostile
@pytest.mark.parametrize("name", [".leases", ".adding", "store.json"])
def test_a_pipe_in_a_store_does_not_stop_a_command(name: str, tmp_path: Path) -> None:
    small = sweep(axis={"rtt": ["10ms"], "buffer": [1], "cc": ["cubic"]}, sweep={"seeds": 1})
    filled(tmp_path / "whole", small)
    shutil.copytree(tmp_path / "whole", tmp_path / "store")
    (tmp_path / "store" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "store" / name)
    larger = sweep(
        axis={"rtt": ["10ms", "20ms"], "buffer": [1], "cc": ["cubic"]}, sweep={"seeds": 1}
    )
    with pytest.raises(UserError, match="pipe, not a regular file"):
        filled(tmp_path / "store", larger)


def test_the_list_of_a_stores_sweeps_is_a_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    os.mkfifo(tmp_path / "store" / "sweeps.json")
    with pytest.raises(UserError, match=r"sweeps\.json: cannot be read: is a pipe"):
        store.listing()


def test_a_small_file_takes_no_memory_for_the_largest(tmp_path: Path) -> None:
    file = tmp_path / "small"
    file.write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert read_regular(file, 1 << 30) == b"x" * 1000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular(file, 999)
    assert read_regular(file, 1000) == b"x" * 1000
