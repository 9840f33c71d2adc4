//! Tail loss probes: RFC 8985 section 7, tcp_schedule_loss_probe(), tcp_send_loss_probe() and
//! tcp_process_tlp_ack().

use fullpipe_cc::EventKind;

use super::script::{ack, dsack, sack, Cwr, Open, Recovery, Script, Setup, MS, MSS, OWNER};

/// An application that has written this many packets, over a path of 300 ms, whose first timeout is
/// 900 ms.
fn slow(packets: u32) -> Script {
    let mut script = Script::new(Setup {
        rtt_ns: 300 * MS,
        is_written: true,
        ..Setup::default()
    });
    script.writes(packets);
    script
}

#[test]
fn a_probe_waits_for_two_rtts_and_2_ms_or_200_ms_if_one_packet_is_out() {
    assert_eq!(slow(2).exact_timer(), 602 * MS);
    assert_eq!(slow(1).exact_timer(), 800 * MS);
}

#[test]
fn a_probe_never_waits_longer_than_what_is_left_of_the_oldest_packets_timeout() {
    let mut script = slow(1);
    script.at(200 * MS).writes(1);
    assert_eq!(script.exact_timer(), 802 * MS);
    script.at(400 * MS).writes(1);
    assert_eq!(script.exact_timer(), 900 * MS);
}

#[test]
fn an_ack_restarts_the_probe_with_a_full_timeout() {
    let mut script = slow(2);
    script.at(300 * MS).gets(ack(1).echo(0));
    // One packet is out: 2 * 300 + 200 ms. What is left of its timeout of 900 ms would be sooner.
    assert_eq!(script.exact_timer(), 1_100 * MS);
}

#[test]
fn after_a_probe_comes_a_full_timeout_and_no_second_probe() {
    let mut script = slow(2);
    assert_eq!(script.fires(), "1r");
    let probe_ns = script.now();
    assert_eq!(script.exact_timer(), probe_ns + 900 * MS);
    assert_eq!(script.fires(), "0r");
    assert_eq!((script.totals().timeouts, script.undos()), (1, 0));
}

#[test]
fn a_probe_carries_new_data_if_the_peers_window_has_room() {
    for (packets, probe) in [(10, "9r"), (11, "10")] {
        let mut script = Script::started(Setup {
            window_bytes: packets * u64::from(MSS),
            ..Setup::default()
        });
        assert_eq!(script.fires(), probe);
    }
    // Ten packets and a part of one do not have it.
    let mut script = Script::started(Setup {
        window_bytes: 11 * u64::from(MSS) - 1,
        ..Setup::default()
    });
    assert_eq!(script.fires(), "9r");
}

#[test]
fn no_probe_is_sent_in_recovery() {
    let mut script = Script::started(Setup::default());
    script.at(40 * MS).gets(sack(0, [(1, 4)]));
    // The retransmission was just sent: a full timeout.
    assert_eq!(script.exact_timer(), 280 * MS);
    assert_eq!(script.state(), Recovery);
}

/// Four packets and a probe that repeats the last, all but which arrive. Returns the script and when the
/// probe was sent.
fn probed() -> (Script, u64) {
    let mut script = Script::new(Setup {
        is_written: true,
        ..Setup::default()
    });
    script.writes(4);
    assert_eq!(script.fires(), "3r");
    let at_ns = script.now();
    (script, at_ns)
}

#[test]
fn an_ack_of_the_probes_packet_leaves_open_which_copy_came() {
    let (mut script, at_ns) = probed();
    script.at(at_ns + 40 * MS).gets(ack(4).echo(at_ns));
    assert_eq!(script.state(), Open);
    // A second ACK of it without news: the other copy came as well (RFC 8985 section 7.4.2).
    script.gets(ack(4).echo(at_ns));
    script.writes(1);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!((script.state(), script.ssthresh()), (Open, None));
}

#[test]
fn a_larger_window_in_a_second_ack_is_news() {
    let (mut script, at_ns) = probed();
    script.at(at_ns + 40 * MS).gets(ack(4).echo(at_ns));
    script.gets(ack(4).echo(at_ns).window(1 << 31));
    script.writes(1);
    script.at(at_ns + 80 * MS).gets(ack(5).window(1 << 31));
    assert_eq!(script.ssthresh(), Some(5), "the probe repaired a loss");
}

#[test]
fn a_probe_that_repaired_a_loss_halves_the_window_once() {
    // tcp_init_cwnd_reduction(), CWR and tcp_end_cwnd_reduction() in one.
    let (mut script, at_ns) = probed();
    script.at(at_ns + 40 * MS).gets(ack(4).echo(at_ns));
    script.writes(2);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!(script.events(), ["cwr", "recovery_end"]);
    assert_eq!((script.state(), script.ssthresh()), (Open, Some(5)));
    script.gets(ack(6));
    assert_eq!(script.ssthresh(), Some(5));
    assert_ne!(script.state(), Cwr);
}

#[test]
fn a_dsack_that_ends_elsewhere_is_not_of_the_probe() {
    let (mut script, at_ns) = probed();
    script
        .at(at_ns + 40 * MS)
        .gets(dsack(4, [(2, 3)]).echo(at_ns));
    script.writes(1);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!(script.ssthresh(), Some(5));
    // One that ends with the probe is.
    let (mut script, at_ns) = probed();
    script
        .at(at_ns + 40 * MS)
        .gets(dsack(4, [(3, 4)]).echo(at_ns));
    script.writes(1);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!(script.ssthresh(), None);
}

#[test]
fn a_probe_of_new_data_tells_nothing_about_losses() {
    let mut script = Script::started(Setup::default());
    assert_eq!(script.fires(), "10");
    let at_ns = script.now();
    script.at(at_ns + 40 * MS).gets(ack(11).echo(at_ns));
    script.at(at_ns + 80 * MS).gets(ack(12));
    assert_eq!((script.state(), script.ssthresh()), (Open, None));
}

#[test]
fn an_algorithm_is_told_that_a_probe_repaired_a_loss() {
    let mut script = Script::new(Setup {
        is_written: true,
        cc: OWNER,
        ..Setup::default()
    });
    script.writes(4);
    script.fires();
    let at_ns = script.now();
    script.at(at_ns + 40 * MS).gets(ack(4).echo(at_ns));
    let (_, told) = script.told();
    assert_eq!(told.is_probe_answer, 1);
    script.writes(1);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!(script.told().1.is_probe_answer, 0);
    assert_eq!(script.told_events(EventKind::TlpRecovery).len(), 1);
}

#[test]
fn a_timeout_ends_the_episode_of_a_probe() {
    // tcp_enter_loss(): tlp_high_seq = 0. The ACK of three originals undoes the timeout (F-RTO), and later
    // ones do not take the probe for a repair.
    let (mut script, _) = probed();
    let (at_ns, _) = script.times_out();
    script.at(at_ns + 40 * MS).gets(ack(4).echo(at_ns));
    script.writes(2);
    script.at(at_ns + 80 * MS).gets(ack(5));
    assert_eq!((script.undos(), script.ssthresh()), (1, None));
    assert!(!script.events().contains(&"cwr"));
}

#[test]
fn an_attempt_to_send_that_the_window_forbids_moves_no_timer() {
    let mut script = Script::started(Setup::default());
    assert_eq!(script.exact_timer(), 82 * MS);
    assert_eq!(script.at(20 * MS).sends(), "");
    assert_eq!(script.exact_timer(), 82 * MS);
}
