"""What the executor of a cluster asks of Ray, on a stand-in with Ray's rules for retries.

Ray repeats a task whose process died `max_retries` times (Ray's documentation, "Task Fault
Tolerance") and raises a RayError then. Tests on Ray itself: tests/cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fullpipe.base.errors import RunError, UserError
from fullpipe.sweep import cluster
from fullpipe.sweep.cluster import QEMU, Cluster
from fullpipe.sweep.schedule import Failure, Group, Item, LostError
from fullpipe.sweep.worker import Cells

CELLS = Cells(Path("store"), "sim", {}, False)


class RayError(Exception):
    """Ray's own: a worker or a node died."""


class RayTaskError(RayError):
    """The task raised."""

    def as_instanceof_cause(self) -> Exception:
        return RunError("the task raised")


class MadeRay:
    """Two cores. `deaths`: how often the process of a task dies, by the task's payload."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self) -> None:
        self.deaths: dict[str, int] = {}
        self.raising: set[str] = set()
        self.resources: dict[str, float] = {"CPU": 2.0}
        self.waiting: list[int] = []
        self.is_idle = False
        self.task: dict[str, Any] = {}

    def init(self, *_: Any, resources: dict[str, float] | None = None, **__: Any) -> None:
        self.resources |= resources or {}

    def shutdown(self) -> None:
        """Nothing runs."""

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def remote(self, **options: Any) -> Any:
        self.task = options
        return lambda _: SimpleNamespace(remote=lambda _, runs: (runs[0],))

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> Any:
        assert num_returns == 1 and timeout > 0
        self.waiting.append(len(references))
        if self.is_idle:
            self.is_idle = False
            return [], references
        return references[:1], references[1:]

    def get(self, reference: Any) -> Any:
        (payload,) = reference
        if payload in self.raising:
            raise RayTaskError(payload)
        if self.deaths.get(payload, 0) > self.task["max_retries"]:
            raise RayError(f"the worker of {payload} died\nof a signal")
        return SimpleNamespace(archive=payload, failures=[])


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> MadeRay:
    made = MadeRay()
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.setattr(cluster, "accept", lambda _, delivery: [Failure(0, delivery.archive)])
    return made


def outcomes(on: Cluster, *payloads: str) -> list[Any]:
    groups = iter([Group([Item(payload, 1.0)]) for payload in payloads])
    return [(group.items[0].payload, outcome) for group, outcome in on.run(CELLS, groups)]


def test_a_task_is_repeated_until_its_process_died_a_sixth_time(ray: MadeRay) -> None:
    ray.deaths = {"a": 5, "b": 6}
    (_, first), (_, second) = outcomes(Cluster(None, 2, "sim"), "a", "b")
    assert first == [Failure(0, "a")]
    assert isinstance(second, LostError) and str(second) == "the worker of b died"


def test_what_a_task_raises_is_raised_here(ray: MadeRay) -> None:
    """A fault of the program is no lost process: it would be repeated for ever."""
    ray.raising = {"a"}
    with pytest.raises(RunError, match="the task raised"):
        outcomes(Cluster(None, 2, "sim"), "a")


def test_two_groups_a_core_are_queued_and_the_queue_is_filled_again(ray: MadeRay) -> None:
    done = outcomes(Cluster(None, 2, "sim"), *"abcdef")
    assert [payload for payload, _ in done] == list("abcdef")
    assert ray.waiting == [4, 4, 4, 3, 2, 1]


def test_while_nothing_ends_the_caller_gets_a_turn(ray: MadeRay) -> None:
    ray.is_idle = True
    assert [outcome is None for _, outcome in outcomes(Cluster(None, 2, "sim"), "a")] == [
        True,
        False,
    ]


def test_virtual_machines_run_only_where_qemu_is_offered(
    ray: MadeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "check_reachable", lambda _: None)
    Cluster(None, 3, "vm")
    assert (ray.task["resources"], ray.resources[QEMU]) == ({QEMU: 1}, 3.0)
    ray.resources = {"CPU": 2.0}
    Cluster("10.0.0.1:6379", None, "sim")
    assert ray.task["resources"] == {}
    with pytest.raises(UserError, match="no node offers 'qemu'"):
        Cluster("10.0.0.1:6379", None, "vm")
