//! The dumbbell: one bottleneck each way, and the delay lines behind it.

use fullpipe_net::{
    derive_seed, purpose, DelayLine, JitterSource, LossSource, Packet, Queue, Shaper, Verdict,
};
use fullpipe_scenario::{Flow, Path, Qdisc};

use crate::packet::{Body, Travelling};

/// Bytes of credit that the testbeds give htb: one packet and a bit.
const BURST_BYTES: u32 = 1600;

/// A bottleneck: random loss, queue, rate.
pub(crate) struct Bottleneck {
    /// `None`: not limited, no queue.
    pub(crate) shaped: Option<Shaped>,
    loss: Option<LossSource>,
    /// Where one draw holds for a burst: the last one.
    burst_verdict: Option<Verdict>,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
}

/// A rate and its queue.
pub(crate) struct Shaped {
    pub(crate) queue: Queue<Travelling>,
    pub(crate) shaper: Shaper,
    /// A `Link` event is pending.
    pub(crate) waiting: bool,
}

impl Bottleneck {
    pub(crate) fn new(
        rate_bps: Option<u64>,
        mtu_bytes: u32,
        qdisc: &Qdisc,
        loss: Option<LossSource>,
        per_burst: bool,
        seed: u64,
    ) -> Option<Self> {
        let shaped = match rate_bps {
            None => None,
            Some(_) if qdisc.shapes() => return None,
            Some(rate_bps) => Some(Shaped {
                queue: Queue::with_mtu(qdisc, rate_bps, seed, mtu_bytes),
                shaper: Shaper::new(rate_bps, BURST_BYTES),
                waiting: false,
            }),
        };
        Some(Self {
            shaped,
            loss,
            burst_verdict: per_burst.then_some(Verdict::Pass),
            lost: 0,
            marked: 0,
        })
    }

    /// Random loss; false if the packet is gone.
    pub(crate) fn survives(&mut self, packet: &mut Travelling) -> bool {
        let Some(loss) = &mut self.loss else {
            return true;
        };
        let follows = matches!(&packet.body, Body::Data(data) if !data.leads_burst);
        let verdict = match self.burst_verdict {
            Some(verdict) if follows => verdict,
            _ => loss.next(),
        };
        if self.burst_verdict.is_some() {
            self.burst_verdict = Some(verdict);
        }
        match verdict {
            Verdict::Pass => true,
            Verdict::Mark if packet.ecn_capable() => {
                packet.mark_ce();
                self.marked += 1;
                true
            }
            Verdict::Mark | Verdict::Drop => {
                self.lost += 1;
                false
            }
        }
    }
}

/// A delay line, with jitter where there is any.
pub(crate) struct Line {
    pub(crate) packets: DelayLine<Travelling>,
    pub(crate) delay_ns: u64,
    /// An event for the head is on the agenda. There is never a second one: it would live, and be
    /// put back, as long as the line holds packets.
    pub(crate) is_awaited: bool,
    jitter: Option<JitterSource>,
}

impl Line {
    fn new(delay_ns: u64, jitter: Option<JitterSource>) -> Self {
        Self {
            packets: DelayLine::default(),
            delay_ns,
            is_awaited: false,
            jitter,
        }
    }

    /// When a packet that enters at `at_ns` comes out.
    pub(crate) fn due_ns(&mut self, at_ns: u64) -> u64 {
        let released_ns = self
            .jitter
            .as_mut()
            .map_or(at_ns, |jitter| jitter.release_ns(at_ns));
        released_ns + self.delay_ns
    }
}

/// The two bottlenecks of a path.
pub(crate) fn bottlenecks(path: &Path, seed: u64) -> Option<[Bottleneck; 2]> {
    let source = |loss: &Option<fullpipe_scenario::Loss>, purpose| {
        loss.as_ref()
            .map(|loss| LossSource::new(loss, derive_seed(seed, purpose, 0)))
    };
    let red = |index| derive_seed(seed, purpose::RED, index);
    let loss = source(&path.loss, purpose::LOSS);
    let reverse_loss = source(&path.reverse_loss, purpose::REVERSE_LOSS);
    Some([
        Bottleneck::new(
            Some(path.rate_bps),
            path.mtu_bytes,
            &path.qdisc,
            loss,
            path.loss.as_ref().is_some_and(|loss| loss.per_burst),
            red(0),
        )?,
        Bottleneck::new(
            path.reverse_rate_bps,
            path.mtu_bytes,
            &path.reverse_qdisc,
            reverse_loss,
            false,
            red(1),
        )?,
    ])
}

/// The lines of one owner: what follows the forward and the reverse bottleneck. Jitter lies on the
/// way back.
pub(crate) fn lines(path: &Path, flow: Option<&Flow>, index: u32, seed: u64) -> [Line; 2] {
    let own = |get: fn(&Flow) -> Option<u64>, common| flow.and_then(get).unwrap_or(common);
    let forward_ns = own(|flow| flow.forward_delay_ns, path.forward_delay_ns);
    let reverse_ns = own(|flow| flow.reverse_delay_ns, path.reverse_delay_ns);
    let jitter = flow
        .and_then(|flow| flow.jitter.as_ref())
        .or(path.jitter.as_ref());
    let source = jitter
        .filter(|jitter| jitter.max_ns > 0)
        .map(|jitter| JitterSource::new(jitter, derive_seed(seed, purpose::JITTER, index)));
    [Line::new(forward_ns, None), Line::new(reverse_ns, source)]
}
