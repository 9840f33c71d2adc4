"""A congestion control beside its baseline: an earlier scorecard, another congestion control, or
its own file at a commit. Runs what the store lacks of both. Must never judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import choose, is_external_name
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.card_file import read_card
from fullpipe.scorecard.changes import Comparison, check_seeds, compare, count_tests
from fullpipe.scorecard.git_files import check_out, commit_of, exists_at
from fullpipe.scorecard.items import Item
from fullpipe.sweep.schedule import Progress
from fullpipe.sweep.store import Store


@dataclass(frozen=True)
class Settings:
    """How both are run: as `run_card` has them."""

    against: Sequence[str] = ()
    quick: bool = False
    engine: str = "sim"
    seeds: int | None = None
    overrides: Sequence[str] = ()
    jobs: int | None = None
    on_progress: Callable[[Progress], None] = field(default=lambda _progress: None)
    until_settled: bool = False


@dataclass(frozen=True)
class Baseline:
    """What is compared with: a scorecard's document, or a congestion control by name with what it
    is called."""

    card: dict[str, Any] | None = None
    name: str = ""
    label: str = ""


def run_alone(
    subject: str, items: Sequence[Item], store: Store, settings: Settings
) -> dict[str, Any]:
    """The scorecard of `subject`. Raises UserError for bad input."""
    return _run(subject, settings.against, items, store, settings, {})


def run_against(
    subject: str, baseline: str, items: Sequence[Item], store: Store, settings: Settings
) -> tuple[dict[str, Any], Comparison]:
    """The scorecard of `subject`, and what changed since `baseline`, which `read_baseline`
    describes. Raises UserError for bad input, also for too few seeds."""
    with read_baseline(subject, baseline) as previous:
        tests = count_tests(items)
        if previous.card is not None:
            card = _run(subject, settings.against, items, store, settings, {})
            check_seeds(tests, _seeds(previous.card), _seeds(card))
            return card, compare(previous.card, card)
        _check_given_seeds(items, tests, settings)
        beside = [previous.name, *settings.against]
        card = _run(subject, beside, items, store, settings, {previous.name: previous.label})
        return card, compare(card, card, previous.label)


@contextmanager
def read_baseline(subject: str, text: str) -> Iterator[Baseline]:
    """What `--baseline TEXT` means: a folder that `--out` wrote, a congestion control, or a commit
    of the repository that the subject's file lies in, whose file it is then.

    Raises UserError if it is none of these."""
    path = Path(text)
    if path.is_dir():
        yield Baseline(card=read_card(path))
    elif _is_cc(text):
        yield Baseline(name=text, label=_label(subject, text))
    else:
        with TemporaryDirectory(prefix="fullpipe-baseline-") as folder:
            yield _at_commit(subject, text, Path(folder))


def is_new(subject: str, baseline: str) -> bool:
    """Whether `baseline` is a commit that does not hold the subject's file. Raises UserError if it
    is nothing that can be compared with."""
    file = file_of(subject)
    if file is None or Path(baseline).is_dir() or _is_cc(baseline):
        return False
    return not exists_at(file, commit_of(file, baseline))


def file_of(subject: str) -> Path | None:
    """The file of a congestion control's name; None if it is not one of a file."""
    text = _file_text(subject)
    return None if text is None else Path(text)


def _file_text(subject: str) -> str | None:
    """The part of a name that is the file: `mine.py` of `mine.py:Mine[gain=2]`."""
    written = subject.partition("[")[0]
    if not is_external_name(written):
        return None
    head, separator, _ = written.rpartition(".py:")
    return f"{head}.py" if separator else written


def _run(
    subject: str,
    against: Sequence[str],
    items: Sequence[Item],
    store: Store,
    settings: Settings,
    labels: dict[str, str],
) -> dict[str, Any]:
    return run_card(
        subject,
        against,
        items,
        store,
        quick=settings.quick,
        engine=settings.engine,
        jobs=settings.jobs,
        on_progress=settings.on_progress,
        seeds=settings.seeds,
        overrides=settings.overrides,
        labels=labels,
        until_settled=settings.until_settled,
    )


def _is_cc(text: str) -> bool:
    if is_external_name(text):
        file = file_of(text)
        return file is None or file.exists()
    try:
        choose(text, {})
    except UserError:
        return "[" in text  # a wrong constant is told where it is run
    return True


def _label(subject: str, name: str) -> str:
    label = choose(name, {}).name
    return name if label == choose(subject, {}).name else label


def _at_commit(subject: str, revision: str, folder: Path) -> Baseline:
    file = file_of(subject)
    if file is None or not file.is_file():
        raise UserError(
            f"--baseline {revision}: is no folder of an earlier --out and no congestion control; a "
            "commit needs a subject that is a file"
        )
    commit = commit_of(file, revision)
    copy = check_out(file, commit, folder)
    suffix = subject[len(_file_text(subject) or "") :]
    name = f"{copy}{suffix}"
    return Baseline(name=name, label=f"{choose(name, {}).name}@{commit[:10]}")


def _seeds(card: dict[str, Any]) -> int:
    """The most seeds that a measure of a scorecard has."""
    return max(
        (
            len(values)
            for item in card["items"]
            for measure in item["measures"]
            for subject in measure["subjects"].values()
            for values in subject["values"][:1]
        ),
        default=0,
    )


def _check_given_seeds(items: Sequence[Item], tests: int, settings: Settings) -> None:
    """Before anything runs."""
    counts = [
        item.runs("cubic", settings.quick, settings.engine, settings.seeds).seeds.least
        for item in items
        if not item.needs
    ]
    if counts:
        check_seeds(tests, max(counts), max(counts))
