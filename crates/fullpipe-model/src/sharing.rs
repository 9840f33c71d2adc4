//! One server, jobs that come and go, as a fluid: processor sharing and shortest remaining
//! processing time first. What an ideal link does with flows when it knows them all: yardsticks for
//! completion times. Work is in the unit of time; the server does one unit of it a unit of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers by their bits, which order those that are not negative as they are, and jobs.
type Heap = BinaryHeap<Reverse<(u64, usize)>>;

/// Time in the system of each job when all that are there share the server evenly. Every job there
/// has done the same work since it came, so it ends when the work done by each reaches a level.
pub fn processor_sharing(arrivals: &[f64], works: &[f64]) -> Result<Vec<f64>, String> {
    check(arrivals, works)?;
    let mut times = vec![0.0; arrivals.len()];
    let mut open = Heap::new();
    let (mut now, mut level) = (0.0f64, 0.0f64);
    let mut next = 0;
    loop {
        let until = arrivals.get(next).copied().unwrap_or(f64::INFINITY);
        while let Some(&Reverse((ends, job))) = open.peek() {
            let ends = f64::from_bits(ends);
            let at = now + (ends - level) * open.len() as f64;
            if at > until {
                break;
            }
            open.pop();
            (now, level) = (at, ends);
            times[job] = now - arrivals[job];
        }
        if next == arrivals.len() {
            return Ok(times);
        }
        match open.len() {
            0 => level = 0.0, // keeps it small
            count => level += (until - now) / count as f64,
        }
        now = until;
        open.push(Reverse(((level + works[next]).to_bits(), next)));
        next += 1;
    }
}

/// Time in the system of each job when the one with the least left is served alone.
pub fn shortest_first(arrivals: &[f64], works: &[f64]) -> Result<Vec<f64>, String> {
    check(arrivals, works)?;
    let mut times = vec![0.0; arrivals.len()];
    let mut open = Heap::new();
    let mut now = 0.0f64;
    let mut next = 0;
    loop {
        let until = arrivals.get(next).copied().unwrap_or(f64::INFINITY);
        while let Some(Reverse((left, job))) = open.pop() {
            let left = f64::from_bits(left);
            let at = now + left;
            if at > until {
                open.push(Reverse(((left - (until - now)).to_bits(), job)));
                break;
            }
            now = at;
            times[job] = now - arrivals[job];
        }
        if next == arrivals.len() {
            return Ok(times);
        }
        now = until;
        open.push(Reverse((works[next].to_bits(), next)));
        next += 1;
    }
}

fn check(arrivals: &[f64], works: &[f64]) -> Result<(), String> {
    let in_order = arrivals.windows(2).all(|pair| pair[0] <= pair[1]);
    let finite = arrivals
        .iter()
        .chain(works)
        .all(|&value| value.is_finite() && value.is_sign_positive());
    match arrivals.len() == works.len() && in_order && finite {
        true => Ok(()),
        false => Err("arrivals and works: as many, in order, finite and not negative".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_jobs_share_or_the_shorter_goes_first() {
        // The second comes at 1 with 1 to do, when the first has 3 of its 4 left.
        let (arrivals, works) = ([0.0, 1.0], [4.0, 1.0]);
        assert_eq!(processor_sharing(&arrivals, &works).unwrap(), [5.0, 2.0]);
        assert_eq!(shortest_first(&arrivals, &works).unwrap(), [5.0, 1.0]);
    }

    #[test]
    fn a_job_with_less_left_than_a_new_one_goes_on() {
        let times = shortest_first(&[0.0, 3.0, 10.0], &[4.0, 2.0, 1.0]).unwrap();
        assert_eq!(times, [4.0, 3.0, 1.0]);
    }

    #[test]
    fn what_is_out_of_order_or_no_number_is_refused() {
        for (arrivals, works) in [([1.0, 0.0], [1.0, 1.0]), ([0.0, 1.0], [f64::NAN, 1.0])] {
            assert!(processor_sharing(&arrivals, &works).is_err());
            assert!(shortest_first(&arrivals, &works).is_err());
        }
    }
}
