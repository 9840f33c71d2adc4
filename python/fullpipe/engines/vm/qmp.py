"""A client of QEMU's machine protocol (docs/interop/qmp-spec of QEMU)."""

from __future__ import annotations

import json
import socket
from typing import Any

from fullpipe.base.errors import RunError

_PATIENCE_S = 120.0


class Monitor:
    """The client's end of a socket pair; QEMU inherits the other end."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(_PATIENCE_S)
        self._answers = self._ours.makefile("rb")

    def arguments(self) -> list[str]:
        """Arguments of QEMU's command; the process must inherit `theirs`."""
        chardev = f"socket,id=monitor,fd={self.theirs.fileno()}"
        return ["-chardev", chardev, "-mon", "chardev=monitor,mode=control"]

    def greet(self) -> str:
        """Reads the greeting and returns QEMU's version. Must be the first call after QEMU starts.
        Raises RunError if QEMU has exited."""
        self.theirs.close()
        try:
            version = json.loads(self._answers.readline())["QMP"]["version"]["qemu"]
            words = ".".join(str(version[part]) for part in ("major", "minor", "micro"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"QEMU: no greeting ({error})") from None
        self.ask("qmp_capabilities")
        return words

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to a command. Raises RunError if QEMU returns an error or has exited."""
        line = json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n"
        try:
            self._ours.sendall(line)
            while True:
                answer = json.loads(self._answers.readline())
                if "error" in answer:
                    raise RunError(f"QEMU: {command}: {answer['error'].get('desc')}")
                if "return" in answer:
                    return answer["return"]
        except (OSError, ValueError) as error:
            raise RunError(f"QEMU: {command}: no answer ({error})") from None

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_problem: object) -> None:
        """Closes the socket; QEMU keeps running."""
        self._answers.close()
        self._ours.close()
        self.theirs.close()
