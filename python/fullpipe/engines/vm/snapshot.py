"""Snapshots of booted machines, kept in the user's cache: the guest's memory as a file, which later
machines map copy-on-write, and the rest of QEMU's state. In a snapshot the guest waits for its
job (crates/fullpipe-agent/src/vm.rs), so one snapshot serves all jobs. It knows nothing of
plans.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from fullpipe.base.errors import RunError
from fullpipe.base.supplied import open_lock
from fullpipe.engines import assets
from fullpipe.engines.child import stop
from fullpipe.engines.vm import retries, shared
from fullpipe.engines.vm.hardware import CONSOLE, PROGRAM, SHARED, Hardware
from fullpipe.engines.vm.qmp import Monitor

#: Format version: increase it when the same files would give another machine.
_FORMAT = 1
_SEAL = "seal.json"
_FILES = ("ram", "state")
_LOCK = "making.lock"
#: Each takes 100 to 200 MB.
_MOST_KEPT = 8
_POLL_S = 0.02
#: Block size for hashing a file.
_BLOCK_BYTES = 1 << 16
#: The name of the shared memory in a state: the device's address and its id.
_SHARED_BLOCK = b"/shared"
_SHARED_RAM = "memory-backend-file,mem-path=ram,share=on"
#: Booting takes some 6 s of a core.
_PATIENCE_S = 300.0


class Launch(Protocol):
    """Starts QEMU in a folder, with inherited descriptors and extra environment variables."""

    def __call__(
        self,
        command: Sequence[str],
        folder: Path,
        inherited: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]: ...


@dataclass(frozen=True)
class Snapshot:
    """A machine that has booted."""

    folder: Path

    def memory(self) -> str:
        """The memory backend of a guest that maps this snapshot copy-on-write."""
        return f"memory-backend-file,mem-path={self.folder / 'ram'},share=off"

    def arguments(self) -> list[str]:
        """Arguments of QEMU's command in addition to the hardware's."""
        return ["-incoming", "defer"]

    def state(self) -> BinaryIO:
        """The state without the memory, as a file for QEMU to inherit."""
        return (self.folder / "state").open("rb")

    def resume(self, monitor: Monitor, state: BinaryIO) -> None:
        """Makes that QEMU resume from this snapshot."""
        _ignore_memory(monitor)
        # An expired host-clock timer stops the vCPU until the main loop, which runs when the vCPU
        # waits, has handled it. There is no network to announce the machine to.
        monitor.ask("migrate-set-parameters", **{"announce-rounds": 1})
        monitor.ask("migrate-incoming", uri=f"fd:{state.fileno()}")


class StoppedError(Exception):
    """Raised when the caller stops the boot."""


def find_or_make(
    hardware: Hardware, folder: Path, launch: Launch, goes_on: Callable[[], bool]
) -> Snapshot | None:
    """The snapshot of that hardware; boots one if there is none. None if this host or QEMU does not
    support snapshots. Raises StoppedError if `goes_on()` becomes false meanwhile."""
    target = folder / _key(hardware)
    try:
        if not _is_whole(target):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / _LOCK):
                if not _is_whole(target):
                    _make(hardware, target, launch, goes_on)
                    _forget_oldest(folder)
        with suppress(OSError):
            os.utime(target / _SEAL)
    except (OSError, RunError) as error:
        retries.note(f"no snapshot: {error}")
        return None
    return Snapshot(target)


def forget(snapshot: Snapshot) -> None:
    """Removes a snapshot that did not start."""
    shutil.rmtree(snapshot.folder, ignore_errors=True)


def _key(hardware: Hardware) -> str:
    """A hash of everything that the guest can see, and of QEMU's version and files."""
    arguments = hardware.arguments("")
    paths = {str(hardware.kernel): "kernel", str(hardware.initramfs): "initramfs"}
    program = Path(shutil.which(PROGRAM) or PROGRAM)
    facts = (
        _FORMAT,
        [paths.get(argument, argument) for argument in arguments],
        # Use only the content's digest at the end of its name. The part before it names the files
        # that it was made of, and different builds may give the same bytes.
        hardware.initramfs.name.rpartition("-")[2],
        [_name(path) for path in (hardware.kernel, program)],
        _digest(assets.turnstile()),
    )
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _name(path: Path) -> tuple[str, int, int]:
    """Name, size and time of change: enough to identify a file that is rarely written."""
    status = path.stat()
    return path.name, status.st_size, status.st_mtime_ns


def _digest(path: Path) -> str:
    """A hash of the content without zero blocks. Seven eighths of a guest's memory are zeros, which
    are holes of the file unless they were written."""
    whole = hashlib.sha256()
    zeros = bytes(_BLOCK_BYTES)
    with path.open("rb", buffering=0) as file:
        whole.update(str(os.fstat(file.fileno()).st_size).encode())
        for start in _blocks(file):
            block = os.pread(file.fileno(), _BLOCK_BYTES, start)
            if block != zeros[: len(block)]:
                whole.update(start.to_bytes(8, "big") + block)
    return whole.hexdigest()


def _blocks(file: io.FileIO) -> Iterator[int]:
    """Offsets of the blocks that are not entirely a hole."""
    end = 0
    while True:
        try:
            data = os.lseek(file.fileno(), end, os.SEEK_DATA)
        except OSError:  # no data after this offset
            return
        start = max(data - data % _BLOCK_BYTES, end)
        end = os.lseek(file.fileno(), data, os.SEEK_HOLE)
        end += -end % _BLOCK_BYTES
        yield from range(start, end, _BLOCK_BYTES)


def _make(hardware: Hardware, target: Path, launch: Launch, goes_on: Callable[[], bool]) -> None:
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
    try:
        shared.create(aside / SHARED, hardware.shared_bytes, None)
        with Monitor() as monitor:
            command = [*hardware.arguments(_SHARED_RAM), *monitor.arguments()]
            inherited = (monitor.theirs.fileno(),)
            process = launch(command, aside, inherited, {"FULLPIPE_HOLD": "1"})
            try:
                monitor.greet()
                _await(lambda: _is_paused(monitor), goes_on)
                _ignore_memory(monitor)
                monitor.ask("migrate", uri="exec:/bin/cat > state")
                _await(lambda: _is_written(monitor), goes_on)
            finally:
                stop(process)
        for name in (SHARED, CONSOLE, "errors"):
            (aside / name).unlink()
        _clear_address(aside / "state", hardware.shared_bytes)
        seal(aside)
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _ignore_memory(monitor: Monitor) -> None:
    """Leaves memory that is a shared file already out of the state."""
    capability = {"capability": "x-ignore-shared", "state": True}
    monitor.ask("migrate-set-capabilities", capabilities=[capability])


def _clear_address(state: Path, shared_bytes: int) -> None:
    """Sets the address of the shared memory to 0 in the state. A resuming QEMU compares addresses
    of ignored blocks before it restores the guest's mapping, when the address is still 0
    (ram_load_precopy() of migration/ram.c; name, size, address)."""
    content = state.read_bytes()
    entry = _SHARED_BLOCK + struct.pack(">Q", shared_bytes)
    if content.count(entry) != 1:
        raise RunError("QEMU: the machine's state has an unknown layout")
    address = content.index(entry) + len(entry)
    state.write_bytes(content[:address] + bytes(8) + content[address + 8 :])


def _is_paused(monitor: Monitor) -> bool:
    return bool(monitor.ask("query-status")["status"] == "paused")


def _is_written(monitor: Monitor) -> bool:
    status = monitor.ask("query-migrate").get("status")
    if status in ("failed", "cancelled"):
        raise RunError("QEMU: cannot write the machine's state")
    return bool(status == "completed")


def _await(is_so: Callable[[], bool], goes_on: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if not goes_on():
            raise StoppedError
        if time.monotonic() > deadline:
            raise RunError("QEMU: the machine did not become ready in time")
        time.sleep(_POLL_S)


def seal(folder: Path) -> None:
    """Writes the digests of the files, after the files are on the disk."""
    for name in _FILES:
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    _write_seal(folder, {name: _digest(folder / name) for name in _FILES})


def _write_seal(folder: Path, digests: dict[str, str]) -> None:
    seals = {name: [digest, *_stamp(folder / name)] for name, digest in digests.items()}
    descriptor, partial = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(seals, file)
        file.flush()
        os.fsync(file.fileno())
    Path(partial).rename(folder / _SEAL)


def _is_whole(folder: Path) -> bool:
    """Whether the files are those that were sealed, by size and time of change. If these differ (a
    copied cache), compares the content and seals the files again."""
    try:
        seals: dict[str, list[Any]] = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
        if all(seals[name][1:] == _stamp(folder / name) for name in _FILES):
            return True
        digests = {name: seals[name][0] for name in _FILES}
        if digests != {name: _digest(folder / name) for name in _FILES}:
            return False
        _write_seal(folder, digests)
        return True
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_ctime_ns]


def _forget_oldest(folder: Path) -> None:
    """Removes the oldest snapshots. Running machines keep their files open."""
    by_age = sorted(folder.glob(f"*/{_SEAL}"), key=lambda path: -path.stat().st_mtime_ns)
    for path in by_age[_MOST_KEPT:]:
        shutil.rmtree(path.parent, ignore_errors=True)
    for left in folder.glob("making-*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on the file, which the kernel releases when the process ends."""
    with open_lock(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
