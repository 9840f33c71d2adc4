"""Types of the compiled module (crates/fullpipe-py)."""

from collections.abc import Callable
from typing import Any

class _Cc:
    def algorithms(self) -> list[dict[str, Any]]: ...
    def sets(self) -> list[dict[str, Any]]: ...

class _Sim:
    def run(
        self,
        plan_json: str,
        progress: Callable[[int], bool] | None = None,
        pcap: str | None = None,
    ) -> dict[str, Any]: ...

cc: _Cc
sim: _Sim
model: Any
