//! A trace of calls as a table: a row a call, with every fact, every decision, and the algorithm's own
//! variables after it. Must not know where a trace comes from.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fullpipe_cc::replay::{introduced, walk, Replay, Step, TraceError};
use fullpipe_cc::{Ack, Conn, Ctl, Event};

use crate::cc_row::phase_name;
use crate::rows::{Column, Table, Text};

/// Rows that are passed on at a time.
const ROWS_AT_ONCE: usize = 1 << 14;

/// A column and its value in a structure of cc/cc.h.
type Field<T> = (&'static str, fn(&T) -> u64);
type SignedField<T> = (&'static str, fn(&T) -> i64);

macro_rules! fields {
    ($($column:literal $field:ident,)*) => {
        &[$(($column, |facts| facts.$field.into()),)*]
    };
}

const CONN: &[Field<Conn>] = fields! {
    "conn_now_us" now_us,
    "conn_now_ns" now_ns,
    "conn_edt_ns" edt_ns,
    "conn_delivered_us" delivered_us,
    "conn_last_send_us" last_send_us,
    "conn_pacing_rate_cap_Bps" pacing_rate_cap_bytes_per_s,
    "conn_mss_bytes" mss_bytes,
    "conn_delivered" delivered,
    "conn_delivered_ce" delivered_ce,
    "conn_lost" lost,
    "conn_packets_out" packets_out,
    "conn_inflight" inflight,
    "conn_snd_una" snd_una,
    "conn_snd_nxt" snd_nxt,
    "conn_srtt_us" srtt_us,
    "conn_app_limited" app_limited,
    "conn_cwnd_clamp" cwnd_clamp,
    "conn_gso_max_segs" gso_max_segs,
    "conn_seed" seed,
    "conn_ca_state" ca_state,
    "conn_prior_ca_state" prior_ca_state,
    "conn_is_cwnd_limited" is_cwnd_limited,
    "conn_ecn_ok" ecn_ok,
    "conn_ecn_low" ecn_low,
    "conn_is_paced" is_paced,
    "conn_is_cwnd_full" is_cwnd_full,
    "conn_min_rtt_us" min_rtt_us,
    "conn_rttvar_us" rttvar_us,
    "conn_unsent_bytes" unsent_bytes,
    "conn_unsent_packets" unsent_packets,
    "conn_acks" acks,
    "conn_rcv_tsval" rcv_tsval,
    "conn_rcv_tsecr" rcv_tsecr,
    "conn_ts_tick_us" ts_tick_us,
    "conn_sacked_out" sacked_out,
    "conn_lost_out" lost_out,
    "conn_retrans_out" retrans_out,
    "conn_max_packets_out" max_packets_out,
    "conn_high_seq" high_seq,
    "conn_reordering" reordering,
    "conn_prior_cwnd" prior_cwnd,
    "conn_lost_age_us" lost_age_us,
};

const ACK: &[Field<Ack>] = fields! {
    "ack_prior_us" prior_us,
    "ack_prior_delivered" prior_delivered,
    "ack_prior_delivered_ce" prior_delivered_ce,
    "ack_losses" losses,
    "ack_acked_sacked" acked_sacked,
    "ack_prior_inflight" prior_inflight,
    "ack_last_end_seq" last_end_seq,
    "ack_tx_inflight" tx_inflight,
    "ack_lost" lost,
    "ack_is_app_limited" is_app_limited,
    "ack_is_retrans" is_retrans,
    "ack_is_ack_delayed" is_ack_delayed,
    "ack_is_probe_answer" is_probe_answer,
    "ack_age_us" age_us,
};

const ACK_SIGNED: &[SignedField<Ack>] = fields! {
    "ack_delivered" delivered,
    "ack_delivered_ce" delivered_ce,
    "ack_interval_us" interval_us,
    "ack_rtt_us" rtt_us,
};

const EVENT: &[Field<Event>] = fields! {
    "event_value" value,
    "event_packets" packets,
    "event_is_app_limited" is_app_limited,
};

/// The controls; before a call with `before_` in front.
const CTL: &[Field<Ctl>] = fields! {
    "before_cwnd" cwnd,
    "before_ssthresh" ssthresh,
    "before_pacing_rate_Bps" pacing_rate_bytes_per_s,
    "before_tso_segs" tso_segs,
    "before_sndbuf_factor" sndbuf_factor,
    "before_cwnd_cnt" cwnd_cnt,
    "before_tso_most" tso_most,
    "before_is_scalable" is_scalable,
    "before_enters_cwr" enters_cwr,
    "before_timer_us" timer_us,
};

/// Passes the calls of a trace on, as tables of many rows each, and says what the replay found.
pub fn calls(path: &Path, mut rows: impl FnMut(Table)) -> Result<Replay, TraceError> {
    let mut table = Calls::default();
    for algorithm in introduced(BufReader::new(File::open(path)?))? {
        for variable in &algorithm.variables {
            table.declare(variable.column, variable.unit == PHASE);
        }
    }
    let found = walk(BufReader::new(File::open(path)?), |step| {
        table.push(step);
        if table.steps.len() >= ROWS_AT_ONCE {
            rows(table.take());
        }
    })?;
    rows(table.take());
    Ok(found)
}

/// The unit of a variable whose values have names.
const PHASE: &str = "phase";

/// A call without borrowed data.
struct Row {
    kernel_name: Text,
    connection: u64,
    sequence: u64,
    name: &'static str,
    conn: Conn,
    ack: Option<Ack>,
    event: Option<Event>,
    before: Ctl,
    after: Ctl,
    differs: &'static str,
}

/// The rows so far.
#[derive(Default)]
struct Calls {
    began_us: Option<u64>,
    steps: Vec<Row>,
    /// Each with whether its values are phases.
    variables: Vec<(&'static str, bool, Vec<Option<f64>>)>,
}

impl Calls {
    fn declare(&mut self, column: &'static str, is_phase: bool) {
        if self.variables.iter().all(|(known, ..)| *known != column) {
            self.variables.push((column, is_phase, Vec::new()));
        }
    }

    fn push(&mut self, step: &Step) {
        self.began_us.get_or_insert(step.conn.now_us);
        self.steps.push(Row {
            kernel_name: step.kernel_name.to_owned().into(),
            connection: step.connection.into(),
            sequence: step.sequence.into(),
            name: step.name,
            conn: *step.conn,
            ack: step.ack.copied(),
            event: step.event.copied(),
            before: *step.before,
            after: *step.after,
            differs: step.differs.unwrap_or(""),
        });
        for (.., values) in &mut self.variables {
            values.push(None);
        }
        let Some(controller) = step.controller else {
            return;
        };
        let known = &controller.algorithm().variables;
        for (variable, value) in known.iter().zip(controller.variables()) {
            let mut columns = self.variables.iter_mut();
            let place = columns.find(|(column, ..)| *column == variable.column);
            if let Some(last) = place.and_then(|(.., values)| values.last_mut()) {
                *last = value;
            }
        }
    }

    /// The rows as columns; there are none left.
    fn take(&mut self) -> Table {
        let rows = std::mem::take(&mut self.steps);
        let began_us = self.began_us.unwrap_or(0);
        let text = |get: fn(&Row) -> Text| Column::Text(rows.iter().map(get).collect());
        let whole = |get: &dyn Fn(&Row) -> u64| Column::U64(rows.iter().map(get).collect());
        let some =
            |get: &dyn Fn(&Row) -> Option<u64>| Column::OptU64(rows.iter().map(get).collect());
        let mut columns = vec![
            (
                "t_us",
                whole(&|row| row.conn.now_us.saturating_sub(began_us)),
            ),
            ("cc", text(|row| row.kernel_name.clone())),
            ("connection", whole(&|row| row.connection)),
            ("sequence", whole(&|row| row.sequence)),
            ("call", text(|row| row.name.into())),
        ];
        for (name, get) in CONN {
            columns.push((name, whole(&|row| get(&row.conn))));
        }
        for (name, get) in ACK {
            columns.push((name, some(&|row| row.ack.as_ref().map(get))));
        }
        for (name, get) in ACK_SIGNED {
            let values = rows.iter().map(|row| row.ack.as_ref().map(get));
            columns.push((name, Column::OptI64(values.collect())));
        }
        for (name, get) in EVENT {
            columns.push((name, some(&|row| row.event.as_ref().map(get))));
        }
        for (name, get) in CTL {
            columns.push((name, whole(&|row| get(&row.before))));
        }
        for (name, get) in CTL {
            let after = name.trim_start_matches("before_");
            columns.push((after, whole(&|row| get(&row.after))));
        }
        for (name, is_phase, values) in &mut self.variables {
            let values = std::mem::take(values);
            let column = match is_phase {
                true => Column::Text(values.into_iter().map(phase_name).collect()),
                false => Column::OptF64(values),
            };
            columns.push((name, column));
        }
        columns.push(("differs", text(|row| row.differs.into())));
        Table {
            name: "calls",
            columns,
        }
    }
}
