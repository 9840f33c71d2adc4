"""Which tests may run beside one another (pytest -n), how cases are drawn, and what tests cost,
skipped and tried again."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

import forks
from fullpipe.engines.vm import retries
from program_marks import ProgramMarks

#: Cases are the same in every run, so that a red run is a fault of the change; `make swarm` draws
#: new ones. A slow machine changes nothing.
settings.register_profile(
    "fullpipe", derandomize="FULLPIPE_DRAW_FREELY" not in os.environ, database=None, deadline=None,
    print_blob=True, suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("fullpipe")

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


@pytest.fixture(scope="session", autouse=True)
def forked_runs() -> Iterator[None]:
    """Processes that do several runs are forks of a server that has loaded the program. fullpipe
    forks itself, but not where there are threads, as in pytest: there each process would load the
    libraries again, for a CPU second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fullpipe.engines.workers._context", lambda *_: forks.server())
        yield


@pytest.fixture
def without_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what a command prints: its page, which others read, takes seconds to draw."""
    monkeypatch.setattr("fullpipe.report.page.write_report", lambda _runs, file, **_: file)


#: How many of the tests that took most processor time are listed.
_MOST_LISTED = 20
_CPU = "cpu_s"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` ends with this file, whose lines the terminal's summary has too."""
    parser.addoption(
        "--summary-file",
        type=Path,
        help="write which tests took most processor time, which were skipped and why, and how many "
        "machines were booted again; FILE.csv gets the CPU seconds of each test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the check of marks. Ctrl-C interrupts: a parent that ignores SIGINT would pass that
    on to the programs that tests interrupt."""
    folder = Path(tempfile.mkdtemp(prefix="fullpipe-marks-"))
    config.add_cleanup(lambda: shutil.rmtree(folder))
    config.pluginmanager.register(ProgramMarks(folder))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin."""
    place = {name: index for index, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def _running_below(pid: int) -> Iterator[int]:
    """The processes that a process has started and that still run, and theirs. psutil would read
    every process of the host for them, twice a test."""
    with contextlib.suppress(OSError):  # it has ended, and its parent has its time
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _running_below(int(child))


def _cpu_s() -> float:
    """CPU seconds of this process and its children, user and system, those that still run
    included."""
    total = sum(os.times()[:4])
    for child in _running_below(os.getpid()):
        with contextlib.suppress(psutil.Error):
            total += sum(psutil.Process(child).cpu_times()[:4])
    return total


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measures a test together with the fixtures that it is the first to use."""
    item.stash[_BEGAN] = _cpu_s()
    return (yield)


_BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Sends the CPU seconds from the worker with the last report of a test."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_CPU, round(_cpu_s() - item.stash[_BEGAN], 2)))
    return report


def pytest_sessionstart(session: pytest.Session) -> None:
    """Counts machines that are booted again from now on."""
    session.config.stash[_RETRIES] = retries.count()


_RETRIES = pytest.StashKey[int]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What took most processor time, what was skipped and why, what was tried again: of the runs of
    `make test`, and of others that ask for it."""
    file = config.getoption("--summary-file")
    if file is None:
        return
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    costs = {
        report.nodeid: dict(report.user_properties).get(_CPU, 0.0)
        for report in reports
        if getattr(report, "when", None) == "teardown"
    }
    dearest = sorted(costs.items(), key=lambda cost: -cost[1])
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    lines = [f"CPU seconds of {len(costs)} tests: {sum(costs.values()):.0f}, the dearest of them:"]
    lines += [f"{cpu_s:8.1f}  {name}" for name, cpu_s in dearest[:_MOST_LISTED]]
    lines.append(f"machines booted again: {retries.count() - config.stash[_RETRIES]}")
    lines.append(f"skipped tests: {skipped.total()}")
    lines += [f"{count:5} {reason}" for reason, count in skipped.most_common()]
    for line in lines:
        terminalreporter.write_line(line)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [f"{cpu_s},{name}" for name, cpu_s in dearest]
    file.with_suffix(".csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


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
