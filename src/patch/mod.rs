//! How calls are counted in a program that was not built for it: which calls, and the bytes that
//! do it.
//!
//! ```text
//!   scan ─▶ Calls ─▶ sites   direct calls, calls through slots, tail calls, each held against
//!                      │     the bounds of its function and the start of its callee
//!                      ▼
//!   memory ─▶ area ─▶ plan ─▶ call lex  becomes  call stub       four bytes change
//!                                       stub:    lock incq counter; jmp lex
//! ```
//!
//! A call stays where it was, so the return address is what it always was: stacks, exceptions and
//! everything else that reads return addresses see no difference. The [`CallCounter`] plans; the
//! [`sampler`](crate::sampler) asks it when the program is loaded and nothing of it has run yet,
//! and writes into its memory. Files are never changed.
//!
//! The idea of counting arcs is gprof's (Graham, Kessler, McKusick 1982); there the compiler does it.
//! Leading calls through stubs in memory is that of dynamic instrumentation: Jeffrey K. Hollingsworth,
//! Barton P. Miller, Jon Cargille, "Dynamic program instrumentation for scalable performance tools",
//! 1994.

mod code;
mod flags;
mod form;
mod left_alone;
mod plan;
mod sites;
mod stub;

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

pub use self::form::{CallForm, Form, LONGEST};
pub use self::left_alone::{LeftAlone, Reason};
pub use self::stub::STUB;

use self::sites::FileSites;
use crate::base::Svma;
use crate::binary::{Binary, Error, Machine};
use crate::perfdata::{CallCounts, CountedCallee, CountedImage};
use crate::sampler::{CallPlanner, Chosen, ImagePlan, LoadedImage, LoaderStop, StubArea};
use crate::scan::Callee;

/// Directories of the system's libraries, in which nothing is counted unless asked for.
const SYSTEM: [&str; 7] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
];

/// Functions by which a program finds others by name, or loads libraries that call what it exports.
const BY_NAME: [&str; 4] = ["dlsym", "dlvsym", "dlopen", "dlmopen"];

/// In which files of a program calls are counted. The dynamic linker is never among them, nor are
/// files that are mapped without code.
#[derive(Default)]
pub enum Images {
    /// In the program and in libraries outside of the system's directories.
    #[default]
    Own,
    /// In the program alone.
    Program,
    /// In all that are loaded at the start.
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
    /// The program, read before it was started.
    prepared: Option<(PathBuf, FileSites)>,
    chosen: Vec<ChosenFile>,
    left_alone: LeftAlone,
    /// What files in which nothing is counted take from others.
    foreign: FxHashSet<String>,
    /// Libraries that could not be read, each with the reason.
    unread: Vec<String>,
}

/// A file in which calls are counted.
#[derive(Debug)]
struct ChosenFile {
    path: PathBuf,
    file: FileSites,
    bias: u64,
    stubs: u64,
    /// The starts of functions that may be called from elsewhere than the sites.
    open: FxHashSet<u64>,
    /// The numbers of sites that were not changed.
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

    /// The number of sites that are counted.
    pub fn counted(&self) -> u64 {
        let files = self.chosen.iter().map(|chosen| {
            let sites = chosen.file.sites.iter();
            let patched = sites.filter(|site| site.patch.is_some()).count();
            patched.saturating_sub(chosen.unchanged.len()) as u64
        });
        files.sum()
    }

    /// The files in which calls are counted.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.chosen.iter().map(|chosen| &*chosen.path)
    }

    /// What is not counted in these files.
    pub fn left_alone(&self) -> &LeftAlone {
        &self.left_alone
    }

    /// Libraries that could not be read, each with the reason.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    fn read(&mut self, image: &LoadedImage) -> Result<(FileSites, u64), String> {
        let prepared = self.prepared.take_if(|(path, _)| *path == image.path);
        let file = match prepared {
            Some((_, file)) => file,
            None => read(&image.path)?,
        };
        let bias = bias(&file.binary, image);
        let bias = bias.ok_or("no mapping shows its code".to_owned())?;
        Ok((file, bias))
    }

    /// Notes what may be called in other ways than by the sites, and which sites that concerns.
    fn note_other_ways(&mut self) {
        let imports = self.chosen.iter().flat_map(|chosen| &chosen.file.imports);
        let by_name = |name: &String| BY_NAME.contains(&name.as_str());
        let looks_up = { imports }.any(by_name) || self.foreign.iter().any(by_name);
        let mut taken_names = FxHashSet::default();
        for ChosenFile { file, .. } in &self.chosen {
            for callee in &file.taken {
                if let Callee::Import(id) = callee {
                    taken_names.extend(file.imports.get(crate::base::Id::index(*id)).cloned());
                }
            }
        }
        for ChosenFile { file, open, .. } in &mut self.chosen {
            let exports = file.binary.exports();
            let starts = |names: &FxHashSet<String>| -> Vec<u64> {
                let names = names.iter();
                let starts = names.flat_map(|name| exports.starts(name.as_bytes()));
                starts.map(|start| start.0).collect()
            };
            let mut taken = file.taken_starts.clone();
            taken.extend(starts(&taken_names));
            if looks_up {
                taken.extend(exports.addresses().map(|start| start.0));
            }
            open.clone_from(&taken);
            open.extend(starts(&self.foreign));
            open.extend(file.binary.entry().map(|entry| entry.0));
            for site in &mut file.sites {
                let is_taken = match site.row.callee {
                    CountedCallee::At(start) => taken.contains(&start),
                    CountedCallee::Import(row) => {
                        let name = file.imports.get(row as usize);
                        looks_up || name.is_some_and(|name| taken_names.contains(name))
                    }
                };
                site.row.is_least = is_taken && file.calls_otherwise.contains(&site.row.caller);
            }
        }
    }
}

impl CallPlanner for CallCounter {
    fn prepare(&mut self, program: &Path) -> Result<(), String> {
        let path = program.to_owned();
        let Ok(binary) = Binary::open(&path) else {
            // Whether it can be run at all is found out by running it.
            return Ok(());
        };
        check_machine(&binary)?;
        // What else is wrong with it is found again when it is loaded.
        self.prepared = FileSites::read(binary).ok().map(|file| (path, file));
        Ok(())
    }

    fn loader_stop(&mut self, loader: &Path) -> Option<LoaderStop> {
        let binary = Binary::open(loader).ok()?;
        let at = binary.exports().start(b"_dl_debug_state")?;
        let name = loader.file_name()?.to_string_lossy();
        Some(LoaderStop {
            at: at.0,
            // glibc stops before it loads libraries, and again when all of them are relocated; musl
            // stops once.
            stops: if name.starts_with("ld-musl") { 1 } else { 2 },
        })
    }

    fn choose(&mut self, images: &[LoadedImage]) -> Result<Vec<Chosen>, String> {
        let mut all = Vec::new();
        for (number, image) in images.iter().enumerate() {
            if !self.images.picks(image) {
                if let Some(binary) = { !image.mappings.is_empty() }
                    .then(|| Binary::open(&image.path).ok())
                    .flatten()
                {
                    self.foreign.extend(binary.imported_names());
                }
                continue;
            }
            let (file, bias) = match self.read(image) {
                Ok(read) => read,
                Err(reason) => {
                    let reason = format!("{}: {reason}", image.path.display());
                    if image.is_program {
                        return Err(reason);
                    }
                    self.unread.push(reason);
                    continue;
                }
            };
            all.push(Chosen {
                image: number,
                stubs: file.sites.len(),
                stub_size: STUB,
            });
            self.left_alone.merge(&file.left_alone);
            self.chosen.push(ChosenFile {
                path: image.path.clone(),
                file,
                bias,
                stubs: 0,
                open: FxHashSet::default(),
                unchanged: FxHashSet::default(),
            });
        }
        self.note_other_ways();
        Ok(all)
    }

    fn plan(&mut self, chosen: usize, area: StubArea) -> ImagePlan {
        let Some(file) = self.chosen.get_mut(chosen) else {
            return ImagePlan::default();
        };
        file.stubs = area.offset;
        let plan = plan::plan(&file.file, file.bias, area);
        for &number in &plan.out_of_reach {
            self.left_alone.add(Reason::Reach);
            file.unchanged.insert(number);
        }
        ImagePlan {
            stubs: plan.stubs,
            changes: plan.changes,
        }
    }

    fn unchanged(&mut self, chosen: usize, sites: &[usize]) {
        if let Some(file) = self.chosen.get_mut(chosen) {
            for &number in sites {
                self.left_alone.add(Reason::Changed);
                file.unchanged.insert(number);
            }
        }
    }

    fn counts(&self) -> CallCounts {
        let images = self.chosen.iter().map(|chosen| {
            let file = &chosen.file;
            let sites = file.sites.iter().enumerate().map(|(number, site)| {
                let is_counted = site.patch.is_some() && !chosen.unchanged.contains(&number);
                let mut row = site.row;
                row.calls = is_counted.then_some(0);
                row
            });
            CountedImage {
                path: chosen.path.as_os_str().as_encoded_bytes().to_vec(),
                build_id: file.binary.build_id().cloned(),
                stubs: chosen.stubs,
                bias: chosen.bias,
                imports: file.imports.clone(),
                open: sorted(&chosen.open),
                sites: sites.collect(),
            }
        });
        CallCounts {
            images: images.collect(),
        }
    }
}

/// Returns what would be written for a file whose addresses are moved by `bias` (wrapping).
///
/// # Errors
/// For a file whose machine is not known.
pub fn changes(binary: Binary, bias: u64, area: StubArea) -> Result<ImagePlan, Error> {
    let file = FileSites::read(binary)?;
    let plan = plan::plan(&file, bias, area);
    Ok(ImagePlan {
        stubs: plan.stubs,
        changes: plan.changes,
    })
}

fn sorted(starts: &FxHashSet<u64>) -> Vec<u64> {
    let mut starts: Vec<u64> = starts.iter().copied().collect();
    starts.sort_unstable();
    starts
}

fn read(path: &Path) -> Result<FileSites, String> {
    let binary = Binary::open(path).map_err(|error| error.to_string())?;
    check_machine(&binary)?;
    FileSites::read(binary).map_err(|error| error.to_string())
}

fn check_machine(binary: &Binary) -> Result<(), String> {
    match binary.code() {
        Ok(code) if code.machine == Machine::X86_64 => Ok(()),
        _ => Err("it is not 64-bit x86 code".into()),
    }
}

/// What is added to the addresses that a file states to get those where it is loaded.
fn bias(binary: &Binary, image: &LoadedImage) -> Option<u64> {
    let code = binary.code().ok()?;
    let mut found = code.sections().filter_map(|(start, size)| {
        let end = Svma(start.0.saturating_add(size));
        let offset = code.piece(start, end)?.offset.0;
        let mapping = image.mappings.iter().find(|mapping| {
            let inside = offset.checked_sub(mapping.offset);
            inside.is_some_and(|inside| inside < mapping.end.saturating_sub(mapping.start))
        })?;
        let at = mapping.start.wrapping_add(offset - mapping.offset);
        Some(at.wrapping_sub(start.0))
    });
    found.next()
}
