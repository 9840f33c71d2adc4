"""A few words with QEMU over its monitor (docs/interop/qmp-spec of QEMU): a question, an answer."""

from __future__ import annotations

import json
import socket
from typing import Any

from fullpipe.base.errors import RunError

_PATIENCE_S = 120.0


class Monitor:
    """This end of the monitor of one QEMU, which inherits the other."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(_PATIENCE_S)
        self._answers = self._ours.makefile("rb")

    def arguments(self) -> list[str]:
        """Of QEMU's command; the process must inherit `theirs`."""
        chardev = f"socket,id=monitor,fd={self.theirs.fileno()}"
        return ["-chardev", chardev, "-mon", "chardev=monitor,mode=control"]

    def greet(self) -> str:
        """Once QEMU has been started, before anything else; returns QEMU's version, which it says
        first. Raises RunError where it is gone."""
        self.theirs.close()
        try:
            version = json.loads(self._answers.readline())["QMP"]["version"]["qemu"]
            words = ".".join(str(version[part]) for part in ("major", "minor", "micro"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"QEMU: no greeting ({error})") from None
        self.ask("qmp_capabilities")
        return words

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to a command. Raises RunError where QEMU refuses, or is gone."""
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
        """QEMU goes on."""
        self._answers.close()
        self._ours.close()
        self.theirs.close()
