//! What is reported to a congestion control about losses: Google's kernel keeps each packet's own flight and
//! losses (tcp_rate_skb_sent(), bbr_skb_marked_lost()), a stock kernel reports neither to eBPF.

use std::sync::{Arc, Mutex};

use fullpipe_cc::{flags, Ack, Conn, Controller, Ctl, Event, EventKind, Info};
use fullpipe_cc::{register, DynAlgorithm};
use fullpipe_plan::CcFacts;
use fullpipe_tcp::{Sender, SenderConfig};

use super::peer::{ack, config, establish, expires, sack, sends, RTT, START};

/// A report: flight and losses of a lost packet, or of the newest packet that an ACK delivers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Lost(u32, u32),
    Ack(u32, u32),
}

struct Listener(Arc<Mutex<Vec<Told>>>);

impl DynAlgorithm for Listener {
    fn init(&mut self, _conn: &Conn, _ctl: &mut Ctl) {}

    fn on_ack(&mut self, _conn: &Conn, ack: &Ack, _ctl: &mut Ctl) {
        let told = Told::Ack(ack.tx_inflight, ack.lost);
        self.0.lock().unwrap().push(told);
    }

    fn on_event(&mut self, _conn: &Conn, event: &Event, ctl: &mut Ctl) {
        ctl.tso_segs = 2; // bursts of two
        if event.kind == EventKind::Lost as u32 {
            let told = Told::Lost(event.value, event.packets);
            self.0.lock().unwrap().push(told);
        }
    }

    fn info(&self, _info: &mut Info) {}
}

fn recorded(name: &str, facts: CcFacts) -> (Sender, Arc<Mutex<Vec<Told>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let given = Arc::clone(&notes);
    let make = move |_: &[u32]| Box::new(Listener(Arc::clone(&given))) as Box<dyn DynAlgorithm>;
    let wishes = flags::OWNS_CWND | flags::WANTS_RING;
    let algorithm = register(
        name,
        "listens",
        wishes,
        Vec::new(),
        Vec::new(),
        Box::new(make),
    );
    let settings = SenderConfig {
        facts,
        gso_max_segments: 2,
        ..config()
    };
    let cc = Controller::new(algorithm, &[]).unwrap();
    (establish(RTT, settings, cc), notes)
}

/// The first of ten packets is lost. Two of the others are SACKed, so that RACK's timer detects the loss
/// (the pacing timer sends new packets before), and then the rest.
fn lose_one(sender: &mut Sender) {
    assert_eq!(sends(sender, START).len(), 10);
    let now_ns = START + RTT;
    sender.on_ack(now_ns, &sack(0, START, &[(1, 3)]));
    while expires(sender).1.iter().all(|packet| packet.number != 0) {}
    sender.on_ack(now_ns + RTT / 2, &sack(0, START, &[(1, 10)]));
}

#[test]
fn googles_kernel_reports_a_loss_at_once_with_the_packets_own_flight() {
    let (mut sender, told) = recorded("listens-google", CcFacts::Google);
    lose_one(&mut sender);
    let told = told.lock().unwrap();
    // Detected by a timer, between two ACKs: the first packet of its flight and the first loss.
    assert_eq!(told[1], Told::Lost(1, 1), "{told:?}");
}

#[test]
fn a_stock_kernel_reports_a_loss_with_the_next_ack_and_its_newest_packet() {
    let (mut sender, told) = recorded("listens-stock", CcFacts::Stock);
    lose_one(&mut sender);
    let told = told.lock().unwrap();
    assert!(
        told.iter().all(|one| matches!(one, Told::Ack(..))),
        "{told:?}"
    );
    // The tenth packet of the flight.
    assert_eq!(told[1], Told::Ack(10, 1), "{told:?}");
}

#[test]
fn an_ack_of_part_of_a_burst_has_the_flight_of_the_whole_burst_on_both_kernels() {
    // Google's kernel stamps the skb; a stock kernel's sample has the end of the skb.
    for (name, facts) in [
        ("part-google", CcFacts::Google),
        ("part-stock", CcFacts::Stock),
    ] {
        let (mut sender, told) = recorded(name, facts);
        sends(&mut sender, START);
        sender.on_ack(START + RTT, &ack(1, START));
        let told = told.lock().unwrap();
        assert_eq!(told[0], Told::Ack(2, 0), "{name}");
    }
}

#[test]
fn a_sack_of_part_of_a_burst_has_the_whole_bursts_flight_if_the_packet_before_is_sacked() {
    // tcp_shift_skb_data() merges the part with the SACKed skb before it after the sample was taken.
    // Without such an skb, tcp_match_skb_to_sack() splits the part off before.
    for (name, facts) in [
        ("shift-google", CcFacts::Google),
        ("shift-stock", CcFacts::Stock),
    ] {
        let (mut sender, told) = recorded(name, facts);
        sends(&mut sender, START);
        for end in 3..7 {
            sender.on_ack(START + RTT, &sack(0, START, &[(2, end)]));
        }
        let told = told.lock().unwrap();
        let flights = told.iter().filter_map(|one| match one {
            Told::Ack(flight, _) => Some(*flight),
            Told::Lost(..) => None,
        });
        // Google's tcp_shifted_skb() subtracts the shifted part from the rest.
        let fourth = if facts == CcFacts::Google { 5 } else { 6 };
        assert_eq!(flights.collect::<Vec<_>>(), [3, 4, 6, fourth], "{name}");
    }
}

/// Notes which ACKs' newest packets were application-limited.
struct Limits(Arc<Mutex<Vec<bool>>>);

impl DynAlgorithm for Limits {
    fn init(&mut self, _conn: &Conn, _ctl: &mut Ctl) {}

    fn on_ack(&mut self, _conn: &Conn, ack: &Ack, _ctl: &mut Ctl) {
        self.0.lock().unwrap().push(ack.is_app_limited != 0);
    }

    fn on_event(&mut self, _conn: &Conn, _event: &Event, _ctl: &mut Ctl) {}

    fn info(&self, _info: &mut Info) {}
}

#[test]
fn the_first_flight_of_a_bulk_application_is_application_limited() {
    // tcp_sendmsg_locked() checks before it queues the first bytes; the bubble ends with the first packet
    // delivered (tcp_rate_gen()).
    let notes = Arc::new(Mutex::new(Vec::new()));
    let given = Arc::clone(&notes);
    let make = move |_: &[u32]| Box::new(Limits(Arc::clone(&given))) as Box<dyn DynAlgorithm>;
    let algorithm = register(
        "limits",
        "listens",
        flags::OWNS_CWND,
        Vec::new(),
        Vec::new(),
        Box::new(make),
    );
    let mut sender = establish(RTT, config(), Controller::new(algorithm, &[]).unwrap());
    assert_eq!(sends(&mut sender, START).len(), 10);
    for next in 1..=10 {
        sender.on_ack(START + RTT, &ack(next, START));
    }
    sends(&mut sender, START + RTT);
    sender.on_ack(START + 2 * RTT, &ack(11, START + RTT));
    let mut expected = vec![true; 10];
    expected.push(false);
    assert_eq!(*notes.lock().unwrap(), expected);
}

/// Counts CA_EVENT_TX_START.
struct Starts(Arc<Mutex<u32>>);

impl DynAlgorithm for Starts {
    fn init(&mut self, _conn: &Conn, _ctl: &mut Ctl) {}

    fn on_ack(&mut self, _conn: &Conn, _ack: &Ack, _ctl: &mut Ctl) {}

    fn on_event(&mut self, _conn: &Conn, event: &Event, _ctl: &mut Ctl) {
        *self.0.lock().unwrap() += u32::from(event.kind == EventKind::TxStart as u32);
    }

    fn info(&self, _info: &mut Info) {}
}

#[test]
fn a_retransmission_with_nothing_in_flight_is_a_transmission_start() {
    // tcp_event_data_sent(): CA_EVENT_TX_START if nothing is in flight, for retransmissions too.
    let starts = Arc::new(Mutex::new(0));
    let given = Arc::clone(&starts);
    let make = move |_: &[u32]| Box::new(Starts(Arc::clone(&given))) as Box<dyn DynAlgorithm>;
    let algorithm = register(
        "starts",
        "counts",
        0,
        Vec::new(),
        Vec::new(),
        Box::new(make),
    );
    let cc = Controller::new(algorithm, &[]).unwrap();
    let mut sender = establish(RTT, config(), cc);
    sends(&mut sender, START);
    assert_eq!(*starts.lock().unwrap(), 1);
    // A tail loss probe while all packets are in flight, then the timeout.
    expires(&mut sender);
    assert_eq!(*starts.lock().unwrap(), 1);
    expires(&mut sender);
    assert_eq!(*starts.lock().unwrap(), 2);
}
