"""Groups of runs are named by what differs: keys with their values, or folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fullpipe.report.naming import MAX_VALUE, Identity, differences, labels_of

TWO_FLOWS = {"flow": [{"cc": "cubic"}, {"cc": "reno"}]}


def group(
    document: dict[str, Any], folder: str = "f", name: str = "s", **settings: str
) -> Identity:
    return Identity(name, [Path(folder)], {"name": name, "seed": 3, **document}, settings)


@pytest.mark.parametrize(
    ("documents", "labels"),
    [
        ([{"flow": [{"cc": "cubic"}]}, {"flow": [{"cc": "bbr3"}]}], ["cubic", "bbr3"]),
        (
            [{"path": {"rate": "10mbit"}}, {"path": {"rate": "20mbit"}}],
            ["path.rate=10mbit", "path.rate=20mbit"],
        ),
        (
            [
                {"flow": [{"cc": "cubic"}], "path": {"rtt": "20ms"}},
                {"flow": [{"cc": "bbr3"}], "path": {"rtt": "40ms"}},
            ],
            ["cubic, path.rtt=20ms", "bbr3, path.rtt=40ms"],
        ),
        ([TWO_FLOWS, {"flow": [{"cc": "bbr3"}, {"cc": "bbr3"}]}], ["cubic, reno", "bbr3, bbr3"]),
        ([{"ecn": True}, {}], ["ecn=true", "without ecn"]),
    ],
)
def test_groups_are_named_by_the_keys_that_differ(
    documents: list[dict[str, Any]], labels: list[str]
) -> None:
    assert labels_of([group(document) for document in documents]) == labels


def test_a_key_that_differs_alike_in_all_flows_is_named_once() -> None:
    flows = [[{"cc": cc}] * 2 for cc in ("cubic", "bbr3")]
    groups = [group({"flow": each}) for each in flows]
    assert labels_of(groups) == ["cubic", "bbr3"]
    assert differences(groups).rows == [("flow.cc", ["cubic", "bbr3"])]


def test_groups_of_other_names_keep_theirs() -> None:
    documents = [{"path": {"rate": "1mbit"}}, {"path": {"rate": "2mbit"}}, {}]
    groups = [group(one, name=name) for one, name in zip(documents, "aab", strict=True)]
    assert labels_of(groups) == ["a, path.rate=1mbit", "a, path.rate=2mbit", "b"]


def test_engines_and_kernels_are_told_apart() -> None:
    groups = [group({}, engine="vm", kernel=kernel) for kernel in ("6.1.0", "6.12.1")]
    assert labels_of([*groups, group({}, engine="sim", kernel="")]) == [
        "engine=vm, kernel=6.1.0", "engine=vm, kernel=6.12.1", "engine=sim",
    ]  # fmt: skip


def test_where_too_much_or_nothing_differs_the_folders_are_the_names() -> None:
    many: list[dict[str, Any]] = [{key: f"{key}{index}" for key in "abcd"} for index in range(2)]
    for documents in (many, [{}, {}]):
        groups = [
            group(document, f"/runs/{folder}/run-000")
            for document, folder in zip(documents, ("first", "second"), strict=True)
        ]
        assert labels_of(groups) == ["first", "second"]


def test_repetitions_are_in_the_folder_above_them() -> None:
    groups = [
        Identity("s", [Path(f"/r/{name}/run-{seed}") for seed in range(3)], {}, {})
        for name in ("first", "second")
    ]
    assert differences(groups).folders == ["first", "second"]


def test_no_two_groups_share_a_name() -> None:
    long = [{"path": {"trace": "x" * MAX_VALUE + str(index)}} for index in range(2)]
    labels = labels_of([group(document, "same") for document in long])
    assert len(set(labels)) == 2
