"""Runs a command as root on another kernel, with this host's files and this host's time:

    python scripts/in_machine.py [--kernel 6.12] -- .venv/bin/python -m pytest tests/python

The kernel is one of engine `vm`'s, in QEMU, without counted instructions and without KVM: engine
`live` can so be tried where the host's kernel lacks netem or a queue discipline. The root file
system is the host's, read-only (virtiofs); /tmp, /run and what the command keeps in its caches are
memory and vanish. Its words and its exit status are this program's. Needs root, QEMU, and a kernel
with virtiofs built in (6.12 and 7.3 have it).
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

#: Where Debian has it: with QEMU until 12, then in a package of its own.
_VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
_PROGRAM = "qemu-system-x86_64"
_INSIDE = "--inside"
_JOB, _STATUS, _SOCKET = "job.json", "status", "files"
#: What QEMU and virtiofsd say, and the kernel.
_COMPLAINTS, _CONSOLE = "complaints", "console"
_MOUNTS = (
    ("proc", "/proc"), ("sysfs", "/sys"), ("bpf", "/sys/fs/bpf"), ("devtmpfs", "/dev"),
    ("tmpfs", "/dev/shm"), ("tmpfs", "/tmp"), ("tmpfs", "/run"),
)  # fmt: skip
#: What finds programs, and what must not be written beside sources that are read-only.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
#: Tells tests that a busy host does not change speeds and delays here.
_OWN_TIME = "FULLPIPE_OWN_TIME"
_SYS_FINIT_MODULE = 313  # of x86-64
_RB_POWER_OFF = 0x4321FEDC
_LAST_WORDS = 20


def main() -> int:
    """Returns the command's exit status; 2 if no machine can be started, 1 if it crashed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", help="as of `fullpipe run --engine vm`")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--own-time",
        action="store_true",
        help="time in the machine is counted in instructions: a busy host makes it slower, and its "
        "processor, one, is never too slow for 10 Mbit/s",
    )
    parser.add_argument("--memory", type=int, default=3072, metavar="MIB")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    from fullpipe.base.errors import UserError

    try:
        with tempfile.TemporaryDirectory(prefix="fullpipe-machine-") as text:
            return outside(Path(text), given)
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def outside(folder: Path, given: argparse.Namespace) -> int:
    """Boots the machine and waits for its end; `folder` has its job."""
    from fullpipe.base.cache import user_cache
    from fullpipe.base.errors import UserError
    from fullpipe.engines.child import die_with_parent, stop
    from fullpipe.engines.vm import image, vmlinux
    from fullpipe.engines.vm.kernels import find

    kernel = find(given.kernel, None)
    daemon = next((path for path in _VIRTIOFSD if Path(path).is_file()), None)
    if os.geteuid() != 0 or daemon is None or shutil.which(_PROGRAM) is None:
        raise UserError("needs root, qemu-system-x86 and virtiofsd")
    modules = []
    for name, content in image.ready_modules(kernel, image.module_files(kernel)):
        (folder / f"{name}.ko").write_bytes(content)
        modules.append(name)
    job = {"modules": modules, "command": given.command, "folder": str(Path.cwd()),
           "environment": {_OWN_TIME: "1"} if given.own_time else {}}  # fmt: skip
    (folder / _JOB).write_text(json.dumps(job))
    init = [str(Path(__file__).resolve()), _INSIDE, str(folder)]
    arguments = (
        "console=ttyS0 loglevel=4 panic=-1 mitigations=off psi=0 "
        f"rootfstype=virtiofs root=host ro init={sys.executable} -- {' '.join(init)}"
    )
    with ExitStack() as stack:
        complaints = stack.enter_context((folder / _COMPLAINTS).open("wb"))

        def start(*command: str, inherits: Sequence[int] = ()) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stderr=complaints,
                preexec_fn=die_with_parent,
                pass_fds=inherits,
            )
            stack.callback(stop, process)
            return process

        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / _SOCKET))
            listening.listen()
            start(
                daemon, "-f", f"--fd={listening.fileno()}",
                "-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always",
                inherits=(listening.fileno(),),
            )  # fmt: skip
        clock = ["-accel", "tcg,thread=multi", "-smp", str(given.cores)]
        if given.own_time:
            clock = ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off"]
        machine = start(
            _PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "pc,memory-backend=ram", "-cpu", "max", *clock,
            "-m", f"{given.memory}M",
            "-object", f"memory-backend-memfd,id=ram,size={given.memory}M,share=on",
            "-chardev", f"socket,id=files,path={_SOCKET}",
            "-device", "vhost-user-fs-pci,chardev=files,tag=host",
            "-kernel", str(vmlinux.unpacked(kernel.image, user_cache() / "vmlinux").resolve()),
            "-append", arguments,
            "-chardev", "stdio,id=words,signal=off",
            "-serial", f"file:{_CONSOLE}", "-serial", "chardev:words", "-serial", f"file:{_STATUS}",
        )  # fmt: skip
        machine.wait()
    said = (folder / _STATUS).read_text().strip() if (folder / _STATUS).is_file() else ""
    if said:
        return int(said)
    for name in (_COMPLAINTS, _CONSOLE):
        words = (folder / name).read_text(errors="replace").splitlines()[-_LAST_WORDS:]
        print(f"the machine died; {name}:", *words, sep="\n", file=sys.stderr)
    return 1


def inside(folder: Path) -> None:
    """What the machine's first process does: makes it ready, runs the command, switches it off.
    If that fails the kernel panics, after Python's traceback."""
    job = json.loads((folder / _JOB).read_text())
    libc = ctypes.CDLL(None, use_errno=True)
    for name in job["modules"]:
        with (folder / f"{name}.ko").open("rb") as file:
            _checked(libc.syscall(_SYS_FINIT_MODULE, file.fileno(), b"", 0), name)
    for kind, where in _MOUNTS:
        Path(where).mkdir(exist_ok=True)
        _checked(libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None), where)
    Path("/dev/fd").symlink_to("/proc/self/fd")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with Path("/dev/ttyS1").open("wb") as words:
        as_they_are = termios.tcgetattr(words)
        as_they_are[1] &= ~termios.OPOST
        termios.tcsetattr(words, termios.TCSANOW, as_they_are)
        done = subprocess.run(
            job["command"],
            cwd=job["folder"],
            env=_ENVIRONMENT | job["environment"],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            check=False,
        )
        termios.tcdrain(words)
    with Path("/dev/ttyS2").open("w") as status:
        print(done.returncode if done.returncode >= 0 else 128 - done.returncode, file=status)
        status.flush()
        termios.tcdrain(status)
    libc.reboot(_RB_POWER_OFF)


def _checked(answer: int, what: str) -> None:
    code = ctypes.get_errno()
    if answer != 0 and code not in (errno.EEXIST, errno.EBUSY):
        raise OSError(code, os.strerror(code), what)


if __name__ == "__main__":
    if os.getpid() == 1 and sys.argv[1:2] == [_INSIDE]:
        inside(Path(sys.argv[2]))
    else:
        sys.exit(main())
