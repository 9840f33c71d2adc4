//! Values that change at known times. Must not know whether they are rates or delays.

use super::files::DelayTrace;

/// Steps in order of time, read at times that never decrease.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    steps: Vec<(u64, u64)>,
    next: usize,
    /// After which the steps repeat.
    period_ns: Option<u64>,
    /// When the current round began.
    round_ns: u64,
}

impl Schedule {
    /// Steps of time and value. The error names the step that is out of order.
    fn new(steps: &[(u64, u64)]) -> Result<Self, String> {
        match steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            Some(pair) => Err(format!("a step at {} ns does not follow one", pair[1].0)),
            None => Ok(Self {
                steps: steps.to_vec(),
                next: 0,
                period_ns: None,
                round_ns: 0,
            }),
        }
    }

    /// The steps of a key of the plan; `None`: it has none.
    pub(crate) fn of_steps(key: &str, steps: &[(u64, u64)]) -> Result<Option<Self>, String> {
        if steps.is_empty() {
            return Ok(None);
        }
        let made = Self::new(steps).map_err(|error| format!("{key}: {error}"))?;
        Ok(Some(made))
    }

    /// Steps of a trace, which begin at 0 and end before its period.
    pub(crate) fn repeated(trace: DelayTrace) -> Self {
        Self {
            steps: trace.steps,
            next: 0,
            period_ns: Some(trace.period_ns),
            round_ns: 0,
        }
    }

    /// The value, if it has changed since the last call.
    pub(crate) fn changed(&mut self, now_ns: u64) -> Option<u64> {
        let mut value = None;
        while let Some(&(at_ns, new)) = self.steps.get(self.next) {
            if self.round_ns + at_ns > now_ns {
                break;
            }
            value = Some(new);
            self.next += 1;
            if let (Some(period_ns), true) = (self.period_ns, self.next == self.steps.len()) {
                self.round_ns += period_ns;
                self.next = 0;
            }
        }
        value
    }

    /// When the value changes next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.steps
            .get(self.next)
            .map(|&(at_ns, _)| self.round_ns + at_ns)
    }
}
