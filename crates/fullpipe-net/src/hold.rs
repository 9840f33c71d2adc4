//! Packets that wait for one another and leave together, as behind a receiver that sends ACKs in
//! aggregates or a medium with slots. Never why they wait.

use fullpipe_plan::Hold as Plan;

/// Those that wait.
#[derive(Clone, Debug)]
pub struct Hold<P> {
    time_ns: u64,
    most: usize,
    waiting: Vec<P>,
    due_ns: Option<u64>,
}

impl<P> Hold<P> {
    /// None wait yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            time_ns: plan.time_ns,
            most: plan
                .packets
                .map_or(usize::MAX, |packets| packets.max(1) as usize),
            waiting: Vec::with_capacity(64),
            due_ns: None,
        }
    }

    /// Takes a packet. The first one sets when they leave; one that fills the group lets it go now.
    pub fn put(&mut self, now_ns: u64, packet: P) {
        self.due_ns = self.due_ns.or(Some(now_ns + self.time_ns));
        self.waiting.push(packet);
        if self.waiting.len() >= self.most {
            self.due_ns = Some(now_ns);
        }
    }

    /// Those that leave now, in their order.
    pub fn release(&mut self, now_ns: u64) -> impl Iterator<Item = P> + '_ {
        let is_due = self.due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if is_due {
            self.due_ns = None;
        }
        let end = if is_due { self.waiting.len() } else { 0 };
        self.waiting.drain(..end)
    }

    /// When they leave; `None` while none waits.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
