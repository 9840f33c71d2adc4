"""`fullpipe compare --kernel A,B`: one row of results for each kernel; repetitions that are equal
say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.cli.compare import On, Runs
from fullpipe.cli.output import equal_runs

SHORT = "duration = '1s'\npath = {rate = '5mbit', rtt = '20ms'}\nflow = [{cc = 'reno'}]\n"


def test_each_kernel_has_its_label_and_its_option() -> None:
    on = On(engine="vm", kernel="6.1, 6.12,7.3")
    assert on.options(Runs()) == {
        " on 6.1": {"kernel": "6.1"}, " on 6.12": {"kernel": "6.12"}, " on 7.3": {"kernel": "7.3"},
    }  # fmt: skip
    assert On(engine="vm", kernel="6.1").options(Runs()) == {"": {"kernel": "6.1"}}
    assert On().options(Runs()) == {"": {}}
    own = On(engine="vm", module=Path("mine.ko"))
    assert own.options(Runs()) == {"": {"module": "mine.ko"}}


@pytest.mark.parametrize(
    ("on", "wanted", "said"),
    [
        (On(engine="vm", kernel="6.1,6.1"), Runs(), "name each kernel once"),
        (On(engine="vm", kernel="6.1,"), Runs(), "name each kernel once"),
        (On(engine="sim", kernel="6.1,6.12"), Runs(), "belongs to --engine vm"),
        (On(engine="vm", kernel="6.1,6.12", module=Path("a.ko")), Runs(), "with one --kernel"),
        (On(engine="vm", kernel="6.1,6.12"), Runs(together=True), "one kernel with --together"),
        (On(engine="vm", kernel="6.1,6.12"), Runs(harm_to="reno"), "one kernel with --together"),
    ],
)
def test_what_cannot_be_compared_is_refused(on: On, wanted: Runs, said: str) -> None:
    with pytest.raises(UserError, match=said):
        on.options(wanted)


def test_equal_repetitions_say_so_and_how_to_make_them_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SHORT)
    words = ["run", "short.toml", "--no-report", "--set", "start_spread=0s", "--repeat", "3"]
    answer = CliRunner().invoke(app, [*words, "--out", "same"])
    assert "all runs are equal, since nothing in them is random" in answer.stdout
    answer = CliRunner().invoke(app, [*words, "--set", "rtt_spread=1pkt", "--out", "other"])
    assert "nothing in them is random" not in answer.stdout
    assert equal_runs([]) == ""
