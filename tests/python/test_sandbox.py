"""What a confined process can no longer do, tried in processes of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe import _native
from helpers import await_ends

#: What Python itself needs to start and to load a module.
PYTHON = [*dict.fromkeys([sys.base_prefix, sys.prefix]), "/usr/lib", "/lib", "/lib64", "/etc"]

_TRY = """
import os, sys
from fullpipe import _native
missing = _native.sandbox.confine({arguments})
if missing:
    print("missing", *missing)
    sys.exit()
try:
    {attempt}
except OSError as error:
    print(error.errno)
else:
    print("done")
"""


def _confined(attempt: str, **arguments: object) -> str:
    """What the attempt said in a confined process: `done`, or the number of its error."""
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    script = _TRY.format(arguments=written, attempt=attempt.replace("\n", "\n    "))
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    words = answer.stdout.strip()
    if words.startswith("missing"):
        pytest.skip(f"this kernel cannot confine: {words}")
    return words or f"ended with {answer.returncode}: {answer.stderr}"


@pytest.mark.parametrize(
    "attempt",
    [
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "import _socket; _socket.socket(2, 1)",
        "import _socket; _socket.socketpair()",
        "os.kill(os.getppid(), 0)",
        "os.unshare(0x10000000)" if hasattr(os, "unshare") else "os.fork()",
        "os.memfd_create('x')",
        "os.pipe()",
        "import fcntl; fcntl.fcntl(0, 8, os.getppid())",
    ],
)
def test_a_process_without_rights_is_refused_by_the_kernel(attempt: str) -> None:
    assert _confined(attempt, read=PYTHON) == "1"  # EPERM


def test_nothing_can_be_written_or_created_without_a_folder_for_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    for attempt in (
        f"open({str(tmp_path / 'new')!r}, 'w')",
        f"open({str(kept)!r}, 'w')",
        f"os.unlink({str(kept)!r})",
        f"os.mkdir({str(tmp_path / 'folder')!r})",
        f"os.truncate({str(kept)!r}, 0)",
        "open('/dev/shm/new', 'w')",
    ):
        assert _confined(attempt, read=[*PYTHON, str(tmp_path)]) in ("1", "13"), attempt
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "as it was"


def test_only_the_files_that_were_named_can_be_read(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "file").write_text("")
    assert _confined(f"open({str(mine / 'file')!r})", read=[*PYTHON, str(mine)]) == "done"
    assert _confined(f"open({str(other / 'file')!r})", read=[*PYTHON, str(mine)]) == "13"
    (mine / "link").symlink_to(other / "file")
    assert _confined(f"open({str(mine / 'link')!r})", read=[*PYTHON, str(mine)]) == "13"


def test_what_was_given_can_be_written(tmp_path: Path) -> None:
    attempt = f"open({str(tmp_path / 'new')!r}, 'w').write('x')"
    assert _confined(attempt, read=PYTHON, write=[str(tmp_path)]) == "done"
    assert (tmp_path / "new").read_text() == "x"


def test_threads_and_loading_of_libraries_go_on() -> None:
    attempt = (
        "import threading, decimal\n"
        "thread = threading.Thread(target=os.getpid)\n"
        "thread.start()\n"
        "thread.join()"
    )
    assert _confined(attempt, read=PYTHON) == "done"


def test_memory_has_a_limit() -> None:
    attempt = "try: bytearray(2**31)\nexcept MemoryError: raise OSError(12, 'no memory')"
    assert _confined(attempt, read=PYTHON, memory_bytes=2**30) == "12"
    lifted = (
        "import resource\n"
        "try: resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))\n"
        "except ValueError: raise OSError(1, 'not lifted')"
    )
    assert _confined(lifted, read=PYTHON, memory_bytes=2**30) == "1"


def test_one_call_confines_a_process_with_one_thread_only() -> None:
    script = (
        "import threading, sys\n"
        "from fullpipe import _native\n"
        "wait = threading.Event()\n"
        "threading.Thread(target=wait.wait, daemon=True).start()\n"
        "try: _native.sandbox.confine()\n"
        "except OSError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "2 threads run already" in answer.stdout


def test_a_compiler_works_within_its_folders_and_cannot_leave_them(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    assert compiler is not None  # the build needs it too
    out, secret = tmp_path / "out", tmp_path / "secret"
    for folder in (out, secret):
        folder.mkdir()
    (secret / "key").write_text('"secret"')
    source = tmp_path / "mine.c"

    def compiled(text: str) -> subprocess.CompletedProcess[str]:
        source.write_text(text)
        return subprocess.run(
            [compiler, "-shared", "-fPIC", str(source), "-o", str(out / "mine.so")],
            capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(out)},
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: _native.sandbox.confine(
                read=["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives",
                      str(source)],
                write=[str(out)], processes=True,
                execute=["/usr/bin", "/usr/lib", "/usr/libexec", "/lib64", "/lib"],
            ),
        )  # fmt: skip

    answer = compiled("int one(void) { return 1; }")
    assert answer.returncode == 0, answer.stderr
    assert (out / "mine.so").is_file()
    if _confined("pass", read=PYTHON) == "done":
        assert "denied" in compiled(f'const char *key = \n#include "{secret}/key"\n;').stderr
        assert compiled(f'__asm__(".incbin \\"{secret}/key\\"");').returncode != 0


#: Starts a program as compilers are started, and waits for it.
_STARTS = """
import subprocess, sys
from fullpipe import _native
child = subprocess.Popen(
    ["/bin/sh", "-c", {script!r}], stdout=sys.stdout, preexec_fn=_native.sandbox.end_with_parent)
sys.exit(child.wait() % 256)
"""


def _started(script: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _STARTS.format(script=script)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_compiler_and_its_parts_end_with_the_program_that_is_killed(number: int) -> None:
    with _started("sleep 1000 & echo $!; wait") as program:
        assert program.stdout is not None
        part = os.pidfd_open(int(program.stdout.readline()))
        program.send_signal(number)
        await_ends([part])
        assert program.stdout.read() == "", "none holds the pipe"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -XCPU $$", 256 - signal.SIGXCPU)],
)
def test_what_ends_with_its_parent_ends_as_it_would_alone(script: str, status: int) -> None:
    with _started(script) as program:
        assert program.wait() == status
