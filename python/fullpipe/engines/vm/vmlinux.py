"""Unpacks a kernel image on the host. A guest that unpacks itself spends a fifth of its boot on it.
QEMU enters an unpacked kernel directly if it has a PVH entry (the PVH boot protocol). It knows
nothing of versions and packages.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

#: Fields of the setup header (Documentation/arch/x86/boot.rst): sectors of real-mode code, where
#: the compressed kernel begins behind them, and its length.
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
_SECTOR = 512
#: A kernel is 60 MB; an image that claims to be larger than this is corrupt.
_MOST_BYTES = 512 * 2**20
_LZ4_BLOCK_BYTES = 8 * 2**20
_PT_NOTE = 4
#: XEN_ELFNOTE_PHYS32_ENTRY (include/xen/interface/elfnote.h): the entry of the PVH protocol.
_PVH_NOTE = (b"Xen\0", 18)


def unpacked(image: Path, folder: Path) -> Path:
    """The image's kernel as an ELF file, cached in `folder`. The image itself if its compression is
    unknown or it has no direct entry."""
    content = image.read_bytes()
    cached = folder / hashlib.sha256(content).hexdigest()
    if cached.is_file():
        return cached
    kernel = _kernel(content)
    if kernel is None or _PVH_NOTE not in _notes(kernel):
        return image
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(kernel)
    Path(partial).rename(cached)
    return cached


def _kernel(image: bytes) -> bytes | None:
    try:
        offset, length = struct.unpack_from("<II", image, _PAYLOAD)
        start = ((image[_SETUP_SECTORS] or 4) + 1) * _SECTOR + offset
        payload = image[start : start + length]
        # The build appends the unpacked size (scripts/Makefile.lib, size_append).
        (size,) = struct.unpack_from("<I", payload, len(payload) - 4)
        unpack = next(u for magic, u in _PACKERS.items() if payload.startswith(magic))
        return unpack(payload, size) if size <= _MOST_BYTES else None
    except (
        IndexError,
        OSError,
        StopIteration,
        ValueError,
        lzma.LZMAError,
        struct.error,
        zlib.error,
    ):
        return None


def _unzstd(payload: bytes, size: int) -> bytes:
    with pa.input_stream(pa.py_buffer(payload[:-4]), compression="zstd") as stream:
        return bytes(stream.read(size))


def _unxz(payload: bytes, size: int) -> bytes:
    return lzma.LZMADecompressor().decompress(payload, size)


def _unlz4(payload: bytes, size: int) -> bytes:
    """The legacy frame (lz4_Frame_format.md): blocks of 8 MiB, each behind its compressed size."""
    parts, offset = [], 4
    while size > 0:
        (length,) = struct.unpack_from("<I", payload, offset)
        block = payload[offset + 4 : offset + 4 + length]
        parts.append(
            pa.decompress(block, min(size, _LZ4_BLOCK_BYTES), codec="lz4_raw", asbytes=True)
        )
        size -= len(parts[-1])
        offset += 4 + length
    return b"".join(parts)


def _gunzip(payload: bytes, size: int) -> bytes:
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(payload, size)


_PACKERS: dict[bytes, Callable[[bytes, int], bytes]] = {
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"\xfd7zXZ\0": _unxz,
    b"\x1f\x8b": _gunzip,
    b"\x02\x21\x4c\x18": _unlz4,
}


def _notes(elf: bytes) -> Iterator[tuple[bytes, int]]:
    """Name and type of each note of a 64-bit ELF file (elf(5))."""
    if not elf.startswith(b"\x7fELF\x02"):
        return
    try:
        (headers,) = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
        for index in range(count):
            kind, _, start, _, _, length = struct.unpack_from(
                "<IIQQQQ", elf, headers + index * size
            )
            offset = start
            while kind == _PT_NOTE and offset < start + length:
                name, content, note = struct.unpack_from("<III", elf, offset)
                yield elf[offset + 12 : offset + 12 + name], note
                offset += 12 + -(-name // 4) * 4 + -(-content // 4) * 4
    except struct.error:
        return
