"""Files of algorithms that attack whoever runs them (hostile_files.py): whatever they try, nothing
is created or changed, no process is left, and the command ends by itself with a message."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_set
from hostile_files import C_FILES, CLASSES, HARMLESS, C, write_c, write_class

#: Ends a command that hangs: far above the limits that end what runs in it.
_HANGS_S = 300.0
#: Refused before anything runs, with what is said: all but those that take long.
REFUSED = {name: snippet.ends for name, snippet in C.items() if snippet.ends}
REFUSED |= {name: ends for name, (_, ends) in C_FILES.items()}
EVERY_C = [*C, *C_FILES, "compile time"]
#: One of each kind, for every run of the tests.
FEW = {
    "c": ["system call", "include of a file", "constructor", "system", "loop in on_ack", "null"],
    "py": ["loop in on_ack", "os._exit", "kills its parent", "writes", "memory"],
}


@dataclass(frozen=True)
class World:
    """Where an attack happens: only `folder` may change."""

    folder: Path
    out: Path
    victim: Path
    temporary: Path

    def write(self, kind: str, name: str) -> Path:
        write = write_c if kind == "c" else write_class
        return write(name, self.folder, self.out, self.victim)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "XDG_CACHE_HOME": str(self.temporary / "cache"), "TMPDIR": str(self.temporary),
            "FULLPIPE_ALGORITHM_STALL_S": "2", "FULLPIPE_ALGORITHM_MEMORY_MIB": "1024",
        }  # fmt: skip
        script = "import sys; from fullpipe.cli import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", script, *words], cwd=self.folder, env=environment, text=True,
            errors="replace", capture_output=True, timeout=_HANGS_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def assert_unharmed(self) -> None:
        assert self.victim.read_text() == "as it was\n"
        assert self.victim.stat().st_mode & 0o777 == 0o600
        assert sorted(path.name for path in self.victim.parent.iterdir()) == ["victim"]
        assert not os.path.lexists(self.out)
        assert not [path for path in self.temporary.iterdir() if path.name != "cache"]
        assert not self._processes()

    def _processes(self) -> list[bytes]:
        """Processes that were started with this world's folder in words or environment."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            for part in ("cmdline", "environ"):
                try:
                    text = (process / part).read_bytes()
                except OSError:
                    continue
                if os.fsencode(self.temporary) in text:
                    found.append(text)
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name in ("folder", "outside", "temporary"):
        (tmp_path / name).mkdir()
    victim = tmp_path / "outside" / "victim"
    victim.write_text("as it was\n")
    victim.chmod(0o600)
    return World(tmp_path / "folder", tmp_path / "created", victim, tmp_path / "temporary")


@pytest.mark.parametrize("name", REFUSED)
def test_c_is_refused_with_its_file_and_reason_before_anything_of_it_runs(
    name: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.temporary / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(world.temporary))
    path = world.write("c", name)
    with pytest.raises(UserError) as refusal:
        cc_set(str(path))
    assert str(world.folder) in str(refusal.value) and REFUSED[name] in str(refusal.value)
    assert not list(world.temporary.glob("cache/fullpipe/cc/*/native-*"))
    world.assert_unharmed()


def _scenario(path: Path) -> Path:
    scenario = path.parent / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[path]\nrate = "10mbit"\nrtt = "20ms"\nloss = "1%"\n'
        f'[[flow]]\ncc = "./{path.name}"\n'
    )
    return scenario


def _attempt(kind: str, name: str, command: str, world: World) -> None:
    path = world.write(kind, name)
    words = {
        "run": ["run", str(_scenario(path)), "--no-report"],
        "compare": ["compare", f"./{path.name}", "reno", "--duration", "6s"],
        "check": ["cc", "check", f"./{path.name}", "--kernels", ""],
    }[command]
    answer = world.command(*words)
    said = answer.stdout + answer.stderr
    assert "Traceback" not in said and "panicked" not in said, said
    assert answer.returncode in (0, 1, 2), said
    ends = _ends(kind, name)
    if ends != HARMLESS or (command == "check" and kind == "py"):
        assert answer.returncode != 0, said
        assert path.name in said, said
    world.assert_unharmed()


def _ends(kind: str, name: str) -> str | None:
    if kind == "py":
        return CLASSES[name][1]
    return C[name].ends if name in C else C_FILES.get(name, (None, HARMLESS))[1]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FEW for name in FEW[kind]])
def test_a_run_of_an_attack_fails_alone(kind: str, name: str, world: World) -> None:
    _attempt(kind, name, "run", world)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "compare", "check"])
@pytest.mark.parametrize("name", EVERY_C)
def test_every_command_outlives_every_file_of_c(name: str, command: str, world: World) -> None:
    _attempt("c", name, command, world)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "compare", "check"])
@pytest.mark.parametrize("name", CLASSES)
def test_every_command_outlives_every_class(name: str, command: str, world: World) -> None:
    _attempt("py", name, command, world)
