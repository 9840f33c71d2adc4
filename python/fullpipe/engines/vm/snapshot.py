"""Machines that have booted, kept in the user's cache: the guest's memory as a file, which every
later machine maps as a copy of its own, and the rest of QEMU's state. The guest sleeps in them
until it reads its errand (crates/fullpipe-agent/src/vm.rs), so all errands can begin there. It
knows nothing of plans.
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
from fullpipe.engines import assets
from fullpipe.engines.child import stop
from fullpipe.engines.vm import shared
from fullpipe.engines.vm.hardware import CONSOLE, PROGRAM, SHARED, Hardware
from fullpipe.engines.vm.qmp import Monitor

#: Counts up when the same files would make another machine.
_FORMAT = 1
_SEAL = "seal.json"
_FILES = ("ram", "state")
_LOCK = "making.lock"
#: Each takes 100 to 200 MB.
_MOST_KEPT = 8
_POLL_S = 0.02
#: Of a file, when its content is looked at.
_BLOCK_BYTES = 1 << 16
#: As a state names the shared memory: the device's place and its own name.
_SHARED_BLOCK = b"/shared"
_SHARED_RAM = "memory-backend-file,mem-path=ram,share=on"
#: Booting takes some 6 s of a core.
_PATIENCE_S = 300.0


class Launch(Protocol):
    """Starts QEMU in a folder, with descriptors that it inherits and variables of its own."""

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
        """The backend of a guest's memory that begins as this one's and is written to nowhere."""
        return f"memory-backend-file,mem-path={self.folder / 'ram'},share=off"

    def arguments(self) -> list[str]:
        """Of QEMU's command, beside the hardware."""
        return ["-incoming", "defer"]

    def state(self) -> BinaryIO:
        """All but the memory, for QEMU to inherit."""
        return (self.folder / "state").open("rb")

    def resume(self, monitor: Monitor, state: BinaryIO) -> None:
        """Has that QEMU go on from here."""
        _ignore_memory(monitor)
        # A timer of the host's clock that is due stops the processor until the main loop, which
        # has its turn when the processor waits, has seen to it; and there is no network to tell.
        monitor.ask("migrate-set-parameters", **{"announce-rounds": 1})
        monitor.ask("migrate-incoming", uri=f"fd:{state.fileno()}")


class StoppedError(Exception):
    """Asked to end before it was done."""


def find_or_make(
    hardware: Hardware, folder: Path, launch: Launch, goes_on: Callable[[], bool]
) -> Snapshot | None:
    """The machine of that hardware, booted now if none is kept; None where this host or this QEMU
    cannot. Raises StoppedError where `goes_on()` is false meanwhile."""
    place = folder / _key(hardware)
    try:
        if not _is_whole(place):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / _LOCK):
                if not _is_whole(place):
                    _make(hardware, place, launch, goes_on)
                    _forget_oldest(folder)
        with suppress(OSError):
            os.utime(place / _SEAL)
    except (OSError, RunError):
        return None
    return Snapshot(place)


def forget(snapshot: Snapshot) -> None:
    """Removes one that did not start."""
    shutil.rmtree(snapshot.folder, ignore_errors=True)


def _key(hardware: Hardware) -> str:
    """Of everything that the guest could see, and of who makes it visible."""
    arguments = hardware.arguments("")
    paths = {str(hardware.kernel): "kernel", str(hardware.initramfs): "initramfs"}
    program = Path(shutil.which(PROGRAM) or PROGRAM)
    facts = (
        _FORMAT,
        [paths.get(argument, argument) for argument in arguments],
        # Its name ends with its content's digest; before that, with whose files it was made of: a
        # checkout's and an installed program's, and those of the next build, may be the same bytes.
        hardware.initramfs.name.rpartition("-")[2],
        [_name(path) for path in (hardware.kernel, program)],
        _digest(assets.turnstile()),
    )
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _name(path: Path) -> tuple[str, int, int]:
    """Of a file that is written rarely."""
    status = path.stat()
    return path.name, status.st_size, status.st_mtime_ns


def _digest(path: Path) -> str:
    """Of the content, zeros left out: seven eighths of a guest's memory are, and holes of the file
    where nobody filled them."""
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
    """Where blocks begin that are not all hole."""
    end = 0
    while True:
        try:
            data = os.lseek(file.fileno(), end, os.SEEK_DATA)
        except OSError:  # no data any more
            return
        start = max(data - data % _BLOCK_BYTES, end)
        end = os.lseek(file.fileno(), data, os.SEEK_HOLE)
        end += -end % _BLOCK_BYTES
        yield from range(start, end, _BLOCK_BYTES)


def _make(hardware: Hardware, place: Path, launch: Launch, goes_on: Callable[[], bool]) -> None:
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=place.parent))
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
        shutil.rmtree(place, ignore_errors=True)
        aside.rename(place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _ignore_memory(monitor: Monitor) -> None:
    """Memory that is a shared file already is not written into the state."""
    capability = {"capability": "x-ignore-shared", "state": True}
    monitor.ask("migrate-set-capabilities", capabilities=[capability])


def _clear_address(state: Path, shared_bytes: int) -> None:
    """A QEMU that goes on compares where blocks lie that are not in the state, before it knows
    where the guest has put a device's memory: there it lies at 0 still (ram_load_precopy() of
    migration/ram.c; name, size, address)."""
    content = state.read_bytes()
    entry = _SHARED_BLOCK + struct.pack(">Q", shared_bytes)
    if content.count(entry) != 1:
        raise RunError("QEMU: the machine's state is laid out in another way")
    address = content.index(entry) + len(entry)
    state.write_bytes(content[:address] + bytes(8) + content[address + 8 :])


def _is_paused(monitor: Monitor) -> bool:
    return bool(monitor.ask("query-status")["status"] == "paused")


def _is_written(monitor: Monitor) -> bool:
    status = monitor.ask("query-migrate").get("status")
    if status in ("failed", "cancelled"):
        raise RunError("QEMU: the machine's state cannot be written")
    return bool(status == "completed")


def _await(is_so: Callable[[], bool], goes_on: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if not goes_on():
            raise StoppedError
        if time.monotonic() > deadline:
            raise RunError("QEMU: the machine does not get ready")
        time.sleep(_POLL_S)


def seal(folder: Path) -> None:
    """Says what the files are, once they are on the disk."""
    for name in _FILES:
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    _write_seal(folder, {name: _digest(folder / name) for name in _FILES})


def _write_seal(folder: Path, digests: dict[str, str]) -> None:
    said = {name: [digest, *_stamp(folder / name)] for name, digest in digests.items()}
    descriptor, partial = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    Path(partial).rename(folder / _SEAL)


def _is_whole(folder: Path) -> bool:
    """Whether the files are those that were sealed: by size and time of change, which every write
    moves; where these differ (a copied cache) by content, and sealed again."""
    try:
        said: dict[str, list[Any]] = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
        if all(said[name][1:] == _stamp(folder / name) for name in _FILES):
            return True
        digests = {name: said[name][0] for name in _FILES}
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
    """A machine that runs from one keeps the files open."""
    kept = sorted(folder.glob(f"*/{_SEAL}"), key=lambda path: -path.stat().st_mtime_ns)
    for path in kept[_MOST_KEPT:]:
        shutil.rmtree(path.parent, ignore_errors=True)
    for left in folder.glob("making-*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go when it ends."""
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
