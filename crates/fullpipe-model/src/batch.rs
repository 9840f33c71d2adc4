//! Many runs at once, each on one thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Calls `work` on every input, with at most `threads` at a time, and returns the results in the
/// order of the inputs.
pub fn run_many<T: Sync, R: Send>(
    inputs: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(inputs.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, inputs.len().max(1)) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(input) = inputs.get(index) else {
                    return;
                };
                let result = work(input);
                done.lock()
                    .expect("no holder of the lock can panic")
                    .push((index, result));
            });
        }
    });
    let mut results = done.into_inner().expect("no holder of the lock can panic");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
