"""What the virtual machine asks of the host: a core of its own, and a kernel that it can enter."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from fullpipe.engines.vm.core import confine, reserved
from fullpipe.engines.vm.vmlinux import unpacked


def test_as_many_machines_as_cores_each_have_their_own_and_one_more_has_none(
    tmp_path: Path,
) -> None:
    allowed = os.sched_getaffinity(0)
    held = [reserved(tmp_path / "cores") for _ in allowed]
    assert {each.__enter__() for each in held} == allowed
    with reserved(tmp_path / "cores") as core:
        assert core is None
    held[0].__exit__(None, None, None)
    with reserved(tmp_path / "cores") as core:
        assert core in allowed
    for each in held[1:]:
        each.__exit__(None, None, None)


def test_a_folder_that_cannot_be_made_costs_the_core_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with reserved(tmp_path / "file" / "cores") as core:
        assert core is None


def test_a_confined_process_stays_on_its_core_as_a_batch_job() -> None:
    core = max(os.sched_getaffinity(0))
    child = os.fork()
    if child == 0:
        confine(core)
        right = os.sched_getaffinity(0) == {core}
        os._exit(0 if right and os.sched_getscheduler(0) == os.SCHED_BATCH else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def elf(note: tuple[bytes, int]) -> bytes:
    """A kernel of one program header, its notes, as elf(5) lays them out."""
    notes = struct.pack("<III", len(note[0]), 8, note[1]) + note[0].ljust(4, b"\0") + bytes(8)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    program = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(notes), len(notes), 4)
    return header + program + notes


def image(kernel: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    """A bzImage as boot.rst lays it out: one sector of setup, the payload 64 bytes behind it."""
    payload = pack(kernel) + struct.pack("<I", len(kernel))
    setup = bytearray(1024)
    setup[0x1F1] = 1
    struct.pack_into("<II", setup, 0x248, 64, len(payload))
    return bytes(setup) + bytes(64) + payload


PVH = (b"Xen\0", 18)
PACKERS = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("packer", list(PACKERS))
def test_a_packed_kernel_comes_out_whole_and_is_kept(packer: str, tmp_path: Path) -> None:
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(elf(PVH), PACKERS[packer]))
    kept = unpacked(path, tmp_path / "kept")
    assert kept.read_bytes() == elf(PVH)
    assert unpacked(path, tmp_path / "kept") == kept
    assert list((tmp_path / "kept").iterdir()) == [kept]


def test_a_kernel_without_a_direct_entry_or_with_another_packer_stays_as_it_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "vmlinuz"
    for content in (image(elf((b"GNU\0", 3)), gzip.compress), image(elf(PVH), lambda c: c), b""):
        path.write_bytes(content)
        assert unpacked(path, tmp_path / "kept") == path


def test_damaged_images_are_left_to_qemu_whatever_byte_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "vmlinuz"
    good = image(elf(PVH), gzip.compress)
    dice = random.Random(1)
    for _ in range(200):
        bad = bytearray(good)
        for _ in range(3):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        path.write_bytes(bad[: dice.randrange(1, len(bad) + 1)])
        assert unpacked(path, tmp_path / "kept").is_file()
