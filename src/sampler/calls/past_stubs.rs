//! Puts the original calls back where calls are no longer counted, so that they pass no stub.
//!
//! ```text
//!   call stub ─▶ lock incq counter; jmp lex      given up: at once, in all threads and processes
//!   call stub ─▶ jmp lex
//!                                                all threads stand still
//!   call lex                                     as it was; one process after the other
//! ```
//!
//! The distance of a call may cross the border of a cache line, so another thread could execute a
//! half-written one. So each process stops for a moment. One whose threads do not stop in time goes
//! on as it is and is tried again. A process that is forked after the list of processes was made is
//! not found: its calls go through the stubs, which do not count.

use std::time::{Duration, Instant};

use super::counting::Counting;
use super::given_up::Process;
use super::install::Stopped;
use super::limit::SiteOfFile;
use super::loaded::{Auxiliary, Memory};
use super::threads::living;
use crate::patch::CallCounter;
use crate::sampler::targets::descendants;

// How long the threads of a process may take to stop: the program waits meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);
// How long apart processes are tried again, and how often each is tried.
const APART: Duration = Duration::from_millis(100);
const TRIES: u32 = 5;

impl Counting {
    pub(super) fn keep_limit(&mut self, planner: &mut CallCounter) {
        let (Some(limit), shared) = (&mut self.limit, &self.shared) else {
            return;
        };
        let areas = std::cell::RefCell::new(&mut self.areas);
        let mut sites = Vec::new();
        let looked = limit.look(&mut || areas.borrow().read(shared), &mut |site| {
            let given_up = areas.borrow_mut().give_up(shared, site, planner);
            if given_up {
                sites.push(site);
            }
            given_up
        });
        // What cannot be measured any more goes on as it is.
        if looked.is_err() {
            self.limit = None;
        }
        if !sites.is_empty() {
            sites.sort_unstable();
            self.note_given_up(&sites);
        }
        self.lead_past_stubs(planner);
    }

    fn note_given_up(&mut self, sites: &[SiteOfFile]) {
        let Some(first) = self.given_up.first else {
            return;
        };
        let processes = &mut self.given_up.processes;
        for pid in std::iter::once(first).chain(descendants::of(first)) {
            match processes.iter_mut().find(|process| process.pid == pid) {
                Some(process) => {
                    process.sites.extend(sites);
                    process.sites.sort_unstable();
                    process.tries = 0;
                }
                None => processes.push(Process {
                    pid,
                    sites: sites.to_vec(),
                    tries: 0,
                }),
            }
        }
    }

    fn lead_past_stubs(&mut self, planner: &mut CallCounter) {
        let waits = |tried: Instant| tried.elapsed() < APART;
        if self.given_up.processes.is_empty() || self.given_up.tried.is_some_and(waits) {
            return;
        }
        let processes = std::mem::take(&mut self.given_up.processes);
        for mut process in processes {
            if self.lead_past(&process, planner).is_none() && process.tries < TRIES {
                process.tries += 1;
                self.given_up.processes.push(process);
            }
        }
        self.given_up.tried = Some(Instant::now());
    }

    /// Makes the calls of one process as they were. `None` if it did not stop.
    fn lead_past(&mut self, process: &Process, planner: &mut CallCounter) -> Option<()> {
        let Process { pid, sites, .. } = process;
        // The first thread may have ended, and shows nothing then.
        let thread = living(*pid);
        let memory = Auxiliary::of(thread).and_then(|auxiliary| Memory::of(thread, auxiliary));
        let (Ok(memory), Ok(identity)) = (memory, self.identity()) else {
            // It has ended.
            return Some(());
        };
        let restores = self.areas.restores(&memory, identity, sites, planner);
        if restores.is_empty() {
            return Some(());
        }
        if self.is_traced(*pid) {
            return self.change_traced(&restores);
        }
        let stopped = Stopped::attach_within(*pid, PATIENCE, &mut self.left).ok()?;
        let changed = restores.iter().try_for_each(|changes| {
            // Where memory has something else it has been unloaded, or was restored before.
            stopped.change(changes).map(drop)
        });
        stopped.release(&mut self.left);
        changed.ok()
    }
}
