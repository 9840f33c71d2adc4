"""Makes helpers.py importable, and says which tests may run beside one another (pytest -n)."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

#: Files whose tests load congestion controls into this host's kernel, or watch it: one at a time.
_HOST = {
    "test_doctor", "test_examples", "test_kernel_load", "test_kernel_watch", "test_live",
    "test_live_paths", "test_replay_host",
}  # fmt: skip
#: Files that read the whole catalogue, which is read once for all of them.
_CATALOGUE = {"test_experiments_catalogue", "test_experiments_figures", "test_experiments_run"}
#: Files that take longest. They begin, so that no worker is left alone with one at the end
#: (with --no-loadscope-reorder: xdist would begin with the files of most tests).
_LONGEST = (
    "test_vm", "test_sim_kernels", "test_replay_host", "test_replay_kernels", "test_models_bbr3",
    "test_flent_real", "test_sim_theory", "test_models_fluid", "test_flent_hostile",
    "test_report_interruption", "test_report_pages",
)  # fmt: skip


def pytest_configure() -> None:
    """Ctrl-C interrupts, also where whoever started the tests has it ignored, which programs that
    tests interrupt would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin."""
    place = {name: index for index, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file stay together, since they share what they made: runs, wheels, machines. (With
    pytest 9.2 xdist 3.8 no longer sees its own marks of groups: it sends each test anywhere.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = Path(nodeid.split("::")[0]).stem
            if name in _HOST:
                return "host"
            return "catalogue" if name in _CATALOGUE else name

    return ByFile(config, log)
