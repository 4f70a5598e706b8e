//! Turns addresses into functions: here the source wing meets the hall.
//!
//! ```text
//!   Trace ──▶ library             files, opened once, and the running kernel's symbols
//!         ──▶ name_source         where an image's names are: a file, kallsyms, a perf map
//!         ──▶ repair              stacks checked against the code, and missing functions restored
//!         ──▶ kernel_entries      user code in the kernel put at its system calls
//!         ──▶ distinct_addresses  the addresses of each image, each once, sorted
//!         ──▶ address_lookup      addresses ──▶ frames by name, in parallel, in chunks
//!         ──▶ identity            names and starts ──▶ functions, each once
//!         ──▶ resolution          functions, inlined calls and lines of each address
//!         ──▶ counted             calls that were counted, as calls of these functions
//!         ──▶ code                calls that the files' code contains, where they are asked for
//!         ──▶ ranges              where the code of functions leads, where stacks were cut
//!         ──▶ assemble            address paths ──▶ call paths and samples
//!         ──▶ places              and the lines of the calls on them, where they are asked for
//!         ══▶ Profile
//! ```
//!
//! The physical function of an address is the one whose symbol contains it; calls that were
//! inlined into it are frames of their own. An address without a name stays apart from every
//! other: it is identified by its function's start if unwind tables have it or code leads there,
//! else by itself.

mod address_lookup;
mod assemble;
mod caveats;
mod code;
mod counted;
mod definitions;
mod demangled;
mod distinct_addresses;
mod folded;
mod function_copies;
mod generated_names;
mod host;
mod identity;
mod kernel_entries;
mod library;
mod limits;
mod name_source;
mod nameless;
mod names;
mod places;
mod programs;
mod ranges;
mod repair;
mod resolution;
mod samples_by;

use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use library::Library;
pub use programs::{UnreadableCode, programs};

use assemble::Parts;
use names::Names;

use crate::binary::Finder;
use crate::profile::{Builder, Profile};
use crate::trace::{Times, Trace};

/// Which calls in the code of the sampled files are added to the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticCalls {
    /// None: the code is not looked at.
    #[default]
    Off,
    /// Those between two functions that samples have made known.
    Sampled,
    /// All, with all functions of these files.
    All,
}

/// Which source lines are looked up. Line tables are large, so they are read only if they are
/// needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceLines {
    /// None.
    None,
    /// The line that each sample was taken in.
    #[default]
    OfSamples,
    /// These, and the lines from which the calls on its stack were made.
    OfCalls,
}

/// How names are found.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where files are looked for.
    pub finder: Finder,
    /// Whether inlined calls are frames of their own.
    pub inlines: bool,
    /// Which calls in the code of the files are added.
    pub calls: StaticCalls,
    /// Whether the code of functions is followed if more than a few stacks were cut, to find out
    /// which functions may be outside of a cut.
    pub ranges: bool,
    /// Whether stacks are checked against the code, and missing frames restored where it has only
    /// one explanation.
    pub repairs: bool,
    /// The cache directory for what takes long to find out: symbols of the running kernel, answers
    /// of debug information. `None` to keep nothing.
    pub cache: Option<PathBuf>,
    /// Which source lines are looked up.
    pub lines: SourceLines,
    /// Whether the places of calls keep the addresses of machine code.
    pub addresses: bool,
    /// How many workers look names up.
    pub workers: NonZeroUsize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            finder: Finder::default(),
            inlines: true,
            calls: StaticCalls::Off,
            ranges: false,
            repairs: true,
            cache: None,
            lines: SourceLines::default(),
            addresses: false,
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// Resolves every address of a trace to its functions. Never fails: addresses without a name are
/// counted in caveats.
pub fn symbolize(trace: &Trace, library: &Library) -> Profile {
    built(trace, trace.times.clone(), library).finish()
}

/// Resolves a trace up to the point from which it is no longer needed, so that its memory can be
/// freed before the profile is finished. The times are taken out of the trace.
pub fn unfinished(trace: &mut Trace, library: &Library) -> Builder {
    let times = trace.times.take();
    built(trace, times, library)
}

fn built(trace: &Trace, times: Option<Times>, library: &Library) -> Builder {
    let name_sources = name_source::open_all(trace, library);
    let names = Names::new(&name_sources);
    let follows = ranges::are_needed(trace, &library.options);
    let (mut checked, followed) = repair::check(trace, &name_sources, &names, library, follows);
    kernel_entries::place(&mut checked.frames, &trace.images, &name_sources);
    let addresses_of_images =
        distinct_addresses::DistinctAddresses::of(&checked.frames, trace.images.len());
    let answers = address_lookup::all(&addresses_of_images, &name_sources, &library.options);
    let parts = Parts {
        trace,
        checked: &checked,
        name_sources: &name_sources,
        options: &library.options,
    };
    let mut builder = Builder::default();
    let resolution = assemble::functions(
        parts,
        followed.as_ref(),
        addresses_of_images,
        &names,
        answers,
        &mut builder,
    );
    assemble::caveats(parts, &resolution, &mut builder);
    let stacks = assemble::stacks(parts, &resolution, &mut builder);
    stacks.add_samples(trace, times, &mut builder);
    name_source::keep_answers(&name_sources, library.options.workers);
    builder
}
