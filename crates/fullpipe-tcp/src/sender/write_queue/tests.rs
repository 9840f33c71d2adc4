use fullpipe_plan::Kernel;

use super::*;
use crate::sender::testing::config;

const MSS: u64 = 1448;

/// Appends `bytes` until the queue is full; returns how much was appended.
fn append_all(queue: &mut WriteQueue, bytes: u64, next: u64, una: u64) -> u64 {
    let mut left = bytes;
    while left > 0 {
        match queue.append(left, next, una) {
            0 => break,
            taken => left -= taken,
        }
    }
    bytes - left
}

/// Packets up to `next` are sent, those before `una` acknowledged.
fn at(next: u64, una: u64) -> Progress {
    Progress {
        next: next * MSS,
        una: una * MSS,
        una_packet: una as u32,
    }
}

/// As seen on Linux 6.12.117 with BBR, established with a window of 10 and space for three of them:
/// the first sendfile() appends a pipe of 64 KiB while 10 packets are sent in pairs.
fn after_first_write() -> WriteQueue {
    let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
    queue.expand(10, 3);
    queue.set_goal(65_160);
    // A buffer of half a window; two packets are sent, and the rest of the buffer is filled up.
    assert_eq!(queue.append(65_536, 0, 0), 22 * MSS);
    queue.send(2 * MSS, 0);
    assert_eq!(queue.append(65_536 - 22 * MSS, 2 * MSS, 0), 2 * MSS);
    for end in [4, 6, 8, 10] {
        queue.send(end * MSS, 0);
    }
    assert_eq!(queue.memory_bytes(10 * MSS, 0), 40_128);
    let left = 65_536 - 24 * MSS;
    assert_eq!(append_all(&mut queue, left, 10 * MSS, 0), left);
    queue
}

#[test]
fn memory_is_counted_as_the_kernel_counts_it() {
    let mut queue = after_first_write();
    assert_eq!(queue.memory_bytes(10 * MSS, 0), 71_808);
    // The next write fills the last buffer, which needs no memory check.
    assert_eq!(append_all(&mut queue, 65_536, 10 * MSS, 0), 12_656);
    assert_eq!(queue.memory_bytes(10 * MSS, 0), 84_464);
    assert_eq!(queue.written_bytes, 54 * MSS);
    // An ACK of half a burst frees payload; an ACK of all of it also frees the buffer.
    assert_eq!(queue.memory_bytes(10 * MSS, MSS), 83_016);
    queue.send(12 * MSS, MSS);
    assert_eq!(queue.memory_bytes(12 * MSS, 2 * MSS), 81_568);
}

#[test]
fn an_empty_buffer_of_6_1_has_a_head_of_1024_bytes() {
    // Of 640 bytes kmalloc() makes 1024, and struct sk_buff has 256: script 9161-2 of the differential test.
    for (kernel, bytes) in [(Kernel::Linux6_1, 1_280), (Kernel::Linux6_12, 896)] {
        let mut queue = WriteQueue::of(&SenderConfig {
            rules: kernel.into(),
            ..config()
        });
        queue.append(1, 0, 0);
        assert_eq!(queue.memory_bytes(0, 0), 1 + bytes, "{kernel:?}");
    }
}

#[test]
fn buffers_hold_a_packet_where_half_the_window_is_less() {
    // tcp_xmit_size_goal(): max(size_goal, mss_now).
    for window_bytes in [1, 2 * MSS - 1, 2 * MSS, 4 * MSS - 1] {
        let mut queue = roomy(1);
        queue.max_window_bytes = 0;
        queue.set_goal(window_bytes);
        assert_eq!(queue.append(10 * MSS, 0, 0), MSS, "{window_bytes}");
    }
    let mut queue = WriteQueue::new(MSS as u32, 44, 64 << 20);
    queue.set_goal(2_048);
    assert_eq!(queue.append(10 * MSS, 0, 0), MSS);
}

#[test]
fn sacked_buffers_become_one_as_far_as_17_page_fragments_go() {
    // MAX_SKB_FRAGS pages of 4096 bytes hold 48 packets of 1448 bytes from a page's beginning, and
    // 44 whole bursts from the 69,504th byte on.
    let mut queue = roomy(100);
    assert_eq!(append_all(&mut queue, 100 * MSS, 0, 0), 100 * MSS);
    for end in (2..=100).step_by(2) {
        queue.send(end * MSS, 0);
    }
    let buffers = |queue: &mut WriteQueue| {
        let bytes = queue.memory_bytes(100 * MSS, 0) - 100 * MSS;
        assert_eq!(bytes % BUFFER_BYTES, 0);
        bytes / BUFFER_BYTES
    };
    assert_eq!(buffers(&mut queue), 50);
    for number in (2..100).step_by(2) {
        queue.merge_before(number * MSS, 0);
    }
    assert_eq!(buffers(&mut queue), 3);
    assert_eq!(queue.sent, [48, 92, 100].map(|end| end * MSS));
    // Nothing meets there any more; a split buffer is two again.
    queue.merge_before(10 * MSS, 0);
    queue.cut_before(51 * MSS, 0);
    queue.cut_before(51 * MSS, 0);
    queue.cut_before(100 * MSS, 0);
    assert_eq!(queue.sent, [48, 51, 92, 100].map(|end| end * MSS));
}

#[test]
fn an_application_is_woken_by_memory_that_sacks_free() {
    let mut queue = WriteQueue::new(MSS as u32, 64, 64 << 20);
    queue.expand(20, 2);
    queue.set_goal(1 << 20);
    while queue.append(MSS, queue.written_bytes, 0) > 0 {
        queue.send(queue.written_bytes, 0);
    }
    queue.is_blocking = true;
    let end = queue.written_bytes / MSS;
    let has_space =
        |queue: &mut WriteQueue| queue.may_wake(1, 20) && queue.wakes(at(end, 1), false);
    let mut freed = 0;
    while !has_space(&mut queue) {
        queue.merge_before((2 + freed) * MSS, MSS);
        freed += 1;
        assert!(freed < end, "woken while memory is there");
    }
    let memory_bytes = queue.memory_bytes(end * MSS, MSS);
    assert!(memory_bytes * 3 / 2 <= queue.limit.bytes());
    assert!((memory_bytes + BUFFER_BYTES) * 3 / 2 > queue.limit.bytes());
}

#[test]
fn a_blocked_application_is_woken_when_a_third_of_the_limit_is_free() {
    // In the same run 66,672 bytes of 82,944 do not wake it, but of 172,800, with a window of 25, do.
    let mut queue = after_first_write();
    append_all(&mut queue, 65_536, 10 * MSS, 0);
    queue.is_blocking = true;
    assert!(queue.expand(12, 3));
    assert_eq!(queue.limit.bytes(), 82_944);
    for end in (12..=40).step_by(2) {
        let una = (end - 8) / 2;
        queue.send(end * MSS, una * MSS);
        assert!(!queue.wakes(at(end, una), false));
    }
    assert_eq!(queue.memory_bytes(40 * MSS, 16 * MSS), 66_672);
    assert!(queue.may_wake(16, 25) && queue.expand(25, 3));
    assert_eq!(queue.limit.bytes(), 172_800);
    assert!(queue.wakes(at(40, 16), true));
    assert!(!queue.is_blocking);
}

#[test]
fn an_application_that_was_woken_waits_on_if_what_was_sent_meanwhile_took_the_space() {
    // Script 9001-34 of the differential test: each burst has a buffer of its own.
    let mut queue = roomy(44);
    queue.limit.set(64_512);
    let bytes = 38 * MSS;
    assert_eq!(append_all(&mut queue, bytes, 0, 0), bytes);
    let just_enough = (64_512 - 2 * BUFFER_BYTES) * 2 / 3 / MSS;
    let una = 38 - just_enough;
    queue.send((una + 1) * MSS, una * MSS);
    queue.is_blocking = true;
    assert!(queue.wakes(at(una + 1, una), true));
    let mut with_more_buffers = una + 1;
    for end in una + 2..una + 8 {
        queue.send(end * MSS, una * MSS);
        with_more_buffers = end;
    }
    assert!(!queue.has_space(at(with_more_buffers, una)) && queue.is_blocking);
    // One that was not woken does not look.
    assert!(queue.has_space(at(with_more_buffers, una)));
}

/// A queue with much space, whose buffers should hold `goal_packets`.
fn roomy(goal_packets: u64) -> WriteQueue {
    let mut queue = WriteQueue::new(MSS as u32, 65_535, 64 << 20);
    queue.expand(100, 3);
    queue.set_goal(2 * goal_packets * MSS);
    queue
}

#[test]
fn a_buffer_of_many_small_calls_ends_with_its_seventeenth_page_and_is_pushed() {
    // skb_splice_from_iter() returns -EMSGSIZE, and tcp_sendmsg_locked() sets PSH. Seen in the virtual
    // machine, whose writes block every 60 packets: buffers end within packets there.
    let mut queue = roomy(44);
    for _ in 0..18 {
        queue.begin_write(0);
        assert_eq!(append_all(&mut queue, 2 * MSS, 0, 0), 2 * MSS);
    }
    assert_eq!(queue.ends, [34 * MSS]);
    assert!(!queue.take_psh(34 * MSS - 1) && queue.take_psh(34 * MSS));
    assert!(!queue.take_psh(36 * MSS));
}

#[test]
fn psh_is_cleared_when_its_buffer_grows_again() {
    // tcp_sendmsg_locked() clears PSH of a buffer that it extends.
    for (later_goal, has_psh) in [(27, true), (44, false)] {
        let mut queue = roomy(27);
        append_all(&mut queue, 27 * MSS, 0, 0);
        queue.mark_push(0);
        queue.set_goal(2 * later_goal * MSS);
        queue.begin_call(0, 0);
        append_all(&mut queue, 4 * MSS, 0, 0);
        assert_eq!(queue.take_psh(31 * MSS), has_psh, "{later_goal}");
    }
}

#[test]
fn psh_moves_to_the_end_of_a_buffer_that_the_same_call_extends() {
    // tcp_sendmsg_locked() clears PSH of what a call finds, not of what it has marked itself: of a write of
    // 57 packets with a window of 30 the kernel marked the 25th (script 50-11 of the differential test).
    let mut queue = roomy(15);
    queue.begin_call(0, 0);
    append_all(&mut queue, 15 * MSS, 0, 0);
    queue.send(10 * MSS, 0);
    queue.mark_push(10 * MSS);
    queue.append(10 * MSS, 10 * MSS, 0);
    assert!(!queue.take_psh(24 * MSS) && queue.take_psh(25 * MSS));
    let mut queue = roomy(15);
    append_all(&mut queue, 15 * MSS, 0, 0);
    queue.send(10 * MSS, 0);
    queue.mark_push(10 * MSS);
    queue.begin_call(0, 0);
    queue.append(10 * MSS, 10 * MSS, 0);
    assert!(!queue.take_psh(25 * MSS));
}

#[test]
fn where_each_page_is_a_call_of_its_own_every_page_clears_psh() {
    // tcp_sendpage() of Linux 6.1: scripts 61-32, 61-84 and 9061-78 of the differential test. The 15 packets
    // end in the sixth page, which has 2,856 bytes left.
    for (sent, is_kept) in [(10, false), (2, false), (1, true)] {
        let mut queue = roomy(15);
        queue.sends_page_by_page = true;
        queue.begin_call(0, 0);
        append_all(&mut queue, 15 * MSS, 0, 0);
        queue.send(sent * MSS, 0);
        queue.mark_push(sent * MSS);
        assert_eq!(queue.append(sent * MSS, sent * MSS, 0), sent * MSS);
        assert_eq!(queue.take_psh((15 + sent) * MSS), is_kept, "{sent}");
    }
}

#[test]
fn psh_moves_with_the_end_of_a_buffer_that_takes_packets_of_the_next_one() {
    // Seen in script 73-108 of the differential test, where the window then cut the buffer.
    let mut queue = roomy(5);
    append_all(&mut queue, 5 * MSS, 0, 0);
    queue.mark_push(0);
    queue.begin_call(0, 0);
    append_all(&mut queue, 5 * MSS, 0, 0);
    assert_eq!(queue.first_bytes(0, 7 * MSS, true), (7 * MSS, false));
    assert!(!queue.take_psh(6 * MSS) && queue.take_psh(7 * MSS));
}

#[test]
fn memory_stays_within_one_buffer_of_the_limit_while_bursts_are_sent_at_once() {
    // The window never limits: a burst of four is sent from each full buffer.
    let mut queue = roomy(44);
    queue.limit.set(100_000);
    let mut next = 0;
    while queue.append(1 << 20, next, 0) > 0 {
        next += 4 * MSS;
        queue.send(next, 0);
    }
    let most_bytes = 100_000 + 2 * (44 * MSS + BUFFER_BYTES);
    let bytes = queue.memory_bytes(next, 0);
    assert!((100_000..most_bytes).contains(&bytes), "{bytes}");
}

#[test]
fn writes_that_end_within_a_packet_stop_at_the_limit() {
    // 65,536 bytes are 45 packets and a part, which stays behind: the next call finds a last buffer with
    // room, from which all else was sent at once. It holds what a buffer may, so it takes no more.
    let mut queue = roomy(45);
    queue.limit.set(240_000);
    let mut next = 0;
    for bytes in [87 * MSS, 65_536, 65_536, 65_536] {
        queue.begin_call(next, 0);
        append_all(&mut queue, bytes, next, 0);
        next = queue.written_bytes / MSS * MSS;
        queue.send(next, 0);
    }
    let packets = next / MSS;
    assert!((87 + 88..=87 + 90).contains(&packets), "{packets}");
}

#[test]
fn a_write_beyond_the_limit_completes_the_last_buffer() {
    // tcp_sendmsg_locked() looks at the limit where it starts a buffer: script 20261130-124 of the differential
    // test. 25 packets of the first buffer were sent before.
    let mut queue = roomy(32);
    let next = 25 * MSS;
    append_all(&mut queue, 32 * MSS, 0, 0);
    queue.send(next, 0);
    append_all(&mut queue, 17 * MSS, next, 0);
    queue.limit.set(40 * MSS);
    queue.begin_write(next);
    queue.begin_call(next, 0);
    assert_eq!(append_all(&mut queue, 20 * MSS, next, 0), 8 * MSS);
}

#[test]
fn a_blocked_application_is_woken_by_the_first_ack_that_frees_enough() {
    // `wake_una` only skips ACKs that cannot wake it.
    for window in [10, 25, 200] {
        let mut queue = WriteQueue::new(MSS as u32, 64, 64 << 20);
        queue.expand(window, 2);
        queue.set_goal(1 << 20);
        while queue.append(1 << 20, 0, 0) > 0 {}
        queue.is_blocking = true;
        let mut una = 0;
        while !(queue.may_wake(una as u32, window) && queue.wakes(at(una + 1, una), false)) {
            let bytes = queue.memory_bytes((una + 1) * MSS, una * MSS);
            assert!(bytes + bytes / 2 > queue.limit.bytes(), "{window} {una}");
            queue.send((una + 1) * MSS, una * MSS);
            una += 1;
        }
    }
}

#[test]
fn a_first_buffer_is_extended_from_the_second_up_to_a_burst() {
    // tcp_grow_skb() takes from the second buffer only, and frees it once it is empty.
    let mut queue = WriteQueue::new(MSS as u32, 4, 64 << 20);
    queue.expand(100, 2);
    queue.set_goal(1 << 20);
    assert_eq!(append_all(&mut queue, 10 * MSS, 0, 0), 10 * MSS);
    for (wanted, grows, expected) in [
        (3, true, (4, false)),
        (6, false, (4, false)),
        (6, true, (6, false)),
        (9, true, (8, false)),
        (9, true, (9, false)),
        (20, true, (10, true)),
    ] {
        let (bytes, is_last) = queue.first_bytes(0, wanted * MSS, grows);
        assert_eq!((bytes, is_last), (expected.0 * MSS, expected.1), "{wanted}");
    }
    assert_eq!(queue.memory_bytes(0, 0), 10 * MSS + BUFFER_BYTES);
}

#[test]
fn writes_block_at_notsent_lowat_and_go_on_at_half_of_it() {
    // tcp_stream_memory_free() is checked when a buffer is started, so the last one may exceed it.
    let mut queue = WriteQueue::new(MSS as u32, 45, 64 << 20);
    queue.expand(1000, 2);
    queue.set_goal(1 << 20);
    queue.notsent_lowat_bytes = 131_072;
    let buffer = 45 * MSS;
    assert_eq!(append_all(&mut queue, 1 << 20, 0, 0), 3 * buffer);
    queue.is_blocking = true;
    queue.send(89 * MSS, 0);
    assert!(!queue.wakes(at(89, 0), true) && queue.is_blocking);
    queue.send(90 * MSS, 0);
    assert!(queue.wakes(at(90, 0), true));
}
