//! Makes a program count its calls: writes the stubs and changes of a
//! [`CallCounter`](crate::patch::CallCounter) into its memory before it runs.
//!
//! ```text
//!   fork ─▶ ptrace ─▶ exec ─▶ the dynamic linker is done, or the entry point is reached
//!                                 │ which files are mapped where
//!                                 ▼
//!            CallCounter ◀────── choose, plan ──────▶ stubs, counters: shared memory;
//!                                 │                   changed instructions: /proc/PID/mem
//!                                 ▼
//!            the tracer lets go; the program runs
//!                                 │ it loads a library, or is about to execute a program
//!                                 ▼
//!            agent: rings the bell, and waits ──▶ later: stop, choose, plan, change, let go
//! ```
//!
//! The counters are in memory that is shared with the program and with the processes that it forks,
//! so that all of them add up, and are read when the recording ends.
//!
//! If counting takes too much of the program's time, the stubs of the most frequent calls are
//! changed so that they no longer count (`limit`); then the original calls are put back
//! (`past_stubs`).
//!
//! Nothing is traced between these moments, except for a command until it gets a signal or starts a
//! process (`without_locks`). The dynamic linker calls a function that does nothing whenever it has
//! loaded libraries, for debuggers; it is made to jump to the `agent`, a few instructions in the
//! program's memory that report it and wait until the recorder is done.

mod address_space;
mod agent;
mod areas;
mod bell;
mod cost;
pub(super) mod counting;
mod detour;
mod given_up;
mod install;
mod later;
mod limit;
mod loaded;
mod omens;
mod page;
mod past_stubs;
mod place;
mod refusals;
mod shared_memory;
mod start;
mod threads;
mod traced;
mod without_locks;
