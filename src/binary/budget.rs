//! What reading a file and its debug files may cost.
//!
//! A few bytes can ask for much: sections that grow a thousandfold when they are inflated, holes of
//! a sparse file, a million inlined calls that share one list of a million ranges. So everything
//! that is larger in memory than on the disk is charged, in bytes, to a budget that depends on the
//! size on the disk:
//!
//! ```text
//!   share of a file     10 × (bytes on the disk of it and of its debug files) + 4 MiB for each
//!     tables            symbols, strings, unwind tables: within the share, or left out
//!     debug information within the share; beyond it all files together may take 256 MiB
//! ```
//!
//! Sound files stay within their share: compressed debug information grows about fourfold, and what
//! is read of it takes as much again. Where the files together need more than that, the debug
//! information of every file that is beyond its share is left out. That does not depend on the
//! order in which threads ask, as no request is ever forgotten before its file is closed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryTaken;

// Bytes of memory that a byte on the disk may take.
const RATIO: u64 = 10;
// What every file may take in addition, in bytes: the ratio is too strict for small files.
const FLAT: u64 = 4 << 20;
// What the debug information of all files may take beyond their shares.
const POOL: u64 = 256 << 20;
// Bytes that an account fetches at a time.
const PORTION: i64 = 256 << 10;
// Bytes that an entry kept of debug information counts: a row, a range, a call.
const ENTRY: u64 = 24;

// What the debug information of all files of a process has taken beyond their shares.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<AtomicU64>);

impl Pool {
    fn is_overdrawn(&self) -> bool {
        self.0.load(Ordering::Relaxed) > POOL
    }
}

#[derive(Debug)]
pub(super) struct Budget {
    pool: Pool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    // The files that count, by device and inode: each once, however often it is opened.
    files: Vec<(u64, u64)>,
    share: u64,
    tables: u64,
    debug: u64,
    // Whether the debug information was left out; once it was, it is.
    is_left_out: bool,
    // Whether it ever took more than the share.
    was_beyond: bool,
}

impl State {
    fn beyond(&self) -> u64 {
        self.debug.saturating_sub(self.share)
    }
}

impl Budget {
    pub(super) fn new(pool: &Pool) -> Arc<Budget> {
        Arc::new(Budget {
            pool: pool.clone(),
            state: Mutex::default(),
        })
    }

    pub(super) fn add_file(&self, metadata: &Metadata) {
        let mut state = self.state();
        let file = (metadata.dev(), metadata.ino());
        if !state.files.contains(&file) {
            state.files.push(file);
            drop(state);
            self.add_bytes(on_disk(metadata));
        }
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.change(|state| {
            let share = bytes.saturating_mul(RATIO).saturating_add(FLAT);
            state.share = state.share.saturating_add(share);
        });
    }

    // `false` where the share is used up; nothing is taken then.
    pub(super) fn take_for_table(&self, bytes: u64) -> bool {
        let mut state = self.state();
        let after = state.tables.saturating_add(bytes);
        let fits = after <= state.share;
        if fits {
            state.tables = after;
        }
        fits
    }

    pub(super) fn taken(&self) -> MemoryTaken {
        let state = self.state();
        MemoryTaken {
            tables: state.tables,
            debug_information: state.debug,
            share: state.share,
        }
    }

    // Whether the debug information of this file has to be left out. Once that was the answer, it
    // stays so, whatever is given back.
    pub(super) fn is_overdrawn(&self) -> bool {
        let mut state = self.state();
        state.is_left_out |= self.pool.is_overdrawn() && state.beyond() > 0;
        state.is_left_out
    }

    // The debug information took more than the share of the file: it then depends on other files
    // whether it is used.
    pub(super) fn was_beyond(&self) -> bool {
        self.state().was_beyond
    }

    fn take_for_debug(&self, bytes: u64) -> bool {
        self.change(|state| state.debug = state.debug.saturating_add(bytes));
        !self.is_overdrawn()
    }

    fn give_back(&self, bytes: u64) {
        self.change(|state| state.debug = state.debug.saturating_sub(bytes));
    }

    // Changes what was taken, and in the pool what of it is beyond the share.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        let before = state.beyond();
        change(&mut state);
        let after = state.beyond();
        state.was_beyond |= after > 0;
        let pool = &self.pool.0;
        if after > before {
            pool.fetch_add(after - before, Ordering::Relaxed);
        } else {
            pool.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.change(|state| state.debug = 0);
    }
}

// Holes take no bytes on a disk. Where the system does not tell, the file's size.
pub(super) fn on_disk(metadata: &Metadata) -> u64 {
    match metadata.blocks() {
        0 => metadata.len(),
        blocks => blocks.saturating_mul(512).min(metadata.len()),
    }
}

// More holes than its share could hold.
pub(super) fn is_sparse(metadata: &Metadata) -> bool {
    metadata.len() > on_disk(metadata).saturating_mul(RATIO).saturating_add(FLAT)
}

// What one reader of debug information has taken; given back when it is dropped. Threads share it.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    taken: AtomicU64,
    // What was fetched and is not used yet; below zero for the moment in which more is fetched.
    left: AtomicI64,
    is_refused: AtomicBool,
}

impl Account {
    pub(super) fn new(budget: &Arc<Budget>) -> Account {
        Account {
            budget: budget.clone(),
            taken: AtomicU64::new(0),
            left: AtomicI64::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    // Bytes, or the time that it takes to look at as many. `false` once there are no more.
    pub(super) fn take(&self, bytes: u64) -> bool {
        if self.is_refused() {
            return false;
        }
        let wanted = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.left.fetch_sub(wanted, Ordering::Relaxed) >= wanted {
            return true;
        }
        let portion = wanted.max(PORTION);
        let fetched = portion.cast_unsigned();
        self.taken.fetch_add(fetched, Ordering::Relaxed);
        let is_refused = !self.budget.take_for_debug(fetched);
        self.left.fetch_add(portion, Ordering::Relaxed);
        if is_refused {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        !is_refused
    }

    // Takes the memory of `count` entries that are kept; whether there is enough.
    pub(super) fn take_entries(&self, count: u64) -> bool {
        self.take(count.saturating_mul(ENTRY))
    }

    // Here or, as another file asked for too much, of this file.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.give_back(self.taken.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::base::parallel;

    fn budget(pool: &Pool, on_disk: u64) -> Arc<Budget> {
        let budget = Budget::new(pool);
        budget.add_bytes(on_disk);
        budget
    }

    #[test]
    fn tables_stay_within_the_share_of_their_file() {
        let budget = budget(&Pool::default(), 1 << 20);
        let share = (10 << 20) + FLAT;
        assert!(budget.take_for_table(share - 1));
        assert!(!budget.take_for_table(2));
        assert!(budget.take_for_table(1));
        let taken = budget.taken();
        assert_eq!((taken.tables, taken.debug_information), (share, 0));
        assert_eq!(taken.share, share);
    }

    #[test]
    fn debug_information_may_take_what_is_in_the_pool_beyond_the_share() {
        let pool = Pool::default();
        let file = budget(&pool, 0);
        let account = Account::new(&file);
        assert!(account.take(FLAT + POOL));
        assert!(!account.take(1) && account.is_refused() && file.is_overdrawn());
    }

    #[test]
    fn files_beyond_their_share_are_all_left_out_whatever_the_order() {
        for order in [[0, 1], [1, 0]] {
            let pool = Pool::default();
            let files = [budget(&pool, 0), budget(&pool, 0), budget(&pool, 0)];
            let accounts: Vec<Account> = files.iter().map(Account::new).collect();
            assert!(accounts[2].take(FLAT / 2), "within its share");
            for file in order {
                accounts[file].take(FLAT + POOL / 3 * 2);
            }
            let left_out = || files.each_ref().map(|file| file.is_overdrawn());
            assert_eq!(left_out(), [true, true, false]);
            drop(accounts);
            assert_eq!(left_out(), [true, true, false]);
        }
    }

    #[test]
    fn memory_of_an_account_is_returned_when_it_is_dropped() {
        let pool = Pool::default();
        let file = budget(&pool, 0);
        for _ in 0..4 {
            assert!(Account::new(&file).take(FLAT + POOL));
        }
        let other = budget(&pool, 0);
        let account = Account::new(&other);
        assert!(account.take(FLAT + POOL));
        drop((account, other));
        assert_eq!(pool.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn threads_cannot_take_more_than_there_is_by_more_than_their_portions() {
        let file = budget(&Pool::default(), 0);
        let account = Account::new(&file);
        let granted = AtomicU64::new(0);
        let take = || {
            while account.take(4096) {
                granted.fetch_add(4096, Ordering::Relaxed);
            }
        };
        parallel::map(NonZeroUsize::new(4).unwrap(), &[(); 4], |()| take());
        let granted = granted.into_inner();
        let all = FLAT + POOL;
        let slack = 8 * PORTION.cast_unsigned();
        assert!(
            granted <= all + slack && granted + slack >= all,
            "{granted}"
        );
    }
}
