"""What commands say: options that have no effect are refused, and results are described as they
are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.recording import checksums
from fullpipe.sweep.store import FORMAT, Store
from sweep_files import filled, sweep

SCENARIO = """
duration = "1s"
[path]
rate = "10mbit"
rtt = "20ms"
[[flow]]
cc = "cubic"
"""
SWEEP = """
[scenario]
duration = "1s"
path = { rate = "{rate}", rtt = "20ms" }
[[scenario.flow]]
cc = "reno"
[axis]
rate = ["1mbit"]
"""

pytestmark = pytest.mark.usefixtures("without_page")


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = Path("ok.toml")
    file.write_text(SCENARIO)
    return file


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refusal(*words: object) -> str:
    """What the command is refused with."""
    answer = call(*words)
    assert isinstance(answer.exception, UserError), answer.output
    return str(answer.exception)


@pytest.mark.parametrize(
    ("option", "value"),
    [("rate", "5mbit"), ("rtt", "9ms"), ("buffer", "2bdp"), ("qdisc", "codel"), ("loss", "1%")],
)
def test_a_path_from_a_file_excludes_the_options_that_describe_one(
    option: str, value: str, scenario: Path
) -> None:
    said = refusal("compare", "reno", "--path", scenario, f"--{option}", value, "--out", "x")
    way = f"--set path.{option}={value}"
    assert said == f"--{option}: the path comes from --path; change it with {way}"
    short = ("--duration", "1s", "--warmup", "0s", "--repeat", 1, "--json")
    done = call("compare", "reno", "--path", scenario, *way.split(), "--out", "x", *short)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["path"][option] == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "is_tested"),
    [
        (("reno", "cubic"), True),
        (("reno",), False),
        (("reno", "--harm-to", "cubic"), False),
        (("reno", "cubic", "--together"), False),
    ],
)
def test_p_is_explained_where_the_table_has_it(
    words: tuple[str, ...], is_tested: bool, scenario: Path
) -> None:
    short = ("--duration", "2s", "--warmup", "0s", "--repeat", 3, "--loss", "1%", "--light")
    said = call("compare", *words, *short, "--out", "x").stdout
    table, _, notes = said.partition("3 runs of each")
    assert ("probability of such a difference" in " ".join(notes.split())) is is_tested
    heading = next(line for line in table.splitlines() if "interval" in line)
    assert heading.endswith(" p") is is_tested


@pytest.mark.parametrize("seed", ["-1", str(2**63)])
def test_the_seed_of_a_cell_is_one_that_scenarios_take(seed: str, scenario: Path) -> None:
    Path("s.toml").write_text(SWEEP)
    answer = call("sweep", "cell", "s.toml", 0, "--seed", seed)
    assert answer.exit_code == 2 and "--seed" in answer.stderr and not answer.stdout


@pytest.mark.parametrize("words", [("s.toml", "--out", "ok.toml"), ("merge", "ok.toml", "store")])
def test_a_file_is_no_place_for_a_store(words: tuple[str, ...], scenario: Path) -> None:
    Path("s.toml").write_text(SWEEP)
    filled(Path("store"), sweep())
    assert refusal("sweep", *words) == "ok.toml: is a file; name a folder"
    assert scenario.read_text() == SCENARIO


def test_only_a_store_that_holds_something_is_said_to_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    stored, _ = filled(tmp_path / "store", sweep())
    with monkeypatch.context() as patched:
        patched.setattr(Store, "write_text", full)
        with pytest.raises(UserError, match=r"No space left on device$"):
            Store(tmp_path / "new", create=True)
        with pytest.raises(UserError, match="what is stored is complete, and the same command"):
            stored.write_fact("predictions", "k", 1)
    with pytest.raises(UserError, match=r"/proc/s: cannot be written: No such file or directory$"):
        Store(Path("/proc/s"), create=True)


@pytest.mark.parametrize("damage", ["", "{", '{"format": 2, "sha256": "0"}', "[1]", '{"a": 1}'])
def test_the_line_that_repairs_a_stores_description_is_said_alone(
    damage: str, tmp_path: Path
) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    runs = store.table("runs").num_rows
    about = store.folder / "store.json"
    about.write_text(damage)
    with pytest.raises(UserError) as refused:
        Store(store.folder)
    found = re.fullmatch(
        rf"{re.escape(str(about))}: damaged \(.*\)\. To repair it, write exactly this line into "
        r"it: (\{[^{}]*\})",
        str(refused.value),
    )
    assert found and json.loads(found[1])["format"] == FORMAT
    about.write_text(found[1] + "\n")
    assert Store(store.folder).table("runs").num_rows == runs
    assert checksums.unsealed(about, about.read_text())["format"] == FORMAT


def test_a_congestion_control_that_the_command_line_names_is_refused_there(scenario: Path) -> None:
    assert refusal("run", scenario, "--cc", "nope").startswith(
        "--cc: unknown congestion control 'nope'"
    )
    assert refusal("run", scenario, "--cc", "") == "--cc: '': must not be empty"
    assert refusal("run", scenario, "--set", "flow.0.cc=nope").startswith("ok.toml: flow.0.cc: ")


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ("flow=3", "flow: 3: must be a list"),
        ('flow.0.name=""', "flow.0.name: '': must not be empty"),
        (
            'flow.0.name="a b"',
            "flow.0.name: 'a b': may have letters, digits and . _ + : - only",
        ),
        ("flow.0.count=1.5", "flow.0.count: 1.5: must be a whole number"),
        ("path.mtu=1", "path.mtu: 1: must be at least 576"),
        ("flow.0.cc=3", "flow.0.cc: 3: must be text, in quotes"),
    ],
)
def test_what_would_be_right_is_said_in_plain_words(
    change: str, right: str, scenario: Path
) -> None:
    assert refusal("run", scenario, "--set", change) == f"ok.toml: {right}"
    said = refusal("run", scenario, "--set", "path.qdisc=wred")
    assert said.startswith("ok.toml: path.qdisc: 'wred': must be 'fifo', 'fq', ")


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        ("--engine", "foo", "'foo' is not one of 'sim', 'vm', 'live'"),
        ("--repeat", "0", "'0': must be at least 1"),
        ("--repeat", "x", "'x': must be a whole number"),
    ],
)
def test_what_would_be_right_for_an_option_is_said_in_plain_words(
    option: str, value: str, right: str, scenario: Path
) -> None:
    answer = call("run", scenario, option, value)
    assert answer.exit_code == 2
    assert f"Error: Invalid value for '{option}': {right}" in answer.stderr


@pytest.mark.parametrize("words", [("run", "ok.toml"), ("report", "r"), ("compare", "reno")])
@pytest.mark.parametrize(
    "look", [("--width", "3in"), ("--style", "style.toml"), ("--label", "a=b")]
)
def test_the_look_of_figures_is_refused_where_none_are_drawn(
    words: tuple[str, ...], look: tuple[str, ...], scenario: Path
) -> None:
    said = refusal(*words, *look, "--out", "x")
    assert said == f"{look[0]}: is for figures; add --figures DIR"
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("style", "problem"),
    [
        ('width = "3"', "width: '3': is no length from 1in to 40in, such as 3.3in or 84mm"),
        ('width = "2mm"', "width: '2mm': is no length from 1in to 40in, such as 3.3in or 84mm"),
        ("font_size = 2", "font_size: 2: must be at least 4"),
        ('legend = "left"', "legend: 'left': must be 'auto', 'right', 'below' or 'none'"),
        ("fontsize = 8", "fontsize: unknown"),
        ("title = ", "not TOML: "),
    ],
)
def test_a_style_file_is_refused_with_its_key(style: str, problem: str, scenario: Path) -> None:
    Path("style.toml").write_text(style)
    said = refusal("run", scenario, "--figures", "f", "--style", "style.toml", "--out", "x")
    assert said.startswith(f"style.toml: {problem}")
    assert not Path("x").exists()


def test_a_style_file_that_is_not_there_is_refused(scenario: Path) -> None:
    said = refusal("run", scenario, "--figures", "f", "--style", "none.toml", "--out", "x")
    assert said.startswith("none.toml: cannot be read: ")


@pytest.mark.parametrize("option", ["--font-size", "--no-title", "--log-x", "--log-y", "--legend"])
def test_a_former_option_of_figures_is_refused_with_the_key_that_has_its_place(
    option: str, scenario: Path
) -> None:
    key = {"--no-title": "title = false"}.get(option, option[2:].replace("-", "_"))
    answer = call("run", scenario, "--figures", "f", option)
    assert answer.exit_code == 2
    assert f"No such option: {option}: write {key} into a file for --style" in answer.stderr


def test_the_list_of_tests_is_json_where_json_is_wanted() -> None:
    listed = {
        one["test"]: one["about"] for one in json.loads(call("test", "list", "--json").stdout)
    }
    assert "rrul" in listed and all(listed.values())


def test_the_page_of_scenarios_is_not_given_for_that_of_sweeps() -> None:
    assert "--markdown: is for scenario files" in refusal("schema", "--markdown", "--sweep")


def test_an_answer_without_rows_says_so(tmp_path: Path) -> None:
    filled(tmp_path / "store", sweep())
    answer = call("query", tmp_path / "store", "select cell from runs limit 0")
    assert answer.stderr == "no rows\n"
    assert call("query", tmp_path / "store", "select cell from runs limit 1").stderr == ""


def test_a_single_run_is_counted_as_one(scenario: Path) -> None:
    Path("s.toml").write_text(SWEEP)
    said = call("sweep", "s.toml", "--out", "store").stderr
    assert re.search(r"^1 run in \d+ s, 0 there before; 1 cell; store: store$", said, re.MULTILINE)
    assert call("sweep", "merge", "all", "store").stderr == "all: 1 run, 0 missing\n"


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_narrow_terminal_keeps_the_names_of_flows_and_whole_numbers(
    width: int, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("run", scenario, "--no-report", "--out", "whole").stdout.splitlines()
    monkeypatch.setattr("fullpipe.cli.output.console.width", width)
    answer = call("run", scenario, "--no-report", "--out", "narrow")
    lines = [line for line in answer.stdout.splitlines() if line.startswith("cubic.1")]
    (row,) = (line.split() for line in whole if line.startswith("cubic.1"))
    assert len(lines) == 1 and lines[0].split() == row[: len(lines[0].split())]
    assert ("too narrow for" in answer.stderr) is (len(lines[0].split()) < len(row))
