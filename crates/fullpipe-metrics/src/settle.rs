//! Whether a run had settled within its window: a mean over time says something only then.
//!
//! Each metric that is a mean over time is cut into ten batches of equal length. A straight line is
//! fitted to their means, and Student's t-test says whether it rises or falls. Batches much longer
//! than what correlates within a series are nearly independent, so few large ones need no model of the
//! correlation: C. Alexopoulos, A. Seila, "Output Data Analysis", Handbook of Simulation (1998),
//! section 7.4; B. Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", Operations
//! Research 30(3), 1982. Several metrics of one run divide the level among them
//! (Bonferroni). docs/evidence/settling.md has the measured rates of false alarms and hits.
//!
//! No alarm means something where the test would have seen a drift. The least change that it sees in
//! four of five runs follows from the scatter of the batches: H. S. Bloom, "Minimum Detectable Effects",
//! Evaluation Review 19(5), 1995. Where that is large, the window is too short to tell.

use crate::facts::{Facts, QueueFacts};
use crate::samples::{QueueSamples, Samples};
use crate::window::Window;

/// Of 400 starts of the tutorial's contest ten find 92 %, eight 83 % with as many false alarms; with more
/// than ten, a batch is shorter than BBR's cycles.
const BATCHES: usize = 10;
const EDGES: usize = BATCHES + 1;
/// Probability of a false alarm in a run whose batches are independent. In windows of 25 s they are not:
/// 4.2 % are measured.
const LEVEL: f64 = 0.004;
/// Parts of it: what is concluded rests on shares.
const PART_OF_SHARES: f64 = 0.7;
const PART_OF_GOODPUT: f64 = 0.15;
const PART_OF_BACKLOG: f64 = 0.15;
/// What shares among equals have of theirs: synchronised losses let them wander for longer than a window.
const PART_OF_EQUALS: f64 = 0.1;
/// Flows are equals whose algorithm is the same, and whose least RTTs differ by at most this factor.
const EQUAL_RTTS: f64 = 1.25;
/// BBR's longest cycle is 10 s, and flows that share a queue need some hundred RTTs, as long as they
/// are in it, for one turn.
const LEAST_WINDOW_S: f64 = 20.0;
const LEAST_WINDOW_RTTS: f64 = 100.0;
const LEAST_SAMPLES_OF_A_BATCH: f64 = 5.0;
/// Changes over the window that are not worth an alarm: of shares, and relative to the mean.
const LEAST_CHANGE_OF_SHARE: f64 = 0.05;
const LEAST_RELATIVE_CHANGE: f64 = 0.1;
/// Changes over the window that a test has to see in four of five runs, else it tells nothing: of
/// shares, and relative to the mean. The mean of the window is off by half of it at its end.
const SEEN_CHANGE_OF_SHARE: f64 = 0.25;
const SEEN_RELATIVE_CHANGE: f64 = 1.0;
/// Of a backlog beside what the path itself holds: of a short queue a change by its mean is little.
const SEEN_CHANGE_OF_BDP: f64 = 0.25;
const PACKET_BYTES: f64 = 1514.0;
/// Of the payload of a window, what a flow delivers whose coming or going counts.
const LEAST_SAY: f64 = 0.05;
/// Of more flows of one algorithm their shares are not tested one by one.
const MAX_FLOWS: usize = 8;

/// What a run's window tells of its settling.
#[derive(Clone, Debug, PartialEq)]
pub enum Settling {
    /// The window has too few RTTs, seconds or samples to tell, or its batches scatter too much: it
    /// takes some so many s.
    TooShort(f64),
    /// Flows join or a link changes within the window: means over it are of no steady state.
    Changing,
    /// These metrics rise or fall; empty: no drift was seen.
    Tested(Vec<Drift>),
}

/// A metric that rises or falls through the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// What it is of.
    pub quantity: Quantity,
    /// Over the window.
    pub mean: f64,
    /// Of the fitted line.
    pub slope_per_s: f64,
    /// Probability of such a slope by chance in a run that had settled, divided by the part of the level
    /// that its test has.
    pub p_value: f64,
}

/// A metric that is a mean over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Share of a direction's payload: of a congestion control, or of a flow.
    Share(String),
    /// Payload of all flows, in bit/s.
    Goodput,
    /// What waits at the bottleneck, in bytes.
    Backlog,
}

impl Settling {
    /// As a store has it: `too short`, `changing`, empty, or what drifts, by how much a second, and in a
    /// window of how many seconds, such as `share of cubic +4.10e-3/s; backlog -2.90e3/s; 25 s`.
    pub fn text(&self, window_s: f64) -> String {
        match self {
            Self::TooShort(_) => "too short".to_owned(),
            Self::Changing => "changing".to_owned(),
            Self::Tested(drifts) if drifts.is_empty() => String::new(),
            Self::Tested(drifts) => {
                let drifts = drifts.iter();
                let drifts =
                    drifts.map(|one| format!("{} {:+.2e}/s", one.quantity.name(), one.slope_per_s));
                let window = format!("{} s", (window_s * 1e3).round() / 1e3);
                let parts: Vec<String> = drifts.chain([window]).collect();
                parts.join("; ")
            }
        }
    }
}

impl Quantity {
    /// Such as `share of cubic`.
    pub fn name(&self) -> String {
        match self {
            Self::Share(of) => format!("share of {of}"),
            Self::Goodput => "goodput".to_owned(),
            Self::Backlog => "backlog".to_owned(),
        }
    }
}

/// Tests a run. `delivered`: bytes of each flow within the window; `rtt_s`: the mean of their RTTs.
pub(crate) fn settling(
    samples: &Samples,
    facts: &Facts,
    window: &Window,
    delivered: &[f64],
    rtt_s: f64,
) -> Settling {
    let length_s = window.length_s();
    // `max` ignores NaN: an RTT that is not known.
    let least_s = LEAST_WINDOW_S.max(LEAST_WINDOW_RTTS * rtt_s.max(facts.rtt_s));
    let samples_of_a_batch = length_s / BATCHES as f64 / facts.sample_interval_s;
    let is_short = length_s < least_s - 1e-9 || samples_of_a_batch < LEAST_SAMPLES_OF_A_BATCH;
    if is_short || !facts.sample_interval_s.is_normal() {
        return Settling::TooShort(least_s);
    }
    if is_changing(samples, facts, window, delivered) {
        return Settling::Changing;
    }
    let batches = Batches::of(window);
    let mut tested = of_flows(samples, &batches);
    if let Some(queue) = samples.queues.first() {
        tested.extend(backlog(queue, &batches).map(|means| Series {
            quantity: Quantity::Backlog,
            part: PART_OF_BACKLOG,
            means,
        }));
    }
    share_level(&mut tested);
    let trends: Vec<(Series, Trend)> = tested
        .into_iter()
        .filter_map(|series| trend(&series.means).map(|trend| (series, trend)))
        .collect();
    let bdp_bytes = delivered.iter().sum::<f64>() / length_s * facts.rtt_s;
    let excess = trends.iter().map(|(series, trend)| {
        let seen = trend.least_seen(LEVEL * series.part);
        seen / has_to_see(&series.quantity, trend.mean, bdp_bytes)
    });
    let excess = excess.fold(0.0, f64::max);
    let drifts = trends.into_iter().filter_map(|(series, trend)| {
        let p_value = trend.p_value() / series.part;
        let is_drift = p_value < LEVEL && matters(&series.quantity, trend.mean, trend.change());
        is_drift.then_some(Drift {
            quantity: series.quantity,
            mean: trend.mean,
            slope_per_s: trend.slope / batches.length_s,
            p_value,
        })
    });
    let drifts: Vec<Drift> = drifts.collect();
    if drifts.is_empty() && excess > 1.0 {
        // Errors of batches fall with the root of their length.
        return Settling::TooShort(length_s * excess.powi(2));
    }
    Settling::Tested(drifts)
}

/// Rates that change within the window, or flows that join or leave in it and have a say: short ones
/// come and go as a steady load.
fn is_changing(samples: &Samples, facts: &Facts, window: &Window, delivered: &[f64]) -> bool {
    let changes = |queue: &QueueFacts| queue.capacity.changes_in(window.start_s, window.end_s);
    let all: f64 = delivered.iter().sum();
    let table = &samples.flows;
    let moves = |flow: usize| {
        let (begin_s, end_s) = (table.start_us[flow] / 1e6, table.completion_us[flow] / 1e6);
        let joins = begin_s > window.start_s;
        // NaN: it did not finish.
        let leaves = end_s < window.end_s;
        joins != leaves && delivered[flow] >= LEAST_SAY * all && delivered[flow] > 0.0
    };
    facts.queues.iter().any(changes) || (0..table.flow.len()).any(moves)
}

/// Times between which batches lie.
struct Batches {
    edges_s: [f64; EDGES],
    length_s: f64,
    late_s: f64,
}

impl Batches {
    fn of(window: &Window) -> Self {
        let length_s = window.length_s() / BATCHES as f64;
        Self {
            edges_s: std::array::from_fn(|edge| window.start_s + edge as f64 * length_s),
            length_s,
            late_s: window.late_s,
        }
    }

    /// The batch that has a sample; it ends an interval.
    fn with(&self, t_us: f64) -> Option<usize> {
        let seconds = t_us / 1e6 - self.late_s;
        let after = self
            .edges_s
            .iter()
            .filter(|&&edge_s| edge_s < seconds)
            .count();
        (1..EDGES).contains(&after).then(|| after - 1)
    }
}

/// A metric in each batch, and the part of `LEVEL` that its test has.
struct Series {
    quantity: Quantity,
    part: f64,
    means: [f64; BATCHES],
}

/// Divides what shares have among them, and what kinds that are not there would have had among all.
fn share_level(tested: &mut [Series]) {
    let is_share = |series: &Series| matches!(series.quantity, Quantity::Share(_));
    let shares = tested.iter().filter(|series| is_share(series)).count();
    let others: f64 = tested
        .iter()
        .filter(|series| !is_share(series))
        .map(|series| series.part)
        .sum();
    let of_shares = if shares > 0 { PART_OF_SHARES } else { 0.0 };
    for series in tested {
        if is_share(series) {
            series.part *= PART_OF_SHARES / shares as f64;
        }
        series.part /= others + of_shares;
    }
}

/// Shares and goodput of the flows that last through the window.
fn of_flows(samples: &Samples, batches: &Batches) -> Vec<Series> {
    let table = &samples.flows;
    let delivered = Delivered::of(samples, batches);
    let lasting = lasting(samples, batches);
    let Some(&first) = lasting.first() else {
        return Vec::new();
    };
    let has_two = (lasting.iter()).any(|&flow| table.direction[flow] != table.direction[first]);
    let mut tested = Vec::new();
    for direction in ["up", "down"] {
        let is_of = |flow: &&usize| table.direction[**flow] == direction;
        let members: Vec<usize> = lasting.iter().filter(is_of).copied().collect();
        for mut share in shares(samples, &delivered, &members, batches) {
            if let (true, Quantity::Share(of)) = (has_two, &mut share.quantity) {
                *of = format!("{of}, {direction}");
            }
            tested.push(share);
        }
    }
    tested.push(Series {
        quantity: Quantity::Goodput,
        part: PART_OF_GOODPUT,
        means: delivered
            .by(&lasting)
            .map(|bytes| 8.0 * bytes / batches.length_s),
    });
    tested
}

/// What each flow had delivered at the edges of the batches, in bytes.
struct Delivered(Vec<[f64; EDGES]>);

impl Delivered {
    fn of(samples: &Samples, batches: &Batches) -> Self {
        let mut at_edges = vec![[0.0; EDGES]; samples.flows.flow.len()];
        let sampled = &samples.flow_samples;
        for (index, &flow) in sampled.flow_id.iter().enumerate() {
            let Some(edges) = at_edges.get_mut(flow) else {
                continue;
            };
            let seconds = sampled.t_us[index] / 1e6 - batches.late_s;
            for (edge_s, bytes) in batches.edges_s.iter().zip(edges) {
                if seconds <= *edge_s {
                    *bytes = sampled.counters[index][0];
                }
            }
        }
        Self(at_edges)
    }

    /// In each batch, by these flows.
    fn by(&self, flows: &[usize]) -> [f64; BATCHES] {
        std::array::from_fn(|batch| {
            let grown = flows
                .iter()
                .map(|&flow| self.0[flow][batch + 1] - self.0[flow][batch]);
            grown.sum()
        })
    }
}

/// The flows that last through the window.
fn lasting(samples: &Samples, batches: &Batches) -> Vec<usize> {
    let table = &samples.flows;
    let lasts = |&flow: &usize| {
        let end_s = batches.edges_s[BATCHES];
        let completion_us = table.completion_us[flow];
        let is_there = completion_us.is_nan() || completion_us / 1e6 >= end_s;
        is_there && table.start_us[flow] / 1e6 <= batches.edges_s[0]
    };
    (0..table.flow.len()).filter(lasts).collect()
}

/// Shares of the congestion controls of a direction's flows, or of the flows where all have the same
/// one; none where nothing was delivered in a batch.
fn shares(
    samples: &Samples,
    delivered: &Delivered,
    members: &[usize],
    batches: &Batches,
) -> Vec<Series> {
    let table = &samples.flows;
    let all = delivered.by(members);
    if all.iter().any(|&bytes| bytes <= 0.0) {
        return Vec::new();
    }
    let mut parties: Vec<(&str, Vec<usize>)> = Vec::new();
    for &flow in members {
        let cc: &str = &table.cc[flow];
        match parties.iter_mut().find(|(name, _)| *name == cc) {
            Some((_, flows)) => flows.push(flow),
            None => parties.push((cc, vec![flow])),
        }
    }
    let mut part = 1.0;
    if parties.len() == 1 && members.len() <= MAX_FLOWS {
        if have_equal_rtts(samples, members, batches) {
            part = PART_OF_EQUALS;
        }
        let alone = members.iter();
        parties = alone
            .map(|&flow| (&*table.flow[flow], vec![flow]))
            .collect();
    }
    // The shares of two sum to 1: one test is of both.
    let tests = match parties.len() {
        count if count < 3 => count - 1,
        count => count,
    };
    let of_party = |(name, flows): &(&str, Vec<usize>)| {
        let bytes = delivered.by(flows);
        Series {
            quantity: Quantity::Share((*name).to_owned()),
            part,
            means: std::array::from_fn(|batch| bytes[batch] / all[batch]),
        }
    };
    parties.iter().take(tests).map(of_party).collect()
}

/// Whether these flows' least RTTs, as known in the window, are those of one path.
fn have_equal_rtts(samples: &Samples, flows: &[usize], batches: &Batches) -> bool {
    let sampled = &samples.flow_samples;
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for &flow in flows {
        let of_flow = (0..sampled.flow_id.len()).filter(|&row| {
            sampled.flow_id[row] == flow && batches.with(sampled.t_us[row]).is_some()
        });
        // `min` ignores NaN: no RTT yet.
        let rtt_us = of_flow
            .map(|row| sampled.min_rtt_us[row])
            .fold(f64::INFINITY, f64::min);
        least = least.min(rtt_us);
        most = most.max(rtt_us);
    }
    most <= EQUAL_RTTS * least
}

fn backlog(queue: &QueueSamples, batches: &Batches) -> Option<[f64; BATCHES]> {
    let (mut sums, mut counts) = ([0.0; BATCHES], [0.0; BATCHES]);
    for (&t_us, &bytes) in queue.t_us.iter().zip(&queue.queue_bytes) {
        if let Some(batch) = batches.with(t_us) {
            sums[batch] += bytes;
            counts[batch] += 1.0;
        }
    }
    let is_whole = counts.iter().all(|&count| count > 0.0);
    is_whole.then(|| std::array::from_fn(|batch| sums[batch] / counts[batch]))
}

/// A straight line through the means of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trend {
    mean: f64,
    /// Per batch, and its standard error.
    slope: f64,
    error: f64,
}

impl Trend {
    /// Over the window.
    fn change(&self) -> f64 {
        self.slope * BATCHES as f64
    }

    /// The two-sided probability of such a slope by chance.
    fn p_value(&self) -> f64 {
        student_of_eight(self.slope.abs() / self.error)
    }

    /// The least change over the window that a test at this level sees in four of five runs.
    fn least_seen(&self, level: f64) -> f64 {
        seen_in_errors(level) * self.error * BATCHES as f64
    }
}

/// The slope, in standard errors, that a test at this level sees with probability 0.8: noncentral t.
///
/// Source: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 26.7.10.
fn seen_in_errors(level: f64) -> f64 {
    const NORMAL_80: f64 = 0.8416;
    let critical = quantile_of_eight(level);
    critical * (1.0 - 1.0 / 32.0) + NORMAL_80 * (1.0 + critical * critical / 16.0).sqrt()
}

/// None where all means are equal.
fn trend(means: &[f64; BATCHES]) -> Option<Trend> {
    let count = BATCHES as f64;
    let mean = means.iter().sum::<f64>() / count;
    let place = |batch: usize| batch as f64 - (count - 1.0) / 2.0;
    let squares: f64 = (0..BATCHES).map(|batch| place(batch).powi(2)).sum();
    let products = means.iter().enumerate();
    let slope = products.map(|(batch, one)| place(batch) * one).sum::<f64>() / squares;
    let errors = means.iter().enumerate();
    let errors = errors.map(|(batch, one)| (one - mean - slope * place(batch)).powi(2));
    let error = (errors.sum::<f64>() / (count - 2.0) / squares).sqrt();
    (slope != 0.0).then_some(Trend { mean, slope, error })
}

/// The t beyond whose +- Student's t with eight degrees of freedom lies with this probability.
fn quantile_of_eight(probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match student_of_eight(middle) > probability {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Probability that Student's t with eight degrees of freedom lies beyond +-t.
///
/// Source: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 26.7.4.
fn student_of_eight(t: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    let cos2 = 8.0 / (8.0 + t * t);
    let series = 1.0 + cos2 * (1.0 / 2.0 + cos2 * (3.0 / 8.0 + cos2 * 5.0 / 16.0));
    1.0 - (1.0 - cos2).sqrt() * series
}

fn matters(quantity: &Quantity, mean: f64, change: f64) -> bool {
    let least = match quantity {
        Quantity::Share(_) => LEAST_CHANGE_OF_SHARE,
        Quantity::Goodput => LEAST_RELATIVE_CHANGE * mean,
        Quantity::Backlog => PACKET_BYTES.max(LEAST_RELATIVE_CHANGE * mean),
    };
    change.abs() >= least
}

fn has_to_see(quantity: &Quantity, mean: f64, bdp_bytes: f64) -> f64 {
    match quantity {
        Quantity::Share(_) => SEEN_CHANGE_OF_SHARE,
        Quantity::Goodput => SEEN_RELATIVE_CHANGE * mean,
        Quantity::Backlog => {
            let least = (SEEN_RELATIVE_CHANGE * mean).max(SEEN_CHANGE_OF_BDP * bdp_bytes);
            least.max(PACKET_BYTES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_has_the_quantiles_of_its_table() {
        // Two-sided 10 %, 5 %, 1 % and 0.1 % points for eight degrees of freedom.
        for (t, p) in [(1.860, 0.1), (2.306, 0.05), (3.355, 0.01), (5.041, 0.001)] {
            assert!((student_of_eight(t) / p - 1.0).abs() < 2e-3, "{t}");
        }
        assert_eq!(student_of_eight(0.0), 1.0);
        assert_eq!(student_of_eight(f64::INFINITY), 0.0);
    }

    #[test]
    fn a_slope_is_that_of_least_squares() {
        // By hand: mean 5.5 and slope 1 a batch, but the last is 1 too high. Squares of places: 82.5.
        let found = trend(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 11.0]).expect("a slope");
        assert!((found.mean - 5.6).abs() < 1e-12);
        assert!((found.slope - (82.5 + 4.5) / 82.5).abs() < 1e-12);
        assert!(found.p_value() < 0.001);
        assert_eq!(trend(&[2.0; 10]), None);
    }

    #[test]
    fn a_quantile_is_that_of_the_table() {
        for (p, t) in [(0.1, 1.860), (0.05, 2.306), (0.01, 3.355), (0.001, 5.041)] {
            assert!((quantile_of_eight(p) - t).abs() < 1e-3, "{t}");
        }
    }

    #[test]
    fn the_least_change_that_is_seen_is_seen_in_four_of_five_runs() {
        let (mut rng, runs, sd, level) = (1u64, 20_000, 0.05, LEVEL / 3.0);
        let mut uniform = || {
            rng = rng
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (rng >> 11) as f64 / (1u64 << 53) as f64
        };
        // Squares of places: 82.5.
        let slope = seen_in_errors(level) * sd / 82.5f64.sqrt();
        let mut is_seen = |_: &i32| {
            let means = std::array::from_fn(|batch| {
                let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                0.5 + slope * batch as f64 + sd * normal
            });
            trend(&means).expect("noise").p_value() < level
        };
        let power = (0..runs).filter(&mut is_seen).count() as f64 / f64::from(runs);
        assert!((power - 0.8).abs() < 0.02, "{power}");
    }
}
