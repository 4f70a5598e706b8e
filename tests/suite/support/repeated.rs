//! Tests whose verdict chance or a busy machine may turn.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::{listed, watch};

/// How often a test may run until it holds.
const ATTEMPTS: u32 = 3;
/// How much of a failure is listed, in characters: some compare whole files.
const SHOWN: usize = 500;

/// Runs a sampled or live test again if it fails, twice at most. Each repetition is reported with what
/// failed, at once and at the end of `scripts/test.sh`: it is to be seen, and its cause to be cured.
///
/// # Panics
///
/// As the test does at its last attempt.
pub fn repeated(test: impl Fn()) {
    watch();
    until_it_holds(test, |repetition| listed("repeated", repetition));
}

fn until_it_holds(test: impl Fn(), mut report: impl FnMut(&str)) {
    for attempt in 1.. {
        let Err(failure) = panic::catch_unwind(AssertUnwindSafe(&test)) else {
            return;
        };
        if attempt == ATTEMPTS {
            panic::resume_unwind(failure);
        }
        let next = attempt + 1;
        let failed: String = message(&*failure).chars().take(SHOWN).collect();
        let failed = failed.replace('\n', " ");
        report(&format!("{next} of {ATTEMPTS}: {failed}"));
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{ATTEMPTS, message, until_it_holds};

    #[test]
    fn a_test_that_never_holds_fails() {
        let mut reports = Vec::new();
        let never = || panic!("never");
        let run = AssertUnwindSafe(|| until_it_holds(never, |text| reports.push(text.to_owned())));
        assert_eq!(message(&*catch_unwind(run).unwrap_err()), "never");
        assert_eq!(reports, ["2 of 3: never", "3 of 3: never"]);
    }

    #[test]
    fn a_test_runs_until_it_holds() {
        let runs = Cell::new(0);
        let at_last = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() == ATTEMPTS, "{} of {ATTEMPTS}", runs.get());
        };
        let mut reports = 0;
        until_it_holds(at_last, |_| reports += 1);
        assert_eq!((runs.get(), reports), (ATTEMPTS, ATTEMPTS - 1));
    }
}
