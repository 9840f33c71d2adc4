"""What the virtual machine asks of the host: a core of its own, and a kernel that it can enter."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.child import autogroup_nice
from fullpipe.engines.vm import image as initramfs
from fullpipe.engines.vm import kernels
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


_A_SESSION_THAT_IS_NICE = """
import subprocess
from pathlib import Path
from fullpipe.engines.child import inherit_autogroup_nice

own = Path("/proc/self/autogroup")
if own.exists() and own.read_text():
    own.write_text("7")
    subprocess.run(
        ["cat", own], start_new_session=True, check=True, preexec_fn=inherit_autogroup_nice
    )
"""


def test_a_machine_in_a_session_of_its_own_is_as_nice_as_who_started_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _A_SESSION_THAT_IS_NICE],
        capture_output=True, start_new_session=True, check=True,
    ).stdout  # fmt: skip
    if not said:
        pytest.skip("no autogroups here")
    assert said.split()[-1] == b"7"


@pytest.mark.parametrize(
    ("told", "nice"),
    [("/autogroup-25 nice 5\n", 5), ("/autogroup-4879 nice -20\n", -20), ("", None)],
)
def test_the_autogroups_file_is_read_also_where_it_is_empty(told: str, nice: int | None) -> None:
    assert autogroup_nice(told) == nice


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


def lz4(content: bytes) -> bytes:
    """The legacy frame of the format: blocks of 8 MiB."""
    parts = [b"\x02\x21\x4c\x18"]
    for start in range(0, len(content), 8 << 20):
        block = pa.compress(content[start : start + (8 << 20)], codec="lz4_raw", asbytes=True)
        parts += [struct.pack("<I", len(block)), block]
    return b"".join(parts)


PACKERS = {
    "lz4": lz4,
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


def test_a_kernel_of_several_blocks_comes_out_whole(tmp_path: Path) -> None:
    whole = elf(PVH) + bytes(range(256)) * (9 << 12)
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(whole, lz4))
    assert unpacked(path, tmp_path / "kept").read_bytes() == whole


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


def test_a_kernel_that_was_built_here_is_found_by_its_name_with_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    built = bytearray(image(elf(PVH), gzip.compress))
    built[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", built, 0x20E, 0x100)
    built[0x300:0x310] = b"7.3.4-own (me) \0"
    (tmp_path / "bzImage").write_bytes(built)
    (tmp_path / "sch_new.ko").write_bytes(b"new")
    stock = tmp_path / "stock"
    stock.mkdir()
    for name in ("sch_new.ko.xz", "sch_fq.ko"):
        (stock / name).write_bytes(b"Debian's")
    for _ in range(2):  # the second takes the place of the first
        kernels.keep("own-7.3", tmp_path / "bzImage", [stock, tmp_path / "sch_new.ko"])
    found = kernels.find("own-7.3", None)
    assert (found.release, found.image.read_bytes()) == ("7.3.4-own", bytes(built))
    assert sorted(path.name for path in found.modules.rglob("*.ko*")) == ["sch_fq.ko", "sch_new.ko"]
    assert kernels.built_here() == ["own-7.3"]
    with pytest.raises(
        UserError, match=r"--kernel mine: no such file; must be .*7\.3, own-7\.3, an exact version"
    ):
        kernels.find("mine", None)


def test_no_kernel_is_kept_under_the_name_of_a_version_or_of_a_folder(tmp_path: Path) -> None:
    for name in ("6.12", "", "../there", ".hidden", "a b"):
        with pytest.raises(UserError, match="--name"):
            kernels.own_name(name)
    (tmp_path / "text").write_text("no kernel")
    with pytest.raises(RunError, match="no x86 kernel image"):
        kernels.keep("own", tmp_path / "text", [])


def test_an_image_that_a_machine_is_about_to_read_stays_while_others_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initramfs, "_content", lambda _kernel, found, _ready: repr(found).encode())
    kernel = kernels.Kernel("6.12", tmp_path, tmp_path)

    modules = [tmp_path / f"{number}.ko" for number in range(30)]
    for path in modules:
        path.touch()

    def built(module: Path) -> Path:
        return initramfs.build(kernel, {"module": module}, tmp_path / "images")

    first = built(modules[0])
    for module in modules[1:]:
        # As if each had been made long before the next: clocks of files may be coarse.
        for age, path in enumerate(sorted((tmp_path / "images").iterdir(), key=_used)):
            os.utime(path, ns=(age, age))
        assert built(modules[0]) == first
        built(module)
        assert first.exists()
    assert len(list((tmp_path / "images").iterdir())) == 8


def _used(path: Path) -> int:
    return path.stat().st_mtime_ns


def test_a_tree_after_make_is_a_kernel_and_so_is_what_is_installed(tmp_path: Path) -> None:
    built = bytearray(image(elf(PVH), gzip.compress))
    built[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", built, 0x20E, 0x100)
    built[0x300:0x310] = b"7.3.4-own (me) \0"
    tree = tmp_path / "linux"
    place = tree / "arch" / "x86" / "boot"
    place.mkdir(parents=True)
    with pytest.raises(UserError, match=r"has no arch/x86/boot/bzImage or no .*`make bzImage"):
        kernels.find(str(tree), None)
    (place / "bzImage").write_bytes(built)
    (tree / "modules.builtin").write_text("kernel/net/ipv4/tcp_cubic.ko\n")
    wanted = kernels.Kernel("7.3.4-own", place / "bzImage", tree)
    assert kernels.find(str(tree), None) == wanted
    assert kernels.find(str(place / "bzImage"), None) == wanted
    with pytest.raises(UserError, match="--modules: not with"):
        kernels.find(str(tree), str(tree))
    boot, modules = tmp_path / "boot", tmp_path / "lib" / "modules" / "7.3.4-own"
    boot.mkdir()
    (boot / "vmlinuz").write_bytes(built)
    with pytest.raises(UserError, match=r"needs --modules DIR, .*lib/modules/7\.3\.4-own"):
        kernels.find(str(boot / "vmlinuz"), None)
    modules.mkdir(parents=True)
    found = kernels.find(str(boot / "vmlinuz"), None)
    assert found == kernels.Kernel("7.3.4-own", boot / "vmlinuz", modules)
