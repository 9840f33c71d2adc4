"""Algorithms that attack the program that runs them (hostile_files.py): whatever they try, nothing
is created or changed, no process is left, and the command ends by itself with a message."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import forks
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_set
from hostile_files import C_FILES, CLASSES, HARMLESS, C, write_c, write_class

#: Refused before anything runs, with the message: all but those that take long.
REFUSED = {name: snippet.ends for name, snippet in C.items() if snippet.ends}
REFUSED |= {name: ends for name, (_, ends) in C_FILES.items()}
#: C that runs, and what takes long to compile.
RUNS = [name for name in C if name not in REFUSED] + ["compile time"]
#: What a refusal names: with it left out, refusals of a kind are equal.
_NAMED = re.compile(
    r"\w+\(\)( calls \w+\(\))*|__builtin\w*|(?<=attribute )\w+|#\w+|__has_include|/etc/\w+"
    r"|(?<=mine\.h).*|(?<=outside ).*"
)
#: An attack of each kind of refusal, by message.
KINDS = {_NAMED.sub("", ends): name for name, ends in reversed(REFUSED.items())}
COMMANDS = ["run", "compare", "check"]
#: One of each kind, for every run of the tests.
FEW = {
    "c": ["system call", "include of a file", "constructor", "system", "loop in on_ack", "null"],
    "py": ["loop in on_ack", "closes its answers", "os._exit", "kills its parent", "writes",
           "memory"],
}  # fmt: skip


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

    def command(self, *words: str) -> tuple[int, str]:
        """The exit status of the program, and what it says."""
        script = "import sys; from fullpipe.cli import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", script, *words], cwd=self.folder, env=self._environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode(errors="replace")

    def forked(self, *words: str) -> tuple[int, str]:
        """The same in a process that has loaded the program already: for a tenth of the cost."""
        return forks.command(words, self.folder, self._environment())

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "XDG_CACHE_HOME": str(self.temporary / "cache"), "TMPDIR": str(self.temporary),
            "FULLPIPE_ALGORITHM_STALL_S": "2", "FULLPIPE_ALGORITHM_MEMORY_MIB": "1024",
        }  # fmt: skip

    def assert_unharmed(self) -> None:
        assert self.victim.read_text() == "as it was\n"
        assert self.victim.stat().st_mode & 0o777 == 0o600
        assert sorted(path.name for path in self.victim.parent.iterdir()) == ["victim"]
        assert not os.path.lexists(self.out)
        assert not [path for path in self.temporary.iterdir() if path.name != "cache"]
        assert not self._processes()

    def _processes(self) -> list[bytes]:
        """Processes that were started with this world's folder in words or environment, or that
        work in it."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                started = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                works_in = os.fsencode((process / "cwd").readlink())
            except OSError:  # it has ended
                continue
            if os.fsencode(self.temporary) in started or works_in == os.fsencode(self.folder):
                found.append(started)
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


def _attempt(kind: str, name: str, command: str, world: World, *, forked: bool = True) -> None:
    path = world.write(kind, name)
    words = {
        "run": ["run", str(_scenario(path)), "--no-report"],
        "compare": ["compare", f"./{path.name}", "reno", "--duration", "6s"],
        "check": ["cc", "check", f"./{path.name}", "--kernels", ""],
    }[command]
    status, said = world.forked(*words) if forked else world.command(*words)
    assert "Traceback" not in said and "panicked" not in said, said
    assert status in (0, 1, 2), said
    ends = _ends(kind, name)
    if ends != HARMLESS or (command == "check" and kind == "py"):
        assert status != 0, said
        assert path.name in said, said
    world.assert_unharmed()


def _ends(kind: str, name: str) -> str | None:
    if kind == "py":
        return CLASSES[name][1]
    return C[name].ends if name in C else C_FILES.get(name, (None, HARMLESS))[1]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FEW for name in FEW[kind]])
def test_a_run_of_an_attack_fails_alone(kind: str, name: str, world: World) -> None:
    """The first of a kind as a program of its own."""
    _attempt(kind, name, "run", world, forked=name != FEW[kind][0])


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_says_every_kind_of_refusal(kind: str, command: str, world: World) -> None:
    """Each attack of a kind is refused by the same code, which the tests above call."""
    _attempt("c", KINDS[kind], command, world)


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", RUNS)
def test_every_command_outlives_every_file_of_c_that_runs(
    name: str, command: str, world: World
) -> None:
    _attempt("c", name, command, world)


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", CLASSES)
def test_every_command_outlives_every_class(name: str, command: str, world: World) -> None:
    _attempt("py", name, command, world)


def test_no_worker_outlives_its_command(world: World) -> None:
    """It holds its pipe of commands open itself, and blocks every signal."""
    path = world.folder / "mine.py"
    path.write_text(
        "import fullpipe, json, os, signal, sys\n"
        "class Mine(fullpipe.Controller):\n"
        "    def on_ack(self, ack):\n"
        "        pipe = json.loads(sys.argv[1])['commands']\n"
        "        os.open(f'/proc/self/fd/{pipe}', os.O_WRONLY)\n"
        "        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
        "        print('worker', os.getpid(), flush=True)\n"
        "        while True: pass\n"
        "    def on_event(self, event): pass\n"
    )
    script = "from fullpipe.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", script, "run", str(_scenario(path)), "--no-report"],
        cwd=world.folder, env=world._environment() | {"FULLPIPE_ALGORITHM_STALL_S": "1000"},
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    ) as command:  # fmt: skip
        assert command.stderr is not None
        worker = int(command.stderr.readline().split()[1])
        ends = os.pidfd_open(worker)
        command.kill()
    assert select.select([ends], [], [])[0] == [ends]
    os.close(ends)
