"""Which tests may run beside one another (pytest -n), and what was skipped and why."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

#: Files whose tests load congestion controls into this host's kernel, or watch it: on one worker.
_HOST = {
    "test_doctor", "test_examples", "test_kernel_load", "test_kernel_watch", "test_live",
    "test_live_paths", "test_replay_host",
}  # fmt: skip
#: Files that read the whole catalogue: on one worker, which reads it once.
_CATALOGUE = {"test_experiments_catalogue", "test_experiments_figures", "test_experiments_run"}
#: The slowest files begin, so that none runs alone at the end. xdist would begin with the files
#: that have most tests; --no-loadscope-reorder keeps this order.
_LONGEST = (
    "test_vm", "test_sim_kernels", "test_replay_host", "test_replay_kernels", "test_models_bbr3",
    "test_flent_real", "test_sim_theory", "test_models_fluid", "test_flent_hostile",
    "test_report_interruption", "test_report_pages",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` repeats at its end what was skipped, from this file."""
    parser.addoption("--skipped-file", type=Path, help="write how many tests were skipped, and why")


def pytest_configure() -> None:
    """Ctrl-C interrupts. A parent that ignores SIGINT would pass that on to the programs that tests
    interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin."""
    place = {name: index for index, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """How many tests were skipped for each reason."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    lines = [f"skipped tests: {reasons.total()}"]
    lines += [f"{count:5} {reason}" for reason, count in reasons.most_common()]
    for line in lines:
        terminalreporter.write_line(line)
    if file := config.getoption("--skipped-file"):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file run on one worker, since they share fixtures: runs, wheels, machines. (xdist
    3.8 ignores its own group marks under pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = Path(nodeid.split("::")[0]).stem
            if name in _HOST:
                return "host"
            return "catalogue" if name in _CATALOGUE else name

    return ByFile(config, log)
