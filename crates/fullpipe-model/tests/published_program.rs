//! The model against the output of the authors' published program: every line of the reference
//! runs, per-flow rate within 0.1 %, queue within 0.5 %, loss within 1 %.

use fullpipe_model::{run, Aqm, Cc, FlowSpec, Spec};
use serde_json::Value;

/// Output of Python's `random.seed(1)`, which the published program draws from: first one number
/// per flow for its access delay, then one per flow for the age of its probing period.
const STREAM: [f64; 20] = [
    0.13436424411240122,
    0.8474337369372327,
    0.763774618976614,
    0.2550690257394217,
    0.49543508709194095,
    0.4494910647887381,
    0.651592972722763,
    0.7887233511355132,
    0.0938595867742349,
    0.02834747652200631,
    0.8357651039198697,
    0.43276706790505337,
    0.762280082457942,
    0.0021060533511106927,
    0.4453871940548014,
    0.7215400323407826,
    0.22876222127045265,
    0.9452706955539223,
    0.9014274576114836,
    0.030589983033553536,
];

/// Where it comes from: tests/data/README.md.
const REFERENCE: &str = include_str!("../../../tests/data/fluid_reference_runs.jsonl");

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("an array")
        .iter()
        .map(|v| v.as_f64().expect("a number"))
        .collect()
}

fn spec(line: &Value) -> Spec {
    let args = line["args"].as_array().expect("arguments");
    let base_rtt_ms = numbers(&line["D"]);
    let count = base_rtt_ms.len();
    let link_delay_ms = args[4].as_f64().expect("link delay");
    let names = line["CC"].as_array().expect("congestion controls");
    let flows = (0..count)
        .map(|i| FlowSpec {
            cc: match names[i].as_str().expect("a name") {
                "RENO" => Cc::Reno,
                "CUBIC" => Cc::Cubic,
                "BBR" => Cc::Bbr1,
                "BBR2" => Cc::Bbr2,
                other => panic!("unknown congestion control {other}"),
            },
            access_delay_ms: ((base_rtt_ms[i] / 2.0 - link_delay_ms) * 10.0).round() / 10.0,
            period_age_s: STREAM[count + i],
        })
        .collect();
    Spec {
        capacity_seg_per_ms: line["C_seg_ms"].as_f64().expect("capacity"),
        buffer_seg: line["B_pkts"].as_f64().expect("buffer"),
        buffer_link_bdp: args[2].as_f64().expect("buffer multiple"),
        link_delay_ms,
        aqm: if args[6] == "RED" {
            Aqm::Red
        } else {
            Aqm::DropTail
        },
        flows,
        duration_ms: args[7].as_f64().expect("duration") * 1000.0,
        window_start_ms: args[8].as_f64().expect("start") * 1000.0,
        window_cut_ms: args[9].as_f64().expect("cut") * 1000.0,
        step_ms: args[10].as_f64().expect("step"),
        sample_interval_ms: None,
    }
}

fn close(what: &str, ours: f64, theirs: f64, relative: f64, absolute: f64) {
    assert!(
        (ours - theirs).abs() <= relative * theirs.abs() + absolute,
        "{what}: {ours}, published program {theirs}"
    );
}

#[test]
fn every_reference_run_is_reproduced() {
    assert_eq!(REFERENCE.lines().count(), 28);
    for (number, line) in REFERENCE.lines().enumerate() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let outcome = run(&spec(&line)).expect("a valid run");
        let what = |metric: &str| format!("line {} {}: {metric}", number + 1, line["args"]);
        for (i, rate) in numbers(&line["mean_x"]).iter().enumerate() {
            let ours = outcome.sending_rate_seg_per_ms[i];
            close(&what(&format!("rate of flow {i}")), ours, *rate, 1e-3, 0.0);
        }
        let expect = |key: &str| line[key].as_f64().expect("a number");
        close(
            &what("queue"),
            outcome.queue_seg,
            expect("avg_queue"),
            5e-3,
            1e-9,
        );
        // Losses below 1e-9 are the tail of (q/B)^100, not losses.
        close(
            &what("loss"),
            100.0 * outcome.loss_smooth,
            expect("loss_pct"),
            1e-2,
            1e-9,
        );
        close(
            &what("discrete loss"),
            100.0 * outcome.loss_discrete,
            expect("loss_discrete_pct"),
            1e-2,
            1e-9,
        );
        close(
            &what("Jain index"),
            outcome.jain_index,
            expect("jfi"),
            1e-3,
            0.0,
        );
        close(
            &what("jitter"),
            outcome.jitter_ms,
            expect("avg_jitter_ms"),
            1e-2,
            1e-9,
        );
        close(
            &what("utilisation"),
            100.0 * outcome.utilisation,
            expect("utilization_pct"),
            1e-3,
            0.0,
        );
        eprintln!(
            "line {}: largest relative error of a rate {:.2e}",
            number + 1,
            numbers(&line["mean_x"])
                .iter()
                .zip(&outcome.sending_rate_seg_per_ms)
                .map(|(theirs, ours)| (ours / theirs - 1.0).abs())
                .fold(0.0, f64::max)
        );
    }
}
