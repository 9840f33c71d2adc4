"""Variables that algorithms declare (cc/state.h, `Variable`), recorded as the algorithms have
them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fullpipe
from external_files import works
from fullpipe import Constant, Controller, EventKind, Variable, _native
from fullpipe.recording.recording import TABLES, RecordingError, schema_of

PATH = {"rate": "20mbit", "rtt": "40ms", "buffer": "1bdp"}
COMMON = TABLES["cc_samples"].names


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def run(*controls: Any, **more: Any) -> fullpipe.Recordings:
    return fullpipe.run({"duration": "30s", "path": PATH, "flow": [{"cc": cc} for cc in controls]}
                        | more)  # fmt: skip


def test_cubics_k_is_the_cube_root_of_its_reduction_over_c() -> None:
    # RFC 9438 section 4.2, equation 2, with cwnd_epoch = beta W_max: no fast convergence.
    runs = run("cubic", cc={"cubic": {"fast_convergence": 0}}, duration="60s",
               path={**PATH, "loss": "0.02%"})  # fmt: skip
    beta = next(iter(runs[0].metadata["constants"].values()))["beta"]
    assert beta == pytest.approx(0.7, rel=0.001)
    table = runs.table("cc_samples").to_pandas()
    epochs = table[table["k_s"] > 0][["w_max_packets", "k_s"]].drop_duplicates()
    assert len(epochs) >= 3
    for w_max, k_s in epochs.itertuples(index=False):
        # In whole packets. Linux has C = 410/1024, which is 0.03 % of K, and cuts K to 1/1024 s.
        reduction = w_max - np.floor(beta * w_max)
        assert k_s == pytest.approx(np.cbrt(reduction / 0.4), rel=0.001)


def test_cubics_w_est_grows_as_reno_does_and_its_epoch_ends_with_a_reduction() -> None:
    runs = run("cubic", duration="120s")
    table = runs.table("cc_samples").to_pandas()
    losses = [
        event["t_us"] for event in runs.table("events").to_pylist() if event["event"] == "recovery"
    ]
    assert len(losses) >= 3
    for begin_us, end_us in pairwise(losses):
        within = table[(table["t_us"] > begin_us) & (table["t_us"] <= end_us)]
        assert within["k_s"].nunique() == 1 and within["w_max_packets"].nunique() == 1
        assert (np.diff(within["w_est_packets"].dropna()) >= 0).all()


def test_columns_are_of_the_algorithms_of_a_run_and_null_for_flows_of_others() -> None:
    runs = run("cubic", "bbr3")
    table = runs.table("cc_samples")
    own = [one["column"] for one in next(
        one for one in _native.cc.algorithms() if one["name"] == "cubic")["variables"]
        if one["column"] not in COMMON]  # fmt: skip
    assert table.column_names == ["run", "seed", *COMMON, *own]
    of_bbr = table.filter(table["flow_id"].to_numpy() == 1)
    assert all(of_bbr[name].null_count == of_bbr.num_rows > 0 for name in own)
    described = runs[0].metadata["variables"]
    assert list(described) == ["cubic"] and list(described["cubic"]) == sorted(own)
    assert described["cubic"]["k_s"]["unit"] == "s"


def test_a_run_of_bbr_alone_has_the_columns_that_it_always_had() -> None:
    runs = run("bbr3", "bbr1", duration="3s")
    assert runs.table("cc_samples").column_names == ["run", "seed", *COMMON]
    assert "variables" not in runs[0].metadata


def test_one_column_has_one_unit_in_every_built_in_algorithm() -> None:
    units: dict[str, set[str]] = {}
    for algorithm in _native.cc.algorithms():
        columns = [one["column"] for one in algorithm["variables"]]
        assert len(columns) == len(set(columns)) > 0
        for one in algorithm["variables"]:
            units.setdefault(one["column"], set()).add(one["unit"])
            assert schema_of("cc_samples", [one["column"]])
    assert all(len(found) == 1 for found in units.values())


#: What files for contracts up to 4 have in place of NAME_STATE.
INFO = """
CC_INLINE void mine_info(const struct mine *s, const struct mine_params *p, struct cc_info *info)
{
	info->cwnd_gain = p->beta;
	info->bw_Bps = 1000;
	info->min_rtt_us = s->prior_cwnd;
	info->phase = CC_PHASE_AVOIDANCE;
	info->inflight_shortterm = s->prior_cwnd;
}
"""


def test_a_file_with_info_has_the_eleven_columns_and_runs_as_one_with_a_list(
    tmp_path: Path,
) -> None:
    path = works(tmp_path)
    listed = run(str(path))
    text = path.read_text()
    begin = text.index("#define mine_STATE")
    begin = text.rindex("/*", 0, begin)
    path.write_text(text[:begin].replace("mine_CONTRACT 5", "mine_CONTRACT 4") + INFO)
    older = run(str(path))
    for name in ("flow_samples", "events", "queue_samples"):
        assert older.table(name) == listed.table(name)
    table = older.table("cc_samples").to_pandas()
    assert list(table.columns) == ["run", "seed", *COMMON]
    assert set(table["bw_bps"]) == {8000} and set(table["phase"]) == {"avoidance"}
    assert set(table["cwnd_gain"]) == {0.5} and table["inflight_longterm_packets"].isna().all()
    prior = listed.table("cc_samples").to_pandas()["prior_cwnd_packets"]
    assert (table["inflight_shortterm_packets"] == prior).all() and prior.max() > 0
    assert (table["min_rtt_us"].fillna(0) == prior).all()


def test_a_file_without_a_list_is_refused(tmp_path: Path) -> None:
    path = works(tmp_path)
    path.write_text(path.read_text().replace("mine_STATE", "mine_STATES"))
    with pytest.raises(fullpipe.UserError, match=r"mine_STATE\(S\) is missing: its variables"):
        run(str(path))


def test_signed_and_scaled_values_and_missing_ones_come_out_as_declared(tmp_path: Path) -> None:
    path = works(tmp_path)
    text = path.read_text()
    row = 'S(prior_cwnd, "packets", 1, s->prior_cwnd, "window before the last reduction")'
    assert row in text
    rows = ['S(slope, "1/s", CC_ONE, -(s64)s->prior_cwnd, "negative")',
            'S(rate, "bytes/s", 1, 125000, "a Mbit/s")',
            'S(bound, "packets", 1, cc_unless(s->prior_cwnd, 0), "none at first")',
            'S(share, "", 1 << 20, 1 << 19, "half")']  # fmt: skip
    path.write_text(text.replace(row, "  \\\n\t".join([row, *rows])))
    table = run(str(path)).table("cc_samples").to_pandas()
    assert (table["slope"] == -table["prior_cwnd_packets"] / 1024).all()
    assert set(table["rate_bps"]) == {1e6} and set(table["share"]) == {0.5}
    assert (table["bound_packets"].isna() == (table["prior_cwnd_packets"] == 0)).all()
    assert table["bound_packets"].isna().any() and table["bound_packets"].notna().any()


class Halving(Controller):
    """AIMD that shows what it does."""

    beta = Constant(0.5, 0.1, 0.99)
    last = Variable("packets", "window before the last reduction")
    reductions = Variable(meaning="so far")

    def init(self) -> None:
        self.reductions = 0

    def on_ack(self, ack: fullpipe.Ack) -> None:
        left = ack.acked_sacked
        if self.ctl.cwnd < self.ctl.ssthresh:
            left = self.slow_start(left)
        self.additive_increase(self.ctl.cwnd, left)

    def on_event(self, event: fullpipe.Event) -> None:
        if event.kind == EventKind.SSTHRESH:
            self.last = self.ctl.cwnd
            self.reductions += 1
            self.ctl.ssthresh = max(int(self.ctl.cwnd * self.beta), 2)


def test_a_class_declares_variables_which_are_null_until_it_sets_them() -> None:
    runs = run(Halving)
    table = runs.table("cc_samples").to_pandas()
    reduced = table["reductions"] > 0
    assert table["last_packets"][~reduced].isna().all() and (~reduced).any()
    assert table["last_packets"][reduced].notna().all() and reduced.any()
    episodes = [one for one in runs.table("events").to_pylist()
                if one["event"] in ("recovery", "rto")]  # fmt: skip
    assert table["reductions"].iloc[-1] == len(episodes)
    assert runs[0].metadata["variables"]["Halving"] == {
        "last_packets": {"unit": "packets", "meaning": "window before the last reduction"},
        "reductions": {"unit": "", "meaning": "so far"},
    }


class Text(Halving):
    """Its variable is no number."""

    def init(self) -> None:
        self.reductions = "none"


def test_a_variable_that_is_no_number_ends_the_run_and_names_the_class() -> None:
    with pytest.raises(fullpipe.UserError, match=r"TypeError: must be real number, not str"):
        run(Text)


def test_a_recording_whose_column_is_no_variables_name_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from helpers import resealed

    kept = run("reno", duration="2s").save(tmp_path / "kept")
    file = kept[0].path / "cc_samples.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("<script>", pa.array([0.0] * table.num_rows)), file)
    resealed(kept[0].path)
    with pytest.raises(RecordingError, match="is no name of a variable"):
        fullpipe.load(kept[0].path).table("cc_samples")
