"""Makes helpers.py importable, and says which tests may run beside one another (pytest -n)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

#: Files whose tests load congestion controls into this host's kernel, or watch it: one at a time.
_HOST = {
    "test_doctor", "test_examples", "test_kernel_load", "test_kernel_watch", "test_live",
    "test_replay_host",
}  # fmt: skip
#: Files that take longest. They begin, so that no worker is left alone with one at the end
#: (with --no-loadscope-reorder: xdist would begin with the files of most tests).
_LONGEST = (
    "test_vm", "test_replay_host", "test_sim_theory", "test_models_bbr3", "test_replay_kernels",
    "test_sim_kernels", "test_flent_real", "test_flent_hostile",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file stay together, since they share what they made: runs, wheels, machines."""
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("host" if name in _HOST else name))
    place = {name: index for index, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))
