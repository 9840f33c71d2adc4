//! The random path between the model and the peer of a drawn script: what it loses, delays and marks.

use fullpipe_net::Rng;

/// A path, and how its peer behaves.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rtt_us: u64,
    /// Time between two packets at the bottleneck.
    pub(crate) gap_us: u64,
    /// Most additional delay of a packet.
    pub(crate) jitter_us: u64,
    /// Of a thousand packets: lost, lost ACKs, overtaken, duplicated, marked.
    pub(crate) lost: u64,
    pub(crate) acks_lost: u64,
    pub(crate) late: u64,
    pub(crate) twice: u64,
    pub(crate) marked: u64,
    /// The last packets of the data are lost when they are first sent.
    pub(crate) loses_tail: bool,
    /// The peer acknowledges every second packet.
    pub(crate) delays_acks: bool,
    pub(crate) window_bytes: u64,
    /// Of a thousand ACKs: after which the peer's application stops reading.
    pub(crate) pauses: u64,
}

/// Makes drawing readable.
pub(crate) struct Dice(Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.up_to(from.len() as u64 - 1) as usize]
    }

    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        self.0.up_to(most)
    }

    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.up_to(most - least)
    }

    /// Of a range whose octaves are equally likely.
    pub(crate) fn log(&mut self, least: u64, most: u64) -> u64 {
        let octaves = (most / least).max(1).ilog2();
        let from = least << self.up_to(octaves.into());
        self.between(from, (2 * from).min(most))
    }

    /// Of the first range in so many of a thousand cases, else of the second.
    pub(crate) fn either(
        &mut self,
        of_thousand: u64,
        first: (u64, u64),
        second: (u64, u64),
    ) -> u64 {
        let (least, most) = if self.happens(of_thousand) {
            first
        } else {
            second
        };
        self.log(least, most)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn happens(&mut self, of_thousand: u64) -> bool {
        self.0.up_to(999) < of_thousand
    }
}

impl Path {
    pub(crate) fn draw(dice: &mut Dice, has_ecn: bool) -> Self {
        Self {
            rtt_us: dice.choose(&[10_310, 40_770, 100_430, 200_190]) + dice.up_to(900),
            gap_us: dice.choose(&[630, 1_370, 2_710]),
            jitter_us: dice.choose(&[0, 0, 5_000]),
            lost: dice.choose(&[0, 20, 50, 150, 300]),
            acks_lost: dice.choose(&[0, 100, 300]),
            late: dice.choose(&[0, 0, 50, 200]),
            twice: dice.choose(&[0, 0, 0, 100]),
            marked: if has_ecn {
                dice.choose(&[30, 100, 300])
            } else {
                0
            },
            loses_tail: dice.happens(333),
            delays_acks: dice.happens(333),
            window_bytes: dice.choose(&[524_000, 524_000, 524_000, 15_000, 30_000]) & !7,
            pauses: 0,
        }
    }

    /// Lets the peer's application stop reading, behind a window that its data fill.
    pub(crate) fn with_pauses(self, dice: &mut Dice) -> Self {
        Self {
            window_bytes: dice.choose(&[2_000, 4_000, 8_000, 15_000]),
            pauses: dice.choose(&[100, 300]),
            ..self
        }
    }
}
