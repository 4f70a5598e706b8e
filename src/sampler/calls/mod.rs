//! Makes a program count its calls: writes a planner's stubs and changes into its memory before it
//! runs.
//!
//! ```text
//!   fork ─▶ ptrace ─▶ exec ─▶ the dynamic linker is done, or the entry point is reached
//!                                 │ which files are mapped where
//!                                 ▼
//!            CallPlanner ◀────── choose, plan ──────▶ stubs, counters: shared memory, mapped
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

use std::path::{Path, PathBuf};

use crate::perfdata::CallCounts;

/// A file that a program has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// Its path.
    pub path: PathBuf,
    /// Which file it is.
    pub identity: FileIdentity,
    /// Whether the program starts in it.
    pub is_program: bool,
    /// Whether it is the dynamic linker.
    pub is_loader: bool,
    /// Its executable mappings, in order of address.
    pub mappings: Vec<CodeMapping>,
    /// The first address of all of its mappings, and the address behind the last.
    pub(super) span: (u64, u64),
}

/// Which file is mapped, as the kernel identifies files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
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
    /// The planner's number of the file.
    pub file: usize,
    /// What is added to addresses stated in the file to get those in memory (wrapping).
    pub bias: u64,
    /// Whether the dynamic linker changes its instructions when it relocates it.
    pub changes_code: bool,
    /// The number of stubs, which is also that of counters.
    pub stubs: usize,
    /// The bytes of a stub.
    pub stub_size: usize,
}

/// Where stubs and counters of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Sites that no stub can reach.
    pub out_of_reach: Vec<usize>,
}

/// A file whose calls are counted: in one process, or in several that have it as far from the
/// stubs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The planner's number of the file.
    pub file: usize,
    /// What is added to addresses stated in the file to get those in memory (wrapping).
    pub bias: u64,
    /// Where its stubs and counters are.
    pub area: StubArea,
    /// Sites that no process counts, in order.
    pub uncounted: Vec<usize>,
    /// Sites that not all processes count, or not until the end, in order.
    pub parts: Vec<usize>,
    /// Whether code of it may have run before its calls were counted.
    pub is_part: bool,
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

impl Change {
    /// Where an instruction would lead that has these bytes, if it is of the form of the new one,
    /// whose distance is in its last four bytes or has one byte behind it.
    pub(super) fn leads_to(&self, bytes: &[u8; 8]) -> [Option<u64>; 2] {
        [4, 5].map(|back| {
            let field = usize::from(self.length).checked_sub(back)?;
            let is_same = bytes.get(..field)? == self.new.get(..field)?;
            let distance = bytes.get(field..)?.first_chunk::<4>()?;
            let behind = self.at.wrapping_add(field as u64 + 4);
            let to = behind.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance)));
            is_same.then_some(to)
        })
    }

    /// What takes it back.
    pub(super) fn undone(&self) -> Change {
        Change {
            old: self.new,
            new: self.old,
            ..*self
        }
    }
}

/// Who adds to the counters of stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adding {
    /// One thread.
    Alone,
    /// Several threads, each to counters of its own: the base of its segment `gs` is the distance
    /// to them.
    Apart,
    /// Several threads to the same counters: they lock them.
    Together,
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

    /// Whether calls are counted in programs that the command starts by `exec`.
    fn follows_exec(&self) -> bool;

    /// Whether calls in libraries are counted that are loaded when the program runs.
    fn loads_later(&self) -> bool;

    /// How much longer the program may take than without counting, as a part of the time it takes
    /// then; `None` if there is no limit.
    fn limit(&self) -> Option<f64>;

    /// Makes stubs add to their counters in this way. Those that do not count any more are left as
    /// they are.
    fn set_adding(&self, stubs: &mut [u8], adding: Adding);

    /// Returns the first eight bytes of a stub that does not count any more, but leads where this
    /// one does; `None` if a thread may be inside of them.
    fn without_count(&self, stub: &[u8]) -> Option<[u8; 8]>;

    /// Takes note of a site that is counted no more, to keep the limit.
    fn gave_up(&mut self, file: usize, site: usize);

    /// The address in memory of the word in which the dynamic linker notes where its list of loaded
    /// files is.
    fn loader_list(&mut self, program: &LoadedImage) -> Option<u64>;

    /// The address in memory of a function that a library exports.
    fn function(&mut self, library: &LoadedImage, name: &str) -> Option<u64>;

    /// Chooses the files in which calls are counted. Images that are loaded when the program runs
    /// already are `later`.
    ///
    /// # Errors
    /// Why calls of the program cannot be counted, as a lower-case fragment.
    fn choose(&mut self, images: &[LoadedImage], is_later: bool) -> Result<Vec<Chosen>, String>;

    /// Returns what to write for a file that was chosen.
    fn plan(&mut self, file: usize, bias: u64, area: StubArea) -> ImagePlan;

    /// Returns the changes of some sites of a file, which are in order.
    fn changes(&self, file: usize, bias: u64, area: StubArea, sites: &[usize]) -> Vec<Change>;

    /// Takes note of the sites of a plan that were left as they are, as memory had other bytes
    /// there.
    fn unchanged(&mut self, file: usize, plan: &ImagePlan, unchanged: &[usize]);

    /// Takes note of a file or process in which calls are not counted, and why, as a lower-case
    /// fragment.
    fn refused(&mut self, what: &Path, reason: &str);

    /// What is recorded of the files that count, with all counts at zero.
    fn counts(&self, installed: &[Installed]) -> CallCounts;
}
