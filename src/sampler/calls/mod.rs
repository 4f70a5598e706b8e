//! Makes a program count its calls: what a planner has worked out is written into its memory before
//! it runs.
//!
//! ```text
//!   fork ─▶ ptrace ─▶ exec ─▶ the dynamic linker is done, or the entry point is reached
//!                                 │ which files are mapped where
//!                                 ▼
//!            CallPlanner ◀────── choose, plan ──────▶ stubs, counters: shared memory, mapped
//!                                 │                   changed instructions: /proc/PID/mem
//!                                 ▼
//!            the tracer lets go; the program runs, and nothing stops it again
//! ```
//!
//! The counters are in memory that is shared with the program and with the processes that it forks,
//! so that all of them add up, and are read when the recording ends.

mod address_space;
pub(super) mod counting;
mod install;
mod loaded;

use std::path::{Path, PathBuf};

use crate::perfdata::CallCounts;

/// A file that a program has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// Its path.
    pub path: PathBuf,
    /// Whether the program starts in it.
    pub is_program: bool,
    /// Whether it is the dynamic linker.
    pub is_loader: bool,
    /// Its executable mappings, in order of address.
    pub mappings: Vec<CodeMapping>,
    /// The first address of all of its mappings, and the address behind the last.
    pub(super) span: (u64, u64),
}

/// An executable mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// The first address.
    pub start: u64,
    /// The address behind the last byte.
    pub end: u64,
    /// The position in the file of what is at `start`.
    pub offset: u64,
}

/// A place in the dynamic linker at which it calls a function for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderStop {
    /// The stated address of that function.
    pub at: u64,
    /// How often it is called until the libraries that the program is linked with are relocated.
    pub stops: u32,
}

/// A file in which calls are to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its place among the images.
    pub image: usize,
    /// The number of stubs, which is also that of counters.
    pub stubs: usize,
    /// The bytes of a stub.
    pub stub_size: usize,
}

/// Where stubs and counters of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubArea {
    /// The address of the first stub.
    pub stubs: u64,
    /// The address of the first counter, which is a word of eight bytes.
    pub counters: u64,
    /// The offset of the first stub in the shared memory.
    pub offset: u64,
}

/// What is written into a program for one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePlan {
    /// The stubs, one after the other.
    pub stubs: Vec<u8>,
    /// The instructions to change, in order of address.
    pub changes: Vec<Change>,
}

/// A change of an instruction. It is made only where memory has the old bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The address of the instruction in memory.
    pub at: u64,
    /// Its length; the bytes behind it mean nothing.
    pub length: u8,
    /// Its bytes.
    pub old: [u8; 8],
    /// What they become.
    pub new: [u8; 8],
    /// The planner's number of the call site.
    pub site: usize,
}

/// Knows which instructions of a program are calls, and by which bytes they are counted.
pub trait CallPlanner {
    /// Takes a program's code in before the program is started; the path has no symbolic links.
    ///
    /// # Errors
    /// Why its calls cannot be counted, as a lower-case fragment.
    fn prepare(&mut self, program: &Path) -> Result<(), String>;

    /// Where the dynamic linker at this path stops for debuggers.
    fn loader_stop(&mut self, loader: &Path) -> Option<LoaderStop>;

    /// Chooses the files in which calls are counted.
    ///
    /// # Errors
    /// Why calls of the program cannot be counted, as a lower-case fragment.
    fn choose(&mut self, images: &[LoadedImage]) -> Result<Vec<Chosen>, String>;

    /// Returns what to write for the file at this place among those that were chosen.
    fn plan(&mut self, chosen: usize, area: StubArea) -> ImagePlan;

    /// Takes note of sites that were left as they are, as memory had other bytes there.
    fn unchanged(&mut self, chosen: usize, sites: &[usize]);

    /// What was planned, with the sites that count at zero.
    fn counts(&self) -> CallCounts;
}
