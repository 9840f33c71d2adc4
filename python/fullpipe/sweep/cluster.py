"""The executor of a cluster: Ray, on this machine alone or on one that runs elsewhere.

Only `--on ray` imports this; Ray is an extra (`fullpipe[cluster]`). Tasks are groups of up to four
seconds of work; each result is sent back as it ends, so no node needs the store.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.sweep.schedule import Failure, Group, LostError, Work
from fullpipe.sweep.shipping import Delivery, accept, execute
from fullpipe.sweep.worker import Cells

#: Groups queued at the cluster for each core, so that none idles.
_AHEAD = 2
#: How often Ray repeats a task whose process or node died.
_RETRIES = 5
_TICK_S = 0.5
#: Time for a cluster's head to take a connection.
_CONNECT_S = 10.0
#: Between two tasks a node waits for four processes of Ray and packs its result: 5 ms, or 0.2 s on
#: a busy machine.
_GROUP_S = 4.0
#: The resource of nodes that run virtual machines: `ray start --resources '{"qemu": 4}'`.
QEMU = "qemu"


class Cluster:
    """A Ray cluster. `address`: None for one that this program starts and stops, else `HOST:PORT`
    of a head or `ray://HOST:PORT` of its client server."""

    group_s = _GROUP_S

    def __init__(self, address: str | None, jobs: int | None, engine: str) -> None:
        """Raises UserError where Ray is missing or the cluster cannot be reached."""
        # No usage statistics; and workers with the priority of the pool's, which Ray would start
        # at nice 15.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise UserError(
                "--on ray: Ray is not installed; pip install 'fullpipe[cluster]'"
            ) from None
        self._ray: Any = ray
        if address is not None:
            check_reachable(address)
        common = {"logging_level": "ERROR", "log_to_driver": False}
        try:
            if address is None:
                resources = {QEMU: float(jobs or os.cpu_count() or 1)}
                ray.init(num_cpus=jobs, include_dashboard=False, resources=resources, **common)
            else:
                ray.init(address, runtime_env=_environment(), **common)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"--on ray{'' if address is None else f' {address}'}: {reason}. From 2.60 on a "
                "cluster asks for a token: RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or "
                "RAY_AUTH_TOKEN_PATH) as on its head"
            ) from None
        self.width = max(1, int(ray.cluster_resources().get("CPU", 1)))
        needs = {QEMU: 1} if engine == "vm" else {}
        if needs and not ray.cluster_resources().get(QEMU):
            ray.shutdown()
            raise UserError(
                f"--on ray {address}: no node offers {QEMU!r}; start nodes that have QEMU with "
                f"--resources '{{\"{QEMU}\": CORES}}'"
            )
        self._task = ray.remote(num_cpus=1, resources=needs, max_retries=_RETRIES)(execute)

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`. `work` must be the cells of a sweep."""
        assert isinstance(work, Cells)
        pending: dict[Any, Group] = {}
        while True:
            while len(pending) < _AHEAD * self.width and (group := next(groups, None)) is not None:
                runs = [item.payload for item in group.items]
                pending[self._task.remote(work, runs)] = group
            if not pending:
                return
            ended, _ = self._ray.wait(list(pending), num_returns=1, timeout=_TICK_S)
            for reference in ended:
                group = pending.pop(reference)
                yield group, self._outcome(work, reference)
            if not ended:
                yield next(iter(pending.values())), None

    def close(self) -> None:
        """Leaves the cluster; stops one that this program started."""
        self._ray.shutdown()

    def _outcome(self, work: Cells, reference: Any) -> list[Failure] | LostError:
        try:
            delivery: Delivery = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError as error:
            return LostError(str(error).splitlines()[0])
        return accept(work, delivery)


def check_reachable(address: str) -> None:
    """Raises UserError where nothing answers at an address: Ray itself would ask for ever."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S):
            pass
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"--on {address}: no cluster answers there: {reason}; `ray start --head` prints the "
            "address of one"
        ) from None


def address_of(text: str) -> str | None:
    """The address that `--on` names: None for `ray`; else `ray://HOST:PORT`, `HOST:PORT`, or what a
    file contains (a batch job writes it). Raises UserError for anything else."""
    if text == "ray":
        return None
    path = Path(text)
    if path.is_file():
        try:
            text = read_regular(path, 1 << 20).decode().strip()
        except (OSError, UnicodeDecodeError):
            raise UserError(f"--on {path}: cannot be read as an address") from None
    host, _, port = text.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or len(text) > 300:
        raise UserError(
            f"--on {text[:60]}: write ray (this machine), ray://HOST:PORT, HOST:PORT, or a file "
            "that holds one"
        )
    return text


def _environment() -> dict[str, Any]:
    """How nodes get this program: its package folder, assets included."""
    package = Path(__file__).resolve().parents[1]
    return {
        "py_modules": [str(package)],
        "env_vars": {"PYTHONHASHSEED": "0", "FULLPIPE_SHIPPED": sys.version.split()[0]},
    }
