//! A receiver under test, and the packets that come to it. Times are in ns since the connection was
//! established.

use fullpipe_plan::{AckPolicy, Kernel};
use fullpipe_tcp::{Ack, Data, EcnFeedback, ReaderStalls, Receiver, ReceiverConfig, Rules};

use super::script::{MS, MSS};

const START: u64 = 1_000 * MS;

/// How a receiver is set up: the application reads at once, and the window never limits.
pub(crate) struct Terms {
    pub(crate) policy: AckPolicy,
    pub(crate) kernel: Kernel,
    /// `None`: autotuned.
    pub(crate) window_bytes: Option<u64>,
    pub(crate) rmem_bytes: u64,
    pub(crate) low_water_bytes: u32,
    pub(crate) work_ns: u64,
    pub(crate) stalls: Option<ReaderStalls>,
    pub(crate) aggregation_ns: u64,
    pub(crate) feedback: EcnFeedback,
    /// RTT of the handshake; `None`: not measured.
    pub(crate) rtt_ns: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            policy: AckPolicy::Linux,
            kernel: Kernel::default(),
            window_bytes: Some(1 << 20),
            rmem_bytes: 64 << 20,
            low_water_bytes: 1,
            work_ns: 0,
            stalls: None,
            aggregation_ns: 0,
            feedback: EcnFeedback::Latched,
            rtt_ns: Some(40 * MS),
        }
    }
}

/// A full packet. It left the sender at time 0 and echoes no timestamp.
pub(crate) fn data(number: u32) -> Data {
    Data {
        number,
        payload_bytes: MSS,
        departs_ns: START,
        ..Data::default()
    }
}

/// The same, sent at this time.
pub(crate) fn data_at(number: u32, at_ns: u64) -> Data {
    Data {
        departs_ns: START + at_ns,
        ..data(number)
    }
}

/// The same, which echoes the timestamp of an ACK that was sent at this time.
pub(crate) fn echoing(number: u32, at_ns: u64) -> Data {
    Data {
        echo_ns: START + at_ns,
        ..data(number)
    }
}

pub(crate) struct Reader {
    receiver: Receiver,
    now_ns: u64,
    acks: Vec<Ack>,
}

impl Reader {
    pub(crate) fn new(terms: Terms) -> Self {
        let mut receiver = Receiver::new(ReceiverConfig {
            mss_bytes: MSS,
            ack_policy: terms.policy,
            rules: Rules::from(terms.kernel),
            window_bytes: terms.window_bytes,
            rmem_max_bytes: terms.rmem_bytes,
            rcvlowat_bytes: terms.low_water_bytes,
            work_ns: terms.work_ns,
            reader_stalls: terms.stalls,
            aggregation_ns: terms.aggregation_ns,
            feedback: terms.feedback,
        });
        receiver.establish(START, terms.rtt_ns);
        Self {
            receiver,
            now_ns: START,
            acks: Vec::new(),
        }
    }

    /// After packets 0 to `count - 1`, which came 1 ms apart.
    pub(crate) fn settled(terms: Terms, count: u32) -> Self {
        let mut reader = Self::new(terms);
        for number in 0..count {
            reader.at(u64::from(number) * MS).gets(data(number));
        }
        reader
    }

    /// Moves the clock. A timer that is due before is a fault of the script or of the receiver.
    pub(crate) fn at(&mut self, at_ns: u64) -> &mut Self {
        let now_ns = START + at_ns;
        assert!(now_ns >= self.now_ns, "the script goes back");
        let due_ns = self.receiver.timer_ns().unwrap_or(u64::MAX);
        assert!(due_ns >= now_ns, "a timer is due before");
        self.now_ns = now_ns;
        self
    }

    pub(crate) fn now(&self) -> u64 {
        self.now_ns - START
    }

    /// A packet comes: the ACKs that it causes at once. `3 [5-7]` expects packet 3 and has a SACK block of 5
    /// and 6, a DSACK is `d[1-2]`.
    pub(crate) fn gets(&mut self, packet: Data) -> String {
        let answer = self.receiver.on_data(self.now_ns, &packet);
        let first = self.receiver.take_preceding_ack();
        self.answers(first, answer)
    }

    /// Whether each of these packets is acknowledged at once.
    pub(crate) fn answers_to(&mut self, numbers: std::ops::Range<u32>) -> Vec<bool> {
        numbers
            .map(|number| !self.gets(data(number)).is_empty())
            .collect()
    }

    fn answers(&mut self, first: Option<Ack>, second: Option<Ack>) -> String {
        let acks: Vec<Ack> = first.into_iter().chain(second).collect();
        self.acks.extend(&acks);
        acks.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// The next timer expires: when, since the establishment, and the ACKs that it causes.
    pub(crate) fn fires(&mut self) -> (u64, String) {
        self.now_ns = self.receiver.timer_ns().expect("a timer runs");
        let answer = self.receiver.on_timer(self.now_ns);
        let first = self.receiver.take_preceding_ack();
        (self.now(), self.answers(first, answer))
    }

    /// When the next timer expires.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.receiver.timer_ns().map(|at_ns| at_ns - START)
    }

    /// When it would expire if the timer wheel had no ticks.
    pub(crate) fn exact_timer(&self) -> u64 {
        self.receiver.timer_lower_bound_ns() - START
    }

    /// The newest ACK.
    pub(crate) fn last(&self) -> Ack {
        *self.acks.last().expect("an ACK was sent")
    }

    /// When the packet left whose timestamp the newest ACK echoes.
    pub(crate) fn echo(&self) -> u64 {
        self.last().echo_ns - START
    }

    pub(crate) fn window_bytes(&self) -> u64 {
        self.receiver.window_bytes()
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered_bytes()
    }

    /// The ACK of this side's FIN came.
    pub(crate) fn is_acknowledged(&mut self) {
        self.receiver.on_last_ack();
    }
}

fn text(ack: &Ack) -> String {
    let mut text = ack.next.to_string();
    for (place, block) in ack.blocks[..usize::from(ack.count)].iter().enumerate() {
        let sign = if ack.dsack && place == 0 { " d" } else { " " };
        text += &format!("{sign}[{}-{}]", block.start, block.end);
    }
    if ack.fin {
        text += " fin";
    }
    text
}
