//! Runs described and answered in JSON, for bindings.

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::batch::run_many;
use crate::spec::SpecError;

/// Runs of a model ([`crate::run`] or [`crate::extended::run`]): an array of its specs in, an array of
/// its outcomes out, on at most `threads` threads.
///
/// # Errors
/// What is wrong with the first spec that cannot be read or run.
pub fn runs<Spec: DeserializeOwned + Sync, Outcome: Serialize + Send>(
    specs: &str,
    threads: usize,
    run: fn(&Spec) -> Result<Outcome, SpecError>,
) -> Result<String, String> {
    let specs: Vec<Spec> = serde_json::from_str(specs).map_err(|error| error.to_string())?;
    let outcomes: Result<Vec<_>, _> = run_many(&specs, threads, run).into_iter().collect();
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    serde_json::to_string(&outcomes).map_err(|error| error.to_string())
}
