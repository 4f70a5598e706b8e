//! The hall where both wings meet: functions, call paths and weighted samples.
//!
//! ```text
//!   Profile
//!   ├─ about       command and duration, if known
//!   ├─ events      what was sampled                     (EventId)
//!   ├─ modules     program files, kernel, libraries     (ModuleId)
//!   ├─ functions   identities, never names              (FunctionId)
//!   ├─ distinct    labels of those that share a name
//!   ├─ source      names in the source, and where modules were compiled
//!   ├─ paths       the tree of calls, parent before     (PathId)
//!   │              child: main ◀─ parse ◀─ lex
//!   ├─ threads     pid, tid, command                    (ThreadId)
//!   ├─ lines       source positions of leaves           (LineId)
//!   ├─ samples     (event, thread, path, line) -> weight and count
//!   ├─ places      call paths by the lines of the calls, if asked for (PlaceId)
//!   ├─ times       samples by slices of time, if asked for
//!   ├─ code        calls that the code contains, made or not
//!   ├─ counts      counted calls by caller and callee, of a gmon.out
//!   ├─ quality     how reliable stacks are, if they were recorded
//!   ├─ caveats     what is not known
//!   └─ rows        what its functions stand for
//! ```
//!
//! Rows of samples are distinct: memory grows with distinct paths, never with the length of a
//! recording. Nothing here knows Linux, ELF or DWARF, and no room that works on profiles needs to.
//!
//! A profile is built by [`Builder`], from the source wing or from folded stacks, and read
//! through a [`Selection`]: the samples of one event that pass a [`Filter`].

mod about;
mod builder;
mod code;
mod collected_samples;
mod contents;
mod counts;
pub mod distinct;
mod function;
mod histogram;
mod line;
mod links;
mod listing;
mod path;
mod place;
mod place_weights;
mod quality;
mod rows;
mod sample;
mod select;
mod source;
mod source_text;
mod sum_of_runs;
mod times;
mod weights;

pub use about::About;
pub use builder::Builder;
pub use code::{Call, CallKind, Code, Followed, FollowedFunction, FunctionCode};
pub use contents::{Contents, EventContents};
pub use counts::{CallCount, Counts, SiteCount};
pub use distinct::{DistinctName, DistinctNames};
pub use function::{Function, FunctionId, FunctionKind, Module, ModuleId, in_brackets};
pub use histogram::Histogram;
pub use line::{Line, LineId};
pub use links::{Links, Step};
pub use listing::{Callee, Instruction, Listing, MadeCalls, Origin, Position};
pub use path::{CallPath, CallPaths, FunctionSetId, PathId};
pub use place::{AddressId, Place, PlaceId, Places};
pub use place_weights::PlaceWeights;
pub use quality::{CheckedCalls, Quality};
pub use rows::{RowKind, RowLevel};
pub use sample::{EventId, Sample, Thread, ThreadId};
pub use select::{Filter, SelectedRow, Selection, Weighing, pattern_of};
pub use source::Source;
pub use source_text::{NoSource, SourceText};
pub use sum_of_runs::SumOfRuns;
pub use times::{Slices, TimedRow, TimedRows, TimedSample, Times};
pub use weights::PathWeights;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{BuildId, Caveats, Event, IdVec, Sampling};

/// Where the time went: see the [module's page](self).
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What the recording says of itself.
    pub about: About,
    /// What was sampled.
    pub events: IdVec<EventId, Event>,
    /// How the samples of each event were chosen; missing at the end: not known.
    pub sampling: IdVec<EventId, Sampling>,
    /// Files and other homes of functions.
    pub modules: IdVec<ModuleId, Module>,
    /// The builds of the modules, where the recording states them; missing at the end: not known.
    pub build_ids: IdVec<ModuleId, Option<BuildId>>,
    /// The files with the machine code of modules that programs generated, where the recording
    /// holds them.
    pub generated_code: BTreeMap<ModuleId, Arc<[u8]>>,
    /// Functions by identity.
    pub functions: IdVec<FunctionId, Function>,
    /// The labels of functions that share their names: [`Profile::name`].
    pub distinct_names: DistinctNames,
    /// What debug information says beyond names and declarations.
    pub source: Source,
    /// The tree of call paths.
    pub paths: CallPaths,
    /// Threads, one for each command name that they had.
    pub threads: IdVec<ThreadId, Thread>,
    /// Source lines at which samples were taken, and from which calls were made.
    pub lines: IdVec<LineId, Line>,
    /// Sets of functions of which some are missing from stacks, each in order.
    pub function_sets: IdVec<FunctionSetId, Box<[FunctionId]>>,
    /// Distinct samples with their weights, sorted by event, thread, path and line; where there are
    /// places, then by these.
    pub samples: Vec<Sample>,
    /// From which lines the calls were made, where that was asked for and can be known.
    pub places: Option<Places>,
    /// When samples were taken, where that was asked for and is known.
    pub times: Option<Times>,
    /// What the code of the modules says of calls, where it was looked at.
    pub code: Code,
    /// How often functions called each other, where calls were counted.
    pub counts: Option<Counts>,
    /// How reliable its stacks are, where they were checked.
    pub quality: Option<Quality>,
    /// What is unknown about this profile.
    pub caveats: Caveats,
    /// What kind of row its functions are.
    pub rows: RowKind,
}

impl Profile {
    /// Compares two functions by name, then module, then id. Ties are broken in this order
    /// everywhere.
    pub fn compare_names(&self, a: FunctionId, b: FunctionId) -> Ordering {
        let key = |id: FunctionId| {
            let function = &self.functions[id];
            (&function.name, &self.modules[function.module].name, id)
        };
        key(a).cmp(&key(b))
    }

    /// The number of runs that were added up.
    pub fn runs(&self) -> u32 {
        let runs = self.threads.iter().map(|thread| thread.run + 1);
        runs.max().unwrap_or(1)
    }

    /// Whether a function is on some call path. The others are known from code or counts only.
    pub fn functions_on_stacks(&self) -> IdVec<FunctionId, bool> {
        let mut on_stacks = IdVec::filled(false, self.functions.len());
        for (_, path) in self.paths.enumerate() {
            on_stacks[path.function] = true;
        }
        on_stacks
    }
}
