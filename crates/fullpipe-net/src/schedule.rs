//! Values that change at known times: a rate or a delay that a plan lists. Never what they are for.

/// Steps in the order of time; read with times that never decrease.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    steps: Vec<(u64, u64)>,
    next: usize,
}

impl Schedule {
    /// Pairs of time and value; the error says what is wrong with them.
    pub(crate) fn new(steps: &[(u64, u64)]) -> Result<Self, String> {
        match steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            Some(pair) => Err(format!("a step at {} ns does not follow one", pair[1].0)),
            None => Ok(Self {
                steps: steps.to_vec(),
                next: 0,
            }),
        }
    }

    /// The value that has come into force since the last call, if one has.
    pub(crate) fn changed(&mut self, now_ns: u64) -> Option<u64> {
        let mut value = None;
        while let Some(&(at_ns, new)) = self.steps.get(self.next) {
            if at_ns > now_ns {
                break;
            }
            value = Some(new);
            self.next += 1;
        }
        value
    }

    /// When the value changes next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.steps.get(self.next).map(|&(at_ns, _)| at_ns)
    }
}
