"""Opens files that others supply. What is no regular file is refused before it is opened: a pipe
would wait for a writer, a device never ends, and to open one may do something. Reads no format.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegularError(OSError):
    """A folder, a pipe, a device or a socket where a file should be."""


def check_regular(path: Path | str) -> None:
    """Raises NotRegularError unless the path, or what it links to, is a regular file. For libraries
    that open files themselves."""
    _check(os.stat(path).st_mode)  # noqa: PTH116


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened to be read. Raises OSError, whose `strerror` says what it is instead,
    ValueError for what is no name of a file."""
    check_regular(path)
    return os.fdopen(_opened(path, os.O_RDONLY), "rb")


def open_lock(path: Path | str) -> BufferedRandom:
    """A file that processes lock, made where there is none, whose content means nothing. Raises
    OSError, as above."""
    with suppress(FileNotFoundError):
        check_regular(path)
    return os.fdopen(_opened(path, os.O_RDWR | os.O_CREAT), "r+b")


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """The content of a regular file of at most so many bytes. Raises OSError, as above, and for a
    larger one."""
    with open_regular(path) as file:
        # read(n) allocates n bytes.
        size = min(os.fstat(file.fileno()).st_size, most_bytes)
        content = file.read(size + 1)
        if len(content) > size:  # it grows
            content += file.read(most_bytes - size)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"is larger than {most_bytes >> 20} MiB, the most that is read")
    return content


def _opened(path: Path | str, flags: int) -> int:
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        status = os.fstat(descriptor)
        _check(status.st_mode)  # it may have become a pipe since
        _check_size(descriptor, status.st_size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_size(descriptor: int, size: int) -> None:
    """Files of /proc are regular ones without a size; some wait for content, some never end."""
    if size > 0:
        return
    try:
        has_content = os.pread(descriptor, 1, 0) != b""
    except OSError:
        has_content = True
    if has_content and os.fstat(descriptor).st_size == 0:
        raise NotRegularError(errno.EINVAL, "is a file of the kernel, not a regular file")


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "none")
        raise NotRegularError(errno.EINVAL, f"is {kind}, not a regular file")
