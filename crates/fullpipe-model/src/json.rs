//! Runs described and answered in JSON, for bindings.

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::batch::run_many;
use crate::extended;
use crate::run::run;
use crate::spec::SpecError;

/// Runs of the published model: an array of [`crate::Spec`] in, an array of
/// [`crate::Outcome`] out, on at most `threads` threads.
///
/// # Errors
/// What is wrong with the first spec that cannot be read or run.
pub fn fluid(specs: &str, threads: usize) -> Result<String, String> {
    batch(specs, threads, run)
}

/// Runs of the extended model: an array of [`extended::ExtendedSpec`] in, an array of
/// [`extended::ExtendedOutcome`] out, on at most `threads` threads.
///
/// # Errors
/// What is wrong with the first spec that cannot be read or run.
pub fn fluid_extended(specs: &str, threads: usize) -> Result<String, String> {
    batch(specs, threads, extended::run)
}

fn batch<Spec: DeserializeOwned + Sync, Outcome: Serialize + Send>(
    specs: &str,
    threads: usize,
    work: fn(&Spec) -> Result<Outcome, SpecError>,
) -> Result<String, String> {
    let specs: Vec<Spec> = serde_json::from_str(specs).map_err(|error| error.to_string())?;
    let outcomes = run_many(&specs, threads, work)
        .into_iter()
        .collect::<Result<Vec<_>, _>>();
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    serde_json::to_string(&outcomes).map_err(|error| error.to_string())
}
