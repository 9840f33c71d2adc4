//! Panics of a library as what they say. Must never know what panicked.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, UnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether what this thread does is caught, and said by whoever asked for it.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; what it says where it panics, which is then not written to the standard error
/// as well. All other panics are said as before, those of other threads meanwhile too.
pub(crate) fn caught<T>(work: impl FnOnce() -> T + UnwindSafe) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                usual(panic);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let found = catch_unwind(work);
    IS_CAUGHT.set(before);
    found.map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other
            .downcast_ref::<&str>()
            .copied()
            .unwrap_or("no reason is given")
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    static SAID: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn a_panic_that_is_caught_is_told_and_not_said_and_all_others_are_said() {
        // A hook that counts stands where the usual one writes.
        set_hook(Box::new(|_| {
            SAID.fetch_add(1, SeqCst);
        }));
        let index = std::hint::black_box(7);
        assert_eq!(
            caught(|| [1, 2, 3].get(index).copied().expect("an index within")),
            Err("an index within".to_owned())
        );
        assert_eq!(
            caught(|| panic!("level {index}")),
            Err::<(), _>("level 7".to_owned())
        );
        assert_eq!(
            caught(|| panic_any(index)),
            Err::<(), _>("no reason is given".to_owned())
        );
        assert_eq!(caught(|| index), Ok(7));
        assert_eq!(SAID.load(SeqCst), 0);
        assert!(catch_unwind(|| panic!("another")).is_err());
        assert_eq!(SAID.load(SeqCst), 1);
        let elsewhere = caught(|| std::thread::spawn(|| panic!("in another thread")).join());
        assert!(elsewhere.is_ok_and(|joined| joined.is_err()));
        assert_eq!(SAID.load(SeqCst), 2);
    }
}
