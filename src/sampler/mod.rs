//! Samples programs: kernel events, their ring buffers, the command that is recorded, and targets
//! that already run.
//!
//! ```text
//!  Command::find ──▶ Child::fork ─ ─ held before exec ─ ─ ─ start ─ ─ ─ ▶ the command runs
//!                         │ pid                                              ┊ samples
//!                         ▼                                                  ▼
//!  Options, Target ▶ Session::open (perf_event_open, mmap)        ring buffers, one a processor
//!                                                                            │ whole records
//!                                                                            ▼
//!                                              Session::drain(&mut |records: &[u8]| …)
//!                                                  │
//!                                                  ├─▶ Writer: perf.data.part ─▶ perf.data
//!                                                  └─▶ Watcher, live ┄┄▶ History ┄┄▶ perf.data
//! ```
//!
//! [`record`] does all of this for one [`Subject`] and one file. It starts no thread (a [`Stage`]
//! may): the process sleeps until a buffer is a quarter full, a signal arrives, or a fifth of a
//! second has passed; then it writes the contents of each buffer with one or two system calls. It
//! reads the headers of records only to count them. [`watch()`] does the same for a [`Watcher`]
//! that takes the records itself.
//!
//! `events/stacks` describes how stacks are sampled: by frame pointers, or as copies that are
//! unwound later, or by a [`Stage`] before they are written. [`Capabilities`] and [`Process`] state
//! beforehand what may be recorded.
//!
//! The sampler adds records for what the kernel does not report: the mappings of its own image and
//! modules, the threads and mappings of processes that already run (`existing`), build IDs, and a
//! description of the machine.
//!
//! ```text
//!   events    names of events, and their attrs         targets   the processes to sample
//!   rings     events opened, and their ring buffers    session   a recording from start to end
//!   output    the file                                 calls     makes a program count its calls
//!                                                      the rest  this machine and its kernel
//! ```
//!
//! `unsafe` code is in the files that make system calls (`kernel`, `targets/child`, `signals`) and
//! in `rings/ring`, which reads memory that the kernel writes.

mod calls;
mod capabilities;
mod counts;
mod error;
mod events;
mod host;
mod kernel;
mod kernel_images;
mod limits;
mod output;
mod rights;
mod rings;
mod session;
mod signals;
mod status;
mod switches;
mod targets;
mod user_share;

pub use self::capabilities::{Capabilities, Trial};
pub use self::events::error::{EventError, Searched, UnknownEvent};
pub use self::events::rate::Rate;
pub use self::session::bounds::{Bounds, End, Subject};
pub use self::session::options::Options;
pub use self::targets::command_error::CommandError;
pub use error::{Error, Note};
pub use events::event::EventSpec;
pub use events::event_list::EventList;
pub use events::stacks::{CopySize, NoCopySize, Stacks};
pub use output::history::{History, Written, samples_apart};
pub use output::staged::Stage;
pub use rights::Rights;
pub use rings::ring_size::largest_copy;
pub use session::Session;
pub use session::cost::{Costs, sample_cost};
pub use session::recording::{Recording, record};
pub use session::watch::{Start, Watched, Watcher, watch};
pub use signals::{stop_job, stop_until_continued};
pub use targets::child::Ending;
pub use targets::command::Command;
pub use targets::process::{MappedFile, Process};
pub use targets::target::Target;
