//! Tests whose verdict chance or a busy machine may turn.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::{listed, watch};

/// How often a test may run until it holds.
const ATTEMPTS: u32 = 3;

/// Runs a sampled or live test again if it fails, twice at most. Each repetition is reported with what
/// failed, at once and at the end of `scripts/test.sh`: it is to be seen, and its cause to be cured.
///
/// # Panics
///
/// As the test does at its last attempt.
pub fn repeated(test: impl Fn()) {
    watch();
    for attempt in 1.. {
        let Err(failure) = panic::catch_unwind(AssertUnwindSafe(&test)) else {
            return;
        };
        if attempt == ATTEMPTS {
            panic::resume_unwind(failure);
        }
        let next = attempt + 1;
        let failed = message(&*failure).replace('\n', " ");
        listed("repeated", &format!("{next} of {ATTEMPTS}: {failed}"));
    }
}

/// What a panic said.
fn message(failure: &(dyn Any + Send)) -> &str {
    let text = failure.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| failure.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::catch_unwind;

    use super::{ATTEMPTS, message, repeated};

    #[test]
    fn a_test_that_never_holds_fails() {
        let failure = catch_unwind(|| repeated(|| panic!("planted: never"))).unwrap_err();
        assert_eq!(message(&*failure), "planted: never");
    }

    #[test]
    fn a_test_runs_until_it_holds() {
        let runs = Cell::new(0);
        repeated(|| {
            runs.set(runs.get() + 1);
            assert!(
                runs.get() == ATTEMPTS,
                "planted: {} of {ATTEMPTS}",
                runs.get()
            );
        });
        assert_eq!(runs.get(), ATTEMPTS);
    }
}
