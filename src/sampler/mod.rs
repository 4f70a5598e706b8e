//! Sampling programs: events of the kernel, the ring buffers in which they come, the command that
//! is recorded, what already runs.
//!
//! ```text
//!  Command::find ──▶ Child::fork ─ ─ held before exec ─ ─ ─ start ─ ─ ─ ▶ the command runs
//!                         │ pid                                              ┊ samples
//!                         ▼                                                  ▼
//!  Options, Target ▶ Session::open (perf_event_open, mmap)            ring buffers, one a processor
//!                                                                            │ whole records
//!                                                                            ▼
//!                                              Session::drain(&mut |records: &[u8]| …)
//!                                                  │
//!                                                  ├─▶ Writer: perf.data.part ─▶ perf.data
//!                                                  └─▶ Watcher, live ┄┄▶ History ┄┄▶ perf.data
//! ```
//!
//! [`record`] is all of it, for one [`Subject`] and one file. It takes no thread: the process sleeps
//! until a buffer is a quarter full, a signal comes, or a fifth of a second is over; then
//! it writes what is there with one or two writes a buffer. It looks at the headers of records
//! only to count them. [`watch()`] is the same for a [`Watcher`] that takes the records itself.
//!
//! How stacks come into samples is told in `stacks`: by frame pointers, or by copies from which
//! they are found later. [`Machine`] and [`Process`] say beforehand what may be recorded.
//!
//! What the kernel does not tell is made up for here: the mapping of its own image and modules,
//! the threads and mappings of what already runs (`existing`), build ids, the machine's
//! description.
//!
//! This is the only room with `unsafe` code, in the files that make system calls (`kernel`,
//! `child`, `signals`) and in `ring`, which reads memory that the kernel writes.

mod attr;
mod cast;
mod cgroup;
mod child;
mod command;
mod cost;
mod counts;
mod descendants;
mod doubles;
mod elf_notes;
mod elsewhere;
mod error;
mod event;
mod event_list;
mod existing;
mod group_values;
mod history;
mod host;
mod interpreter;
mod kernel;
mod kernel_images;
mod limits;
mod log;
mod machine;
mod mapped;
mod modifiers;
mod off_cpu;
mod output;
mod plan;
mod pmu;
mod process;
mod recording;
mod rights;
mod ring;
mod ring_size;
mod rows;
mod session;
mod signals;
mod stacks;
mod stop;
mod tally;
mod target;
mod tracepoint;
mod user_share;
mod watch;

pub use attr::Rate;
pub use child::Ending;
pub use command::{Command, CommandError};
pub use cost::{Costs, sample_cost};
pub use error::{Error, Note};
pub use event::{EventError, EventSpec, Searched, UnknownEvent};
pub use event_list::EventList;
pub use history::{History, Written, samples_apart};
pub use machine::{Machine, Trial};
pub use process::{MappedFile, Process};
pub use recording::{Bounds, End, Recording, Subject, record};
pub use rights::Rights;
pub use session::{Options, Session};
pub use signals::{stop_job, stop_until_continued};
pub use stacks::{CopySize, NoCopySize, Stacks};
pub use target::Target;
pub use watch::{Start, Watched, Watcher, watch};

use error::reason;
