//! What happened, in addresses: images, threads, distinct address paths, and samples on them.
//!
//! ```text
//!   Record ──▶ memory   which image each address of each process shows, as time goes by
//!          ──▶ jit      what it generated there up to each moment, where that is listed
//!          ──▶ threads  the names of threads over time
//!          ──▶ known_chains  the call chain of a sample, if it occurred before: counted there
//!          ──▶ chain    else its links, outermost first
//!          ──▶ copies   or the copy of its stack, which unwinders unwind meanwhile
//!          ──▶ stacks   links ──▶ frames ──▶ paths, a tree with parent before child
//!          ──▶ switches, off_cpu  when threads were off the processor, and on which stack
//!          ──▶ samples  equal ones summed up
//!          ──▶ timed    the same by slices of time, if asked for
//!          ══▶ Trace
//! ```
//!
//! A [`LiveTrace`] grows while others look at it: it gives a [`Moment`] when it is asked,
//! lets samples fade, and drops the rarest stacks before they take too much memory.
//!
//! Nothing in a trace has a name yet. A sample takes memory only for a path that is new and for the
//! entry of its chain in the cache. Frames that it shares with the previous sample of its thread
//! take almost no time.

mod build;
mod chain;
mod compact;
mod counts;
mod events;
mod fading;
mod image;
mod jit;
mod known_chains;
mod live;
mod memory;
mod off_cpu;
mod paths;
mod recording;
mod samples;
mod stack_copies;
mod stacks;
mod state;
mod switches;
mod threads;
mod time_range;
mod timed;
mod tracer;
mod unwinders;

pub use build::read;
pub use image::{FrameAddress, FrameId, Image, ImageId, ImageKind};
pub use jit::{JitSource, MappedDump};
#[cfg(feature = "record")]
pub use live::unwound::UnwoundRecords;
pub use live::{LiveTrace, Moment};
pub use paths::{AddressPath, AddressPathId, AddressPaths};
pub use recording::{Recording, SampleTime};
pub use stacks::generators::Generator;
pub use threads::{TraceThread, TraceThreadId};
pub use time_range::{Scope, TimeRange};
pub use timed::{LastFirst, TimedSample, Times};
pub use unwinders::{RuleSource, Unwinding};

pub use crate::perfdata::{
    CallCounts, CountedCallee, CountedImage, CountedSite, KeptJitDump, KeptPerfMap,
};

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

pub use crate::base::CallerBy;
use crate::base::{CaveatKind, Caveats, Event, IdVec, Sampling, WeightSum, define_id};

define_id! {
    /// A row of [`Trace::events`].
    pub TraceEventId
}

/// Samples by address.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The events of the recording.
    pub events: IdVec<TraceEventId, Event>,
    /// How the samples of each event were chosen.
    pub sampling: IdVec<TraceEventId, Sampling>,
    /// Files and other things that hold code.
    pub images: IdVec<ImageId, Image>,
    /// Distinct code addresses in images.
    pub frames: IdVec<FrameId, FrameAddress>,
    /// Distinct stacks.
    pub paths: AddressPaths,
    /// Threads by name.
    pub threads: IdVec<TraceThreadId, TraceThread>,
    /// Distinct samples, in order of event, thread and path.
    pub samples: Vec<TraceSample>,
    /// When they were taken, where that was asked for and all samples have times.
    pub times: Option<Times>,
    /// Code that the kernel generated and reported: start, size and name, by start.
    pub kernel_symbols: Vec<(u64, u64, String)>,
    /// The calls that were counted, and for each of their files its image.
    pub counted: Option<(Arc<CallCounts>, Vec<ImageId>)>,
    /// Those of these images that other programs had, too, whose calls were not counted.
    pub partly_counted: FxHashSet<ImageId>,
    /// The processes that have code in no file.
    pub generators: FxHashMap<i32, Generator>,
    /// Lists of such code that the recorder kept.
    pub perf_maps: Vec<Arc<KeptPerfMap>>,
    /// Jitdump files that the recorder kept.
    pub jit_dumps: Arc<[KeptJitDump]>,
    /// Who recorded what and when.
    pub recording: Recording,
    /// What could not be known.
    pub caveats: Caveats,
}

/// All samples that were equal in event, thread and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSample {
    pub event: TraceEventId,
    pub thread: TraceThreadId,
    pub path: AddressPathId,
    pub weight: u64,
    pub count: u64,
    /// The sum of the squares of their weights.
    pub squares: u128,
}

impl TraceSample {
    /// The weights of the row's samples.
    pub fn sum(&self) -> WeightSum {
        WeightSum {
            weight: self.weight,
            squares: self.squares,
            count: self.count,
        }
    }
}

impl Trace {
    /// Whether stacks hold callers of functions in user space. Without them a single frame is all
    /// there is of user space, and nothing was cut.
    pub fn has_user_stacks(&self) -> bool {
        let lacking = [CaveatKind::NoStacks, CaveatKind::NoUserStacks];
        lacking.iter().all(|&kind| self.caveats.count(kind) == 0)
    }
}
