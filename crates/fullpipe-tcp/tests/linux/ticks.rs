//! The timer wheel: kernel/time/timer.c at HZ=250. Other tests take their times from here.

use super::peer::{config, sender_over, sends, MS, START};

pub(crate) const TICK: u64 = 4 * MS;

/// When a timer that is set at `now_ns` for `wait_ns` fires: usecs_to_jiffies() rounds the wait up, and
/// calc_index() takes the bucket after the one in which it ends. The bounds are LVL_START(1), (2) and (3)
/// in ticks, the bucket sizes LVL_GRAN(0) to (3).
pub(crate) fn fires_ns(now_ns: u64, wait_ns: u64) -> u64 {
    let wait = wait_ns.div_ceil(TICK);
    let bucket = match wait {
        ..63 => 1,
        63..504 => 8,
        504..4032 => 64,
        _ => 512,
    };
    ((now_ns / TICK + wait) / bucket + 1) * bucket * TICK
}

/// When a loss probe that is scheduled at `now_ns` is sent: 2 SRTT + 2 ms (tcp_schedule_loss_probe()).
fn probe_ns(now_ns: u64, rtt_ns: u64) -> u64 {
    let mut sender = sender_over(rtt_ns, "reno", config());
    sends(&mut sender, now_ns);
    sender.timer_ns().expect("a probe")
}

#[test]
fn a_timer_never_fires_early_and_at_most_two_ticks_late() {
    // For waits below 63 ticks, which may begin and end anywhere in a tick: rounding up the wait adds less
    // than a tick, and so does the tick in which it begins.
    for phase_ns in (0..TICK).step_by(99_991) {
        for rtt_ns in (MS..123 * MS).step_by(1_001_000) {
            let now_ns = START + phase_ns;
            let due_ns = now_ns + 2 * rtt_ns + 2 * MS;
            let at_ns = probe_ns(now_ns, rtt_ns);
            assert!(
                (due_ns..due_ns + 2 * TICK).contains(&at_ns),
                "{now_ns} {due_ns} {at_ns}"
            );
        }
    }
}

#[test]
fn a_timer_is_eight_times_coarser_from_63_ticks_on_and_again_from_eight_times_as_many() {
    // Set at tick 250 and due 62, 63, 503, 504, 4031, and 4032 later, that is at 312, 313, 753, 754,
    // 4281, and 4282: the next multiples of 1, 8, 8, 64, 64, and 512.
    assert_eq!(START, 250 * TICK);
    for (rtt_ms, tick) in [
        (123, 313),
        (125, 320),
        (1005, 760),
        (1007, 768),
        (8061, 4288),
        (8063, 4608),
    ] {
        assert_eq!(probe_ns(START, rtt_ms * MS), tick * TICK, "{rtt_ms}");
    }
}
