"""The process in which the code of algorithms from files runs, with the simulator around it.

`process.py` starts this file as a script, because importing the package takes longer than a short
run. It gives up its rights before it loads any of that code, then does one job after another. All
that it sends may be forged by that code.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import sys

TYPE_CHECKING = False  # loading `typing` takes as long as loading the simulator
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Blobs = Sequence[bytes]

#: Of a message: bytes of JSON, bytes of all blobs. `blobs` of the JSON has their sizes.
HEAD = struct.Struct("<IQ")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_CLONE_PARENT = 0x8000  # linux/sched.h
#: The number of clone(2) by machine (asm/unistd.h), where its first argument is the flags.
_SYS_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
#: Descriptors of a message to the stem, and bytes of its answer.
_MOST_DESCRIPTORS, PID_BYTES = 16, 8
#: Most characters of a failure's words that are sent.
_MAX_WORDS = 10_000


def message(content: dict[str, Any], blobs: Blobs = ()) -> list[bytes]:
    """The pieces of a message, to be written one after another."""
    text = json.dumps({**content, "blobs": [len(blob) for blob in blobs]}).encode()
    return [HEAD.pack(len(text), sum(map(len, blobs))) + text, *blobs]


def packed(tables: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
    """Tables of the native module with their values moved to `blobs`: table -> column -> kind."""
    layout: dict[str, dict[str, str]] = {}
    for table, columns in tables.items():
        layout[table] = {}
        for column, (kind, values) in columns.items():
            layout[table][column] = kind
            if kind == "text":
                blobs.append(json.dumps(values).encode())
            elif kind.startswith("opt_"):
                blobs += values
            else:
                blobs.append(values)
    return layout


class _Worker:
    def __init__(self, setup: dict[str, Any]) -> None:
        self._setup = setup
        self._commands: int = setup["commands"]
        self._answers: int = setup["answers"]
        #: C's algorithms: where each begins in memory; they are loaded once.
        self._bases: dict[str, int] = {}

    def work(self) -> None:
        """Does jobs until there are none, which ends this process with the one that asks."""
        while True:
            command, blobs = self._read()
            job = command.get("job")
            if job is None:
                continue  # a request to stop that came too late
            try:
                value, answer = getattr(self, f"_{job}")(blobs, **command["arguments"])
                self._send({"done": value}, answer)
            except BaseException as error:  # whatever the code raises is its failure
                self._send(self._explained(error))

    def _describe(self, _blobs: Blobs, identity: str) -> tuple[Any, Blobs]:
        description = self._load(identity)
        return description, ()

    def _run(self, blobs: Blobs, plan: str, traces: Sequence[str]) -> tuple[Any, Blobs]:
        from fullpipe import _native

        self._prepare()
        flows = {
            name: _native.traffic.trace(*blobs[4 * index : 4 * index + 4])
            for index, name in enumerate(traces)
        }
        files = self._setup["files"]
        raw = _native.sim.run(
            plan, self._progress, files.get("pcap"), files.get("cc_trace"), flows, self._rows
        )
        health, interrupted = raw.pop("health"), raw.pop("interrupted")
        log = raw.pop("log", "")
        answer: list[bytes] = []
        value = {
            "tables": packed(raw, answer),
            "health": health,
            "interrupted": interrupted,
            "log": log,
        }
        return value, answer

    def _decode(self, blobs: Blobs) -> tuple[Any, Blobs]:
        from fullpipe import _native

        self._prepare()
        received = _native.stream.decode(blobs[0])
        answer: list[bytes] = [received.pop("trace")]
        received["tables"] = packed(received["tables"], answer)
        return received, answer

    def _replay(self, _blobs: Blobs, path: str) -> tuple[Any, Blobs]:
        from fullpipe import _native

        self._prepare()
        return _native.cc.replay(path), ()

    def _calls(self, _blobs: Blobs, path: str) -> tuple[Any, Blobs]:
        from fullpipe import _native

        self._prepare()
        return _native.cc.calls(path, self._rows), ()

    def _prepare(self) -> None:
        for identity, shared_object in self._setup["algorithms"].items():
            if shared_object is None or identity not in self._bases:
                self._load(identity)

    def _load(self, identity: str) -> dict[str, Any]:
        shared_object = self._setup["algorithms"][identity]
        if shared_object is None:
            from fullpipe.congestion.userfiles import classes

            return classes.describe(identity)
        from fullpipe import _native

        loaded = _native.cc.load(shared_object, identity)
        self._bases[identity] = loaded["base"]
        self._send({"bases": self._bases})
        return loaded

    def _progress(self, done_ns: int) -> bool:
        import select

        self._send({"progress": done_ns})
        if not select.select([self._commands], [], [], 0)[0]:
            return True
        self._read()
        return False

    def _rows(self, rows: dict[str, Any]) -> None:
        blobs: list[bytes] = []
        self._send({"rows": packed(rows, blobs)}, blobs)

    def _explained(self, error: BaseException) -> dict[str, Any]:
        """The kind of a failure (`user` or `run`) and its words."""
        from fullpipe.base.errors import UserError

        cause = error.__cause__
        if isinstance(error, RuntimeError) and cause is not None and hasattr(error, "algorithm"):
            from fullpipe.congestion.userfiles import classes

            return _failed(classes.explain(error.algorithm, cause), "user")
        if isinstance(error, OSError):
            if os.strerror(errno.EFBIG) in str(error):
                from fullpipe.congestion.userfiles import limits

                return _failed(limits.too_large(self._setup["file_bytes"]), "user")
            return _failed(f"cannot be written: {error}", "user")
        if isinstance(error, UserError | ValueError):
            return _failed(str(error), "user")
        return _failed(f"{type(error).__name__}: {error}", "run")

    def _send(self, content: dict[str, Any], blobs: Blobs = ()) -> None:
        for piece in message(content, blobs):
            view = memoryview(piece)
            while view:
                view = view[os.write(self._answers, view) :]

    def _read(self) -> tuple[dict[str, Any], list[bytes]]:
        length, _ = HEAD.unpack(self._exactly(HEAD.size))
        content = json.loads(self._exactly(length))
        return content, [self._exactly(size) for size in content["blobs"]]

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = os.read(self._commands, min(size, 1 << 20))
            if not piece:
                os._exit(0)
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _failed(words: str, kind: str) -> dict[str, Any]:
    """The frame of a failure. Words beyond its bound would be refused with it (frames.py)."""
    return {"error": words[:_MAX_WORDS], "kind": kind}


def _end_with(parent: int) -> None:
    """Has the kernel kill this process when its parent ends, whatever its code does with
    descriptors and signals: what it is confined to has neither prctl(2), which could undo this,
    nor fork(2), whose child would not inherit it."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(setup: dict[str, Any]) -> None:
    """Gives up all rights but those of `setup`, says what could not be given up, and works."""
    import faulthandler
    import signal

    sys.path[:] = setup["path"]
    from fullpipe import _native

    reports = setup["reports"]
    faulthandler.enable(reports)
    faulthandler.register(signal.SIGUSR1, reports, all_threads=False)
    _native.sandbox.report_faults(reports)
    _end_with(setup["parent"])
    missing = _native.sandbox.confine(
        read=setup["read"], memory_bytes=setup["memory_bytes"], file_bytes=setup["file_bytes"]
    )
    _native.sandbox.end_with(setup["commands"])
    worker = _Worker(setup)
    worker._send({"ready": missing})
    worker.work()


def received(descriptors: Sequence[int]) -> dict[str, Any]:
    """The set-up of a forked worker, with its descriptors as they are here. It takes its outputs,
    environment and process group."""
    content, printed, commands, answers, reports, *files = descriptors
    with os.fdopen(content, "rb") as text:
        setup: dict[str, Any] = json.load(text)
    for output in (1, 2):
        os.dup2(printed, output)
    os.close(printed)
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(setup.pop("environment"))
    setup |= {"commands": commands, "answers": answers, "reports": reports}
    setup["files"] = dict(zip(setup["files"], files, strict=True))
    sys.argv[1:] = [json.dumps(setup)]
    return setup


def forked_for_parent() -> int:
    """As fork(2), but the child is one of this process's parent; -1 where the kernel refuses."""
    import ctypes
    import platform
    import signal

    number = _SYS_CLONE.get(platform.machine())
    if number is None:
        return -1
    python = ctypes.pythonapi
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    flags = _CLONE_PARENT | signal.SIGCHLD
    python.PyOS_BeforeFork()
    pid: int = call(*map(ctypes.c_long, (number, flags, 0, 0, 0, 0)))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def grow(setup: dict[str, Any]) -> None:
    """The stem (stem.py): forks a worker for each message, until there are none."""
    import socket

    sys.path[:] = setup["path"]
    from fullpipe import _native  # noqa: F401  workers find it loaded
    from fullpipe.congestion.userfiles import classes  # noqa: F401

    _end_with(setup["parent"])
    asked = socket.socket(fileno=setup["stem"])
    while True:
        data, descriptors, _, _ = socket.recv_fds(asked, 1, _MOST_DESCRIPTORS)
        if not data:
            return
        pid = forked_for_parent()
        if pid == 0:
            asked.close()
            main(received(descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
        asked.sendall(pid.to_bytes(PID_BYTES, "little", signed=True))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if "stem" in given:
        grow(given)
    else:
        main(given)
