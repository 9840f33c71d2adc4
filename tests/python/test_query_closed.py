"""SQL over a store reads the store and nothing else of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forks
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.serve import cells
from fullpipe.sweep.chart import Request, make_chart, run_values
from fullpipe.sweep.query import ask, connect, export
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(tmp_path_factory.mktemp("it's [1]") / "store", sweep())[0]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text("word\nplugh\n")
    return file


READS = [
    "select * from read_text('{0}')", "select * from read_csv('{0}')", "select * from '{0}'",
    "select * from read_blob('{0}')", "select * from glob('{0}')",
    "select * from sniff_csv('{0}')", "select * from query('select * from read_text(''{0}'')')",
    "select * from read_parquet('https://example.invalid/x.parquet')",
    "select * from duckdb_secrets()",
]  # fmt: skip


@pytest.mark.parametrize("sql", READS)
def test_a_query_reads_no_file_beside_the_store(store: Store, secret: Path, sql: str) -> None:
    with pytest.raises(UserError, match="disabled") as refused:
        ask(store, sql.format(secret))
    assert "plugh" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "install httpfs", "load httpfs", "set enable_external_access = true",
        "copy (select 1) to '{0}'", "attach '{0}'", "select 1; copy (select 1) to '{0}'",
        "pragma enable_profiling",
    ],
)  # fmt: skip
def test_nothing_but_one_select_is_done(store: Store, tmp_path: Path, sql: str) -> None:
    with pytest.raises(UserError, match="one SELECT"):
        ask(store, sql.format(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "sql", ["load httpfs", "set enable_external_access = true", "reset enable_external_access"]
)
def test_a_connection_cannot_be_opened_up(store: Store, sql: str) -> None:
    connection = connect(store)
    with pytest.raises(Exception, match=r"disabled|locked"):
        connection.execute(sql)


def test_pythons_variables_are_no_tables(store: Store) -> None:
    mine = pa.table({"word": ["plugh"]})
    assert mine.num_rows == 1
    with pytest.raises(UserError, match="does not exist"):
        ask(store, "select * from mine")


def test_files_are_read_where_they_are_allowed_by_name(store: Store, secret: Path) -> None:
    answer = ask(store, f"select word from read_csv('{secret}')", allow_files=True)
    assert answer.to_pylist() == [{"word": "plugh"}]


def test_the_command_reads_files_with_its_option_alone(store: Store, secret: Path) -> None:
    words = ["query", str(store.folder), f"select word from read_csv('{secret}')"]
    status, said = forks.command(words, secret.parent, os.environ)
    assert status == 2 and "--allow-files" in said
    assert len(said.splitlines()) <= 2
    assert "plugh" in forks.command([*words, "--allow-files"], secret.parent, os.environ)[1]


@pytest.mark.parametrize(
    "where",
    [
        "exists (select * from read_text('{0}'))",
        "true) group by all; copy (select 1) to '{1}'; --",
        "cc in (select word from read_csv('{0}'))",
    ],
)
def test_the_condition_of_a_plot_reads_and_writes_no_file(
    store: Store, secret: Path, tmp_path: Path, where: str
) -> None:
    condition = where.format(secret, tmp_path / "new")
    with pytest.raises(UserError, match=r"disabled|one SELECT"):
        make_chart(store, Request("share", "rtt", where=condition))
    with pytest.raises(UserError, match=r"disabled|one SELECT"):
        run_values(store, "share", ["rtt"], condition)
    assert not (tmp_path / "new").exists()


def test_a_sweeps_file_name_is_text_and_never_sql(store: Store, tmp_path: Path) -> None:
    (known,) = store.sweep_files()
    other = filled(tmp_path / "other", sweep())[0]
    name = "x' union select * from asked where '1' = '1"
    for kind in ("parquet", "toml"):
        (other.folder / "sweeps" / f"{known}.{kind}").rename(
            other.folder / "sweeps" / f"{name}.{kind}"
        )
    found = cells.cell(other.folder, {"rtt": "40ms", "buffer": "4.0"})
    assert len(found["rows"]) == 4 and found["document"]["path"]["rtt"] == "40ms"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_answer_that_cannot_be_written_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """On a full disk the writer fails after its first bytes."""
    import pyarrow.csv

    from fullpipe.recording import parquet

    def fails(_table: Any, sink: Any, **_options: Any) -> None:
        if hasattr(sink, "write"):
            sink.write(b"fragment")
        else:
            Path(sink).write_bytes(b"fragment")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.csv, "write_csv", fails)
    monkeypatch.setattr(parquet.pq, "write_table", fails)
    file = tmp_path / f"good.{ending}"
    file.write_text("good")
    with pytest.raises(UserError, match=r"good\.\w+: cannot be written: No space left"):
        export(pa.table({"a": [1]}), file)
    assert file.read_text() == "good" and list(tmp_path.iterdir()) == [file]


def test_without_sql_the_columns_of_every_view_are_listed(store: Store) -> None:
    done = CliRunner().invoke(app, ["query", str(store.folder)])
    assert done.exit_code == 0, done.output
    for view in ("cells", "runs", "flows", "path"):
        assert f"{view}: sweep, cell, " in done.output


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(
    "sql",
    ["select date '99999-01-01'", "select {'a': date '99999-01-01'}", "select date '-4000-01-01'"],
)
def test_a_year_that_python_has_not_is_the_users_error(
    store: Store, sql: str, options: list[str]
) -> None:
    refused = CliRunner().invoke(app, ["query", str(store.folder), sql, *options])
    assert isinstance(refused.exception, UserError)
    assert "CAST(... AS VARCHAR)" in str(refused.exception)
