//! Work on many items by several threads, with answers that do not depend on how many there are.
//!
//! Scoped threads instead of rayon: a caller says how many threads work, none outlives the call (a
//! pool would run in every program that uses the library, and in the recorder's child after a
//! fork), and a map is all that is needed.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::workers;

/// Returns what `answer` says of each item, in the order of the items.
///
/// At most `workers` threads answer, this one included; each takes the next item that nobody has
/// taken, so items of very different cost are best given largest first. Fewer threads answer where
/// the system gives no more. If `answer` panics, so does this.
pub(crate) fn map<T: Sync, A: Send>(
    workers: NonZeroUsize,
    items: &[T],
    answer: impl Fn(&T) -> A + Sync,
) -> Vec<A> {
    let ((), answers) = map_after(workers, || (), items, || (), |(), item| answer(item));
    answers
}

/// Does what [`map`] does, while this thread does `first` something else before it helps. `answer`
/// gets what `scratch` makes once in each thread.
pub(crate) fn map_after<F, T: Sync, S, A: Send>(
    most: NonZeroUsize,
    first: impl FnOnce() -> F,
    items: &[T],
    scratch: impl Fn() -> S + Sync,
    answer: impl Fn(&mut S, &T) -> A + Sync,
) -> (F, Vec<A>) {
    let answers: Vec<Mutex<Option<A>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scratch = scratch();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(item), Some(place)) = (items.get(index), answers.get(index)) else {
                return;
            };
            let answer = answer(&mut scratch, item);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
    };
    let first = workers::scope(|scope| {
        let others = 1..most.get().min(items.len());
        // Where no thread can be had, those that there are do the work.
        let others: Vec<_> = others.map_while(|_| scope.start(work).ok()).collect();
        let first = first();
        work();
        for other in others {
            // The scope alone would not pass on what the panic says.
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        first
    });
    // Every item has an answer, as no thread panicked.
    let answers = answers.into_iter().filter_map(|place| {
        let answer = place.into_inner();
        answer.unwrap_or_else(PoisonError::into_inner)
    });
    (first, answers.collect())
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const WORKERS: [usize; 4] = [1, 2, 3, 64];

    #[test]
    fn answers_are_in_the_order_of_items_for_any_number_of_workers() {
        for count in [0, 1, 2, 100] {
            let items: Vec<u64> = (0..count).collect();
            for workers in WORKERS {
                let answers = map(NonZeroUsize::new(workers).unwrap(), &items, |&item| {
                    // The first takes longest.
                    thread::sleep(Duration::from_micros(100 - item));
                    item * item
                });
                let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
                assert_eq!(answers, squares, "{workers} workers");
            }
        }
    }

    #[test]
    fn no_more_threads_work_than_are_wanted() {
        for workers in WORKERS {
            let items = [(); 200];
            let threads = Mutex::new(Vec::new());
            let scratch = || threads.lock().unwrap().push(thread::current().id());
            let count = NonZeroUsize::new(workers).unwrap();
            let (first, answers) = map_after(count, || 7, &items, scratch, |(), ()| ());
            assert_eq!((first, answers.len()), (7, 200));
            let threads = threads.into_inner().unwrap();
            assert_eq!(threads.len(), workers);
            assert!(threads.contains(&thread::current().id()));
        }
    }

    #[test]
    fn a_panic_is_passed_on_with_what_it_says() {
        for workers in WORKERS {
            let panic = catch_unwind(|| {
                map(NonZeroUsize::new(workers).unwrap(), &[1, 2, 3], |&item| {
                    assert!(item < 3, "{item} is too many");
                })
            })
            .unwrap_err();
            assert_eq!(panic.downcast_ref::<String>().unwrap(), "3 is too many");
        }
    }
}
