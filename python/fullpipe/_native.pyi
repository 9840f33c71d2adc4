"""Types of the compiled module (crates/fullpipe-py)."""

from collections.abc import Callable
from typing import Any

__version__: str

class _Cc:
    def algorithms(self) -> list[dict[str, Any]]: ...
    def sets(self) -> list[dict[str, Any]]: ...
    def load(self, path: str, name: str) -> dict[str, Any]: ...
    def replay(self, path: str) -> dict[str, Any]: ...

class _Sim:
    def run(
        self,
        plan_json: str,
        progress: Callable[[int], bool] | None = None,
        pcap: str | None = None,
    ) -> dict[str, Any]: ...
    def components(self) -> dict[str, str]: ...

class _Stream:
    def decode(self, data: bytes) -> dict[str, Any]: ...
    def follow(self, data: bytes, offset: int) -> tuple[int | None, int]: ...

class _Wifi:
    def saturation(
        self, wifi_json: str, seed: int, from_ns: int, to_ns: int
    ) -> list[dict[str, Any]]: ...

cc: _Cc
sim: _Sim
stream: _Stream
model: Any
wifi: _Wifi
