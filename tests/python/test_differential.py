"""The simulator is as a kernel, event by event, but for what is listed by its reason.

`tests/data/differential/VERSION.jsonl.gz` has scripts and what that kernel's TCP did as they were
played to it in the virtual machine; VERSION.toml has the scripts in which the simulator differs.
The folder `queues` has the same of queue disciplines.
"""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.differential import machine, record, subjects, trial

FOLDER = Path(__file__).parents[1] / "data" / "differential"
ENDING = ".jsonl.gz"
RECORDED = sorted(
    str(path.relative_to(FOLDER)).removesuffix(ENDING) for path in FOLDER.rglob(f"*{ENDING}")
)
#: Scripts that are played to the machine again.
AGAIN = 4


def listed(name: str) -> dict[str, str]:
    """Script -> the class of its difference."""
    document = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    for each in document.get("class", []):
        assert each["function"] and each["effect"], each["name"]
    return {name: each["name"] for each in document.get("class", []) for name in each["scripts"]}


def test_there_are_recorded_kernels_for_tcp_and_for_queues() -> None:
    assert {"6.12", "queues/6.12"} <= set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_the_simulator_answers_as_the_kernel_did_but_for_what_is_listed(name: str) -> None:
    recorded = record.read(FOLDER / f"{name}{ENDING}")
    model = machine.MODELS[recorded.origin["kernel"]]
    found = trial.differences(recorded.scripts, recorded.answers, model, recorded.subject)
    differing = {one.name: one.sentence() for one in found}
    known = listed(name)
    problems = [
        f"differs, and is in no class of {name}.toml: {differing[script]}"
        for script in sorted(differing.keys() - known.keys())
    ] + [
        f"{script} agrees now: take it out of `{known[script]}` of {name}.toml"
        for script in sorted(known.keys() - differing.keys())
    ]
    assert not problems, "\n".join(problems)


def as_another_kernel(scripts: Sequence[str]) -> list[str]:
    """The model with the rules of Linux 6.1, in the place of a kernel."""
    return [_native.differential.play(script, "6.1") for script in scripts]


def test_another_kernels_rules_are_noticed_and_reduced_to_few_events() -> None:
    scripts = subjects.draw(7, 60, "7.3")
    found = trial.differences(scripts, as_another_kernel(scripts), "7.3")
    assert found
    first = max(found, key=lambda one: one.event)
    small = trial.reduced(first, as_another_kernel, "7.3")
    events = json.loads(small.script)["events"]
    assert small.kind == first.kind
    assert len(events) == small.event + 1
    assert len(events) < first.event + 1
    assert trial.differences([small.script], as_another_kernel([small.script]), "7.3")


def test_the_same_rules_give_no_difference() -> None:
    scripts = subjects.draw(7, 60, "6.12.117")
    answers = [_native.differential.play(script, "6.12.117") for script in scripts]
    assert trial.differences(scripts, answers, "6.12.117") == []


def test_scripts_of_a_seed_repeat_and_reach_each_state_of_recovery() -> None:
    scripts = subjects.draw(7, 60, "6.12.117")
    assert scripts == subjects.draw(7, 60, "6.12.117")
    assert scripts[20:] == subjects.draw(7, 40, "6.12.117", first=20)
    states = set()
    for script in scripts:
        for step in json.loads(_native.differential.play(script, "6.12.117"))["steps"]:
            states.add(step.get("info", {}).get("ca_state"))
    assert states >= {0, 1, 2, 3, 4}


def test_a_file_of_answers_is_read_as_it_was_written(tmp_path: Path) -> None:
    scripts = subjects.draw(7, 3, "6.12.117")
    answers = [_native.differential.play(script, "6.12.117") for script in scripts]
    written = record.Recorded({"kernel": "6.12"}, scripts, answers)
    for name in ("a.jsonl", "a.jsonl.gz"):
        record.write(tmp_path / name, written)
        read = record.read(tmp_path / name)
        assert read.origin == written.origin
        assert trial.differences(read.scripts, read.answers, "6.12.117") == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}\n[]\n", "is no file of answers"),
        (b"\x1f\x8b\x08\x00damaged", "is no file of answers"),
        (b'{"x": 1}\n', "names no kernel"),
        (b'{"kernel": []}\n', "names no kernel"),
        (b'{"kernel": "6.12"}\n{"script": {"name": 1}, "answer": {}}\n', "name"),
        (b'{"kernel": "6.12"}\n{"script": [], "answer": []}\n', "struct Script"),
    ],
)
def test_a_wrong_file_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / ("a.jsonl.gz" if content.startswith(b"\x1f\x8b") else "a.jsonl")
    file.write_bytes(content)
    with pytest.raises(UserError, match=said):
        read = record.read(file)
        trial.differences(read.scripts, read.answers, "6.12.117")


def test_scripts_of_queues_repeat_and_are_of_each_discipline() -> None:
    kinds = subjects.QUEUES
    scripts = subjects.draw_queues(7, len(kinds), "7.3", kinds)
    assert scripts == subjects.draw_queues(7, len(kinds), "7.3", kinds)
    drawn = {json.loads(script)["qdisc"]["aqm"]["kind"] for script in scripts}
    assert drawn == set(kinds)


def old_queues(scripts: Sequence[str]) -> list[str]:
    """The model with the queues of Linux 6.1, in the place of a kernel."""
    return [_native.differential.play_queue(script, "6.1") for script in scripts]


def test_the_rules_of_another_kernels_queue_are_noticed_and_reduced_to_few_packets() -> None:
    # Linux 6.7 gave fq bands and a fast path.
    scripts = subjects.draw_queues(7, 12, "7.3", ("fq",))
    found = trial.differences(scripts, old_queues(scripts), "7.3", subjects.QUEUE)
    assert found
    first = max(found, key=lambda one: one.event)
    small = trial.reduced(first, old_queues, "7.3", subjects.QUEUE)
    events = json.loads(small.script)["events"]
    assert small.kind == first.kind
    assert len(events) < len(json.loads(first.script)["events"])
    again = trial.differences([small.script], old_queues([small.script]), "7.3", subjects.QUEUE)
    assert again


@pytest.mark.vm
def test_a_kernels_queues_answer_as_they_did_when_they_were_recorded() -> None:
    recorded = record.read(FOLDER / f"queues/6.12{ENDING}")
    few = recorded.scripts[:AGAIN]
    answers, release = machine.answers(few, "6.12", subject=recorded.subject)
    assert release == recorded.origin["release"]
    left = [[row[0] for row in json.loads(answer)["left"]] for answer in answers]
    before = [[row[0] for row in json.loads(answer)["left"]] for answer in recorded.answers]
    assert left == before[:AGAIN]


@pytest.mark.vm
def test_a_kernel_answers_as_it_did_when_it_was_recorded() -> None:
    recorded = record.read(FOLDER / "6.12.jsonl.gz")
    few = recorded.scripts[:AGAIN]
    answers, release = machine.answers(few, "6.12")
    assert release == recorded.origin["release"]
    # Another build of the agent takes another time for a packet.
    both = zip(recorded.answers[:AGAIN], answers, strict=True)
    assert [_native.differential.compare(*each) for each in both] == [None] * AGAIN
