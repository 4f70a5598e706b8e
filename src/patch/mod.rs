//! Counts the calls of a program that was not built for it: chooses call sites, and makes the stubs
//! and the changed instructions.
//!
//! ```text
//!   scan ─▶ Calls ─▶ sites   direct calls, calls through slots, tail calls, each checked against
//!                      │     the bounds of its function and the start of its callee
//!                      ▼
//!   memory ─▶ area ─▶ plan ─▶ call lex  becomes  call stub       four bytes change
//!                                       stub:    lock incq counter; jmp lex
//! ```
//!
//! A call stays where it was, so its return address is unchanged: stacks, exceptions and everything
//! else that reads return addresses see no difference. The [`CallCounter`] plans. The
//! room `sampler` asks it when the program is loaded and has not run yet, and when a library or
//! another program is loaded later, and writes the plan into the program's memory. Files are never
//! changed.
//!
//! The idea of counting arcs is gprof's (Graham, Kessler, McKusick 1982); there the compiler does
//! it. Redirecting calls through stubs in memory is dynamic instrumentation: Jeffrey K.
//! Hollingsworth, Barton P. Miller, Jon Cargille, "Dynamic program instrumentation for scalable
//! performance tools", 1994.

mod code;
mod flags;
mod form;
mod kept;
mod left_alone;
mod loaded_image;
mod other_ways;
mod plan;
mod planner;
mod site;
mod sites;
mod stub;

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

pub use self::form::{CallForm, Form, LONGEST};
pub use self::left_alone::{LeftAlone, Reason};
pub(crate) use self::loaded_image::{Chosen, CodeMapping, FileIdentity, LoadedImage, LoaderStop};
pub(crate) use self::plan::Installed;
pub use self::plan::{Change, ImagePlan, StubArea};
pub use self::stub::STUB;
pub(crate) use self::stub::{Adding, set_adding, without_count};

use self::sites::FileSites;
use crate::binary::{Binary, Error};

// Directories of the system's libraries, in which nothing is counted unless asked for.
const SYSTEM: [&str; 7] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
];

/// In which files of a program calls are counted. The dynamic linker is never among them, nor are
/// files that are mapped without code.
#[derive(Default)]
pub enum Images {
    /// In the program and in libraries outside of the system's directories.
    #[default]
    Own,
    Program,
    All,
    /// In those whose paths this picks.
    Matching(Box<dyn Fn(&str) -> bool>),
}

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Images::Own => "Own",
            Images::Program => "Program",
            Images::All => "All",
            Images::Matching(_) => "Matching",
        })
    }
}

impl Images {
    fn picks(&self, image: &LoadedImage) -> bool {
        let path = image.path.to_string_lossy();
        !image.is_loader
            && !image.mappings.is_empty()
            && match self {
                Images::Own => {
                    image.is_program || !SYSTEM.iter().any(|system| path.starts_with(system))
                }
                Images::Program => image.is_program,
                Images::All => true,
                Images::Matching(picks) => picks(&path),
            }
    }
}

/// Plans the counting of a program's calls.
#[derive(Debug, Default)]
pub struct CallCounter {
    images: Images,
    pub(crate) follows_exec: bool,
    cache: Option<PathBuf>,
    prepared: Option<(PathBuf, FileSites)>,
    /// The files in which calls are counted. A file that several processes load is here once.
    files: Vec<PlannedFile>,
    left_alone: LeftAlone,
    /// The imports of files in which nothing is counted.
    foreign: FxHashSet<String>,
    foreign_files: FxHashSet<FileIdentity>,
    loads_later: bool,
    pub(crate) limit: Option<f64>,
    // The sites that were given up to keep that, each with the number of its file.
    given_up: FxHashSet<(usize, usize)>,
    unread: Vec<String>,
    // Where dynamic linkers stop, by path.
    loaders: FxHashMap<PathBuf, Option<LoaderStop>>,
}

#[derive(Debug)]
struct PlannedFile {
    path: PathBuf,
    identity: FileIdentity,
    file: FileSites,
    /// The numbers of sites that were not changed in one process at least.
    unchanged: FxHashSet<usize>,
}

impl CallCounter {
    /// A plan for these files.
    pub fn new(images: Images) -> CallCounter {
        CallCounter {
            images,
            ..CallCounter::default()
        }
    }

    /// Counts in programs that the command starts by `exec`, too, if they are followed.
    pub fn following_exec(self, follows_exec: bool) -> CallCounter {
        CallCounter {
            follows_exec,
            ..self
        }
    }

    /// Keeps call sites in this directory for the next start.
    pub fn keeping_in(self, cache: Option<PathBuf>) -> CallCounter {
        CallCounter { cache, ..self }
    }

    /// Gives counting of the most frequent calls up while it slows the program down by more than
    /// this fraction of its time without counting.
    pub fn keeping_below(self, limit: Option<f64>) -> CallCounter {
        CallCounter { limit, ..self }
    }

    /// The number of sites that were given up to keep the limit. What they have counted is a lower
    /// bound.
    pub fn given_up(&self) -> usize {
        self.given_up.len()
    }

    /// The number of sites that are counted.
    pub fn counted(&self) -> u64 {
        let files = self.files.iter().map(|planned| {
            let sites = planned.file.found.sites.iter();
            let patched = sites.filter(|site| site.patch.is_some()).count();
            patched.saturating_sub(planned.unchanged.len()) as u64
        });
        files.sum()
    }

    /// The files in which calls are counted.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|planned| &*planned.path)
    }

    /// What is not counted in these files.
    pub fn left_alone(&self) -> &LeftAlone {
        &self.left_alone
    }

    /// Files and processes in which calls could not be counted, each with the reason.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }
}

/// Returns what would be written for a file whose addresses are moved by `bias` (wrapping).
///
/// # Errors
/// For a file whose machine is not known.
pub fn changes(binary: Binary, bias: u64, area: StubArea) -> Result<ImagePlan, Error> {
    let file = FileSites::read(binary)?;
    Ok(plan::plan(&file, bias, area))
}
