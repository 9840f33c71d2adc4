//! Rates and delays that change at known times: from a plan, or from a trace in a file.

mod files;
pub(crate) mod opportunities;
pub(crate) mod schedule;
#[cfg(test)]
mod tests;

pub use self::files::{DelayTrace, RateTrace, TraceFile, MAX_LINES, OPPORTUNITY_BYTES};
