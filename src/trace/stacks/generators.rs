//! Which runtimes made the code that is in no file, and since when.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::base::Runtime;
use crate::perfdata::ClockReference;

use super::Stacks;

/// A process that has code in no file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generator {
    /// The runtimes of which it has mapped files.
    pub runtimes: BTreeSet<Runtime>,
    /// When it started, or its program did, in nanoseconds since 1970; `None` if that was before
    /// the recording, or at a time that is not known.
    pub began: Option<u64>,
}

/// The processes with code in no file. `clock` tells the time of day of records.
pub(in crate::trace) fn generators(
    stacks: &Stacks,
    clock: Option<ClockReference>,
) -> FxHashMap<i32, Generator> {
    let images = stacks.images.rows();
    let mut generators: FxHashMap<i32, Generator> = FxHashMap::default();
    for pid in images.iter().filter_map(|image| image.kind.generated_by()) {
        let Some(process) = stacks.processes.get(&pid) else {
            continue;
        };
        generators.entry(pid).or_insert_with(|| {
            let names = process.images().map(|image| &*images[image].path);
            Generator {
                runtimes: names.filter_map(Runtime::of_name).collect(),
                began: clock
                    .zip(process.began())
                    .and_then(|(clock, began)| clock.wall_time(began)),
            }
        });
    }
    generators
}
