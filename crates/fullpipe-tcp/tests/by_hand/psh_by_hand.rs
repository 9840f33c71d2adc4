//! PSH: tcp_mark_push(), tcp_push() of tcp.c, __tcp_transmit_skb() of tcp_output.c. The same happened in the
//! kernel (scripts 50-107 and 50-8 of the differential test).

use crate::script::{sack, Script, Setup, MSS};

/// An application with TCP_NODELAY that writes by itself; bursts of one packet, which have no PSH of their own.
fn application() -> Script {
    Script::started(Setup {
        is_written: true,
        nodelay: true,
        ..Setup::default()
    })
}

/// Packets with PSH among those that are sent now.
fn pushed(script: &mut Script) -> Vec<u32> {
    let packets = script.packets();
    packets
        .iter()
        .filter(|packet| packet.push)
        .map(|packet| packet.number)
        .collect()
}

#[test]
fn the_last_packet_of_a_write_has_psh_also_where_others_follow() {
    let mut script = application();
    for (packets, last) in [(3, 2), (1, 3), (2, 5)] {
        script.writes_bytes(packets * u64::from(MSS));
        assert_eq!(pushed(&mut script), [last]);
    }
}

#[test]
fn a_retransmission_has_psh_if_its_packet_had_it() {
    let mut script = application();
    for packets in [1, 1, 4] {
        script.writes_bytes(packets * u64::from(MSS));
        script.sends();
    }
    script.at(40_000_000).takes(sack(0, [(3, 6)]));
    let again = script.packets();
    let sent: Vec<(u32, bool)> = again
        .iter()
        .map(|packet| (packet.number, packet.push))
        .collect();
    assert_eq!(sent, [(0, true), (1, true), (2, false)]);
}

#[test]
fn a_write_that_a_full_buffer_cuts_leaves_no_psh_behind_for_the_next_one() {
    // tcp_push() finds no buffer that is not sent, and marks nothing.
    let mut script = application();
    script.writes_bytes(u64::from(MSS));
    assert_eq!(pushed(&mut script), [0]);
    script.writes_bytes(2 * u64::from(MSS));
    assert_eq!(pushed(&mut script), [2]);
}

#[test]
fn a_short_packet_that_a_later_write_fills_loses_its_psh() {
    // tcp_sendmsg_locked() clears the mark before anything is sent. Script 9173-38 of the differential test: Nagle's
    // algorithm holds the last byte of the second write back.
    let mut script = Script::started(Setup {
        is_written: true,
        ..Setup::default()
    });
    let full = u64::from(MSS);
    script.writes_bytes(1);
    assert_eq!(pushed(&mut script), [0]);
    script.writes_bytes(full + 1);
    assert_eq!(pushed(&mut script), []);
    script.writes_bytes(full);
    assert_eq!(pushed(&mut script), []);
    assert_eq!(script.sender().unsent_bytes(), 1);
    // What fills it up and no more keeps the mark.
    script.writes_bytes(full - 1);
    assert_eq!(pushed(&mut script), [3]);
}
