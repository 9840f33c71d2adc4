//! False alarms and hits of the test of settling, on series whose truth is known by construction.

use fullpipe_metrics::{
    Capacity, Drift, Facts, FlowSamples, Flows, Measured, Quantity, QueueFacts, QueueSamples,
    Samples, Settling,
};

/// Standard normal numbers: a linear congruential generator (Knuth's MMIX) and Box-Muller.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Values of mean 0 and deviation 1 that forget with this time constant, in samples (AR(1)).
    fn correlated(&mut self, samples: f64, count: usize) -> Vec<f64> {
        let kept = (-1.0 / samples).exp();
        let mut value = self.normal();
        let next = |_| {
            value = kept * value + (1.0 - kept * kept).sqrt() * self.normal();
            value
        };
        (0..count).map(next).collect()
    }
}

const COUNT: usize = 250;

fn facts() -> Facts {
    Facts {
        start_s: 0.0,
        end_s: f64::INFINITY,
        sample_interval_s: 0.1,
        rtt_s: 0.04,
        equal_demand: vec![0, 1],
        queues: vec![QueueFacts {
            name: "forward".to_owned(),
            capacity: Capacity::Rates(vec![(0.0, 8e6)]),
            packet_cost: None,
            policed_bps: f64::INFINITY,
        }],
    }
}

/// Two flows that deliver 100 kB together in each interval, the first a share of it, over a backlog.
fn a_run(shares: &[f64], backlog: &[f64]) -> Samples {
    let flows = Flows {
        flow: vec!["one".into(), "other".into()],
        cc: vec!["cubic".into(), "bbr3".into()],
        direction: vec!["up".into(), "up".into()],
        start_us: vec![0.0, 0.0],
        completion_us: vec![f64::NAN, f64::NAN],
    };
    let (mut queue, mut rows) = (QueueSamples::default(), FlowSamples::default());
    let mut delivered = [0.0; 2];
    for (index, (share, bytes)) in shares.iter().zip(backlog).enumerate() {
        let t_us = 1e5 * (index + 1) as f64;
        for (flow, part) in [*share, 1.0 - share].into_iter().enumerate() {
            delivered[flow] += 1e5 * part;
            rows.t_us.push(t_us);
            rows.flow_id.push(flow);
            rows.srtt_us.push(5e4);
            rows.min_rtt_us.push(4e4);
            rows.cwnd_packets.push(10.0);
            rows.counters.push([delivered[flow], 1.0, 0.0]);
        }
        queue.t_us.push(t_us);
        queue.queue_bytes.push(*bytes);
        queue.queue_packets.push(1.0);
        queue.counters.push([0.0; 7]);
    }
    Samples {
        flows,
        flow_samples: rows,
        queues: vec![queue],
        ..Samples::default()
    }
}

/// Whether a drift is seen; none is where the window is too short to tell.
fn is_flagged(samples: &Samples) -> bool {
    match Measured::new(samples, &facts()).settling() {
        Settling::Tested(drifts) => !drifts.is_empty(),
        Settling::TooShort(_) => false,
        other => panic!("{other:?}"),
    }
}

fn drifts(samples: &Samples, facts: &Facts) -> Vec<Drift> {
    match Measured::new(samples, facts).settling() {
        Settling::Tested(drifts) => drifts.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn runs_that_had_settled_are_flagged_in_at_most_one_of_twenty() {
    // From white noise to a memory of 2 s, half the length of a batch.
    for memory in [0.1, 5.0, 10.0, 20.0] {
        let mut noise = Noise(7);
        let flagged = (0..500).filter(|_| {
            let mut series = |mean: f64, deviation: f64| -> Vec<f64> {
                let values = noise.correlated(memory, COUNT).into_iter();
                values.map(|value| mean + deviation * value).collect()
            };
            let (shares, backlog) = (series(0.5, 0.2), series(5e4, 2e4));
            is_flagged(&a_run(&shares, &backlog))
        });
        let flagged = flagged.count();
        assert!(flagged <= 25, "memory {memory}: {flagged} of 500");
    }
}

#[test]
fn a_window_whose_batches_scatter_tells_nothing_until_it_is_long() {
    // A share of 0.5 +- 0.12 that forgets within 2 s: means of 2.5 s have a deviation of some 0.09, so
    // that a line has to rise by 0.6 to be seen. In 1000 s those of 100 s have 0.024: by 0.16.
    let mut noise = Noise(3);
    let mut told = |seconds: usize, deviation: f64| {
        let short = (0..50).filter(|_| {
            let around = noise.correlated(20.0, 10 * seconds).into_iter();
            let shares: Vec<f64> = around.map(|one| 0.5 + deviation * one).collect();
            let run = a_run(&shares, &vec![5e4; shares.len()]);
            matches!(
                Measured::new(&run, &facts()).settling(),
                Settling::TooShort(_)
            )
        });
        50 - short.count()
    };
    assert!(told(25, 0.12) <= 3);
    assert!(told(1000, 0.12) >= 47);
    assert!(told(25, 0.03) >= 47, "a quiet share is told in 25 s");
}

#[test]
fn a_drift_that_noise_hides_is_not_called_settled() {
    // From 0.7 to 0.4 in 25 s, in noise in which it is seen in some runs only.
    let mut noise = Noise(4);
    let settled = (0..200).filter(|_| {
        let around = noise.correlated(5.0, COUNT).into_iter().enumerate();
        let shares = around.map(|(index, one)| 0.7 - 0.0012 * index as f64 + 0.12 * one);
        let run = a_run(&shares.collect::<Vec<_>>(), &[5e4; COUNT]);
        *Measured::new(&run, &facts()).settling() == Settling::Tested(vec![])
    });
    let settled = settled.count();
    assert!(settled <= 20, "{settled} of 200");
}

#[test]
fn a_cycle_as_long_as_that_of_bbrs_probes_is_no_drift() {
    // PROBE_RTT each 5 and 10 s empties the queue for 0.2 s; gains go through a cycle of 2.5 s.
    for (period, start) in [(50, 0), (50, 17), (50, 33), (100, 0), (100, 45), (100, 99)] {
        let backlog = (0..COUNT).map(|index| match (index + start) % period {
            0 | 1 => 0.0,
            place => 5e4 + 2e4 * f64::from(u8::from(place % 25 < 3)),
        });
        let backlog: Vec<f64> = backlog.collect();
        assert_eq!(
            drifts(&a_run(&[0.5; COUNT], &backlog), &facts()),
            [],
            "{period} {start}"
        );
    }
}

#[test]
fn a_share_that_moves_to_another_is_named_with_its_slope() {
    // From 0.8 by 0.016 a second, as in 30 s of CUBIC and BBRv3 in a deep buffer.
    let mut noise = Noise(1);
    let hits = (0..100).filter(|_| {
        let around = noise.correlated(5.0, COUNT);
        let shares = around.iter().enumerate();
        let shares = shares.map(|(index, one)| 0.8 - 0.0016 * index as f64 + 0.03 * one);
        let found = drifts(&a_run(&shares.collect::<Vec<_>>(), &[5e4; COUNT]), &facts());
        found.iter().any(|drift| {
            drift.quantity == Quantity::Share("cubic".to_owned())
                && (drift.slope_per_s + 0.016).abs() < 0.003
                && (drift.mean - 0.6).abs() < 0.05
        })
    });
    assert!(hits.count() >= 95);
}

#[test]
fn a_store_has_what_drifts_how_fast_and_in_how_long_a_window() {
    let drift = |quantity, slope_per_s| Drift {
        quantity,
        mean: 1.0,
        slope_per_s,
        p_value: 0.001,
    };
    let share = drift(Quantity::Share("cubic, up".to_owned()), 0.00412);
    let found = Settling::Tested(vec![share, drift(Quantity::Backlog, -2900.0)]);
    assert_eq!(
        found.text(25.0),
        "share of cubic, up +4.12e-3/s; backlog -2.90e3/s; 25 s"
    );
    assert_eq!(Settling::Tested(vec![]).text(25.0), "");
    assert_eq!(Settling::Changing.text(25.0), "changing");
    let measured = Measured::new(&a_run(&[0.5; 199], &[0.0; 199]), &facts());
    assert_eq!(measured.unsettled(), "too short");
}

#[test]
fn a_window_of_few_seconds_or_round_trips_tells_nothing() {
    let run = a_run(&[0.5; 199], &[0.0; 199]);
    let of = |samples: &Samples, facts: &Facts| Measured::new(samples, facts).settling().clone();
    assert_eq!(of(&run, &facts()), Settling::TooShort(20.0), "19.9 s");
    let run = a_run(&[0.5; COUNT], &[0.0; COUNT]);
    assert_eq!(of(&run, &facts()), Settling::Tested(vec![]));
    let mut queued = run.clone();
    queued.flow_samples.srtt_us.fill(3e5);
    assert_eq!(
        of(&queued, &facts()),
        Settling::TooShort(30.0),
        "25 s are 83 RTTs"
    );
}

#[test]
fn what_is_made_to_change_is_not_tested() {
    let of = |samples: &Samples, facts: &Facts| Measured::new(samples, facts).settling().clone();
    let mut joins = a_run(&[0.5; COUNT], &[0.0; COUNT]);
    joins.flows.start_us[1] = 12e6;
    assert_eq!(of(&joins, &facts()), Settling::Changing);
    let mut ends = a_run(&[0.5; COUNT], &[0.0; COUNT]);
    ends.flows.completion_us[1] = 12e6;
    assert_eq!(of(&ends, &facts()), Settling::Changing);
    let mut stepped = facts();
    stepped.queues[0].capacity = Capacity::Rates(vec![(0.0, 8e6), (10.0, 4e6)]);
    let run = a_run(&[0.5; COUNT], &[0.0; COUNT]);
    assert_eq!(of(&run, &stepped), Settling::Changing);
}
