//! calc_wheel_index() of kernel/time/timer.c at HZ=250: a timer fires with the bucket after the one in which
//! it ends. Buckets are of 1, 8, 64 and 512 ticks, from waits of 63, 504 and 4032 ticks on (LVL_START()).

use fullpipe_ticks::{elapsed_ns, expires_from_handler_ns, expires_ns};

const TICK: u64 = 4_000_000;

#[test]
fn a_wait_is_rounded_up_to_ticks_and_counts_from_the_tick_it_begins_in() {
    for (now_ns, wait_ns, ticks) in [
        (0, 0, 1),
        (0, 1, 2),
        (0, TICK, 2),
        (0, TICK + 1, 3),
        (TICK - 1, TICK, 2),
        (TICK, TICK, 3),
        (10 * TICK, 62 * TICK, 73),
    ] {
        assert_eq!(
            expires_ns(now_ns, wait_ns),
            ticks * TICK,
            "{now_ns} {wait_ns}"
        );
    }
}

#[test]
fn long_waits_end_at_the_next_multiple_of_their_buckets() {
    for (now, wait, ticks) in [
        (0, 63, 64),
        (1, 63, 72),
        (0, 503, 504),
        (1, 503, 512),
        (0, 504, 512),
        (8, 504, 576),
        (0, 4_031, 4_032),
        (0, 4_032, 4_096),
        (64, 4_032, 4_608),
        (0, 32_255, 32_256),
        (0, 32_256, 32_768),
    ] {
        assert_eq!(
            expires_ns(now * TICK, wait * TICK),
            ticks * TICK,
            "{now} {wait}"
        );
    }
}

#[test]
fn a_timer_that_another_one_sets_is_a_tick_nearer_to_the_wheels_clock() {
    // __run_timers() moves the clock on before it calls what has expired. Seen in scripts 612-182 and 612-445
    // of the differential test: timeouts of 252 ms that loss probes and RACK's timer had set.
    for (now, wait, ticks) in [
        (1, 62, 64),
        (1, 63, 65),
        (1, 64, 72),
        (8, 504, 520),
        (8, 505, 576),
    ] {
        let expires = expires_from_handler_ns(now * TICK, wait * TICK);
        assert_eq!(expires, ticks * TICK, "{now} {wait}");
    }
}

#[test]
fn time_that_passes_within_a_tick_is_none() {
    assert_eq!(elapsed_ns(TICK, 2 * TICK - 1), 0);
    assert_eq!(elapsed_ns(TICK - 1, TICK), TICK);
    assert_eq!(elapsed_ns(10 * TICK + 5, 60 * TICK + 1), 50 * TICK);
    assert_eq!(elapsed_ns(2 * TICK, TICK), 0);
}
