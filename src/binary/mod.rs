//! One opened ELF file: its functions, the names of its PLT stubs, its source lines and inlined
//! calls, its debug files, its build id.
//!
//! ```text
//!   path, build id ─▶ Finder ─▶ Binary ─▶ functions()     .symtab ∪ .dynsym ∪ PLT stubs,
//!                                  │                    else .gopclntab, .eh_frame
//!                                  │
//!                                  ├────▶ lines()         DWARF: frames of an address, leaf first
//!                                  ├────▶ code(), slots() instructions, and pointers for calls
//!                                  └────▶ needed()        ─▶ Libraries: what defines imports
//! ```
//!
//! JIT-compiled code has no ELF file; its names come from a [`PerfMap`] or a [`JitDump`].
//!
//! A [`Binary`] is read lazily: opening costs a few pages; symbols and DWARF sections are read the
//! first time they are asked for. It is `Sync`, so threads can share it.
//!
//! ```text
//!   elf      what an ELF file says: sections, symbols, code, slots, relocations
//!   debug    what debug information says: lines, inlined calls, names
//!   host     which file it is, on this machine
//!   jit      code without a file                budget   limits of memory and work
//! ```
//!
//! Whatever a file contains, nothing here panics, recurses by its contents, or allocates by an
//! unchecked length. Damaged parts are left out, and [`Binary::problems`] lists them.

mod budget;
mod cache_place;
mod debug;
mod elf;
mod error;
mod host;
mod jit;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

pub use debug::demangle::{UNREAD_ARGUMENTS, demangle, demangled};
pub use debug::diagnosis::{Diagnosis, InfoLocation};
pub use debug::lines::{
    Declared, DefinitionId, DefinitionKey, Described, InlineFrame, Lines, StatedSource,
    is_source_name,
};
pub use elf::code::{Code, CodePiece, Machine, Stretch};
pub use elf::data::DataBytes;
pub(crate) use elf::frames::common_entry;
pub use elf::frames::{ExceptionFrames, FrameSection, GoFrames};
pub use elf::functions::{FunctionSymbol, SymbolSource};
pub use elf::gprof::{GprofSymbol, GprofSymbols};
pub use elf::needed::{Exports, Needed};
pub use elf::pclntab::table::GoStack;
pub use elf::references::{Reference, References};
pub use elf::slot_target::SlotTarget;
pub use elf::slots::Slots;
pub use error::Error;
pub use host::clock::latest_time;
pub use host::finder::Finder;
pub use host::kallsyms::{Kallsyms, KernelFunction};
pub use host::kernel_code::{KERNEL_MEMORY, KernelCode, KernelCodeSource};
pub use host::libraries::Libraries;
pub use host::perf_maps::ProcessTimes;
pub use host::vdso;
pub use jit::{JitCode, JitDump, JitFrame, JitNames, JitPiece, PerfMap};

use self::budget::Budget;
use self::cache_place::FileKey;
use self::debug::dwarf::DebugInfo;
use self::debug::lines::kept::Kept;
use self::elf::build::Used;
use self::elf::functions::Functions;
use self::elf::source::Source;
use self::elf::{Elf, mini_debug, pclntab, plt, symbols, unwind_bounds};
use self::host::search_directories::{FileLocation, SearchDirectories};
use crate::base::{BuildId, FileContent, FileOffset, FileStatus, Svma, utf8};
use crate::cache::{Cache, Place};
use crate::files::Root;

/// The memory that reading a file has taken, in bytes: see [`Binary::memory_taken`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTaken {
    /// For symbols, names and unwind tables that are inflated or lie in holes.
    pub tables: u64,
    pub debug_information: u64,
    /// The share of the file: ten times what it and its debug files have on the disk, and 4 MiB for
    /// each of them.
    pub share: u64,
}

/// One ELF file and its debug companions.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    place: FileLocation,
    elf: Elf,
    places: Arc<SearchDirectories>,
    companion: OnceLock<Companion>,
    functions: OnceLock<Functions>,
    debug_info: OnceLock<Loaded>,
    cache: Option<Arc<Cache>>,
    kept_lines: OnceLock<Option<Kept>>,
    // What the file consists of, if that was asked for.
    content: OnceLock<Option<FileContent>>,
}

// The debug file, if there is one, and what was wrong with those that were found.
#[derive(Debug)]
struct Companion {
    elf: Option<Elf>,
    problems: Vec<String>,
}

// The debug information and what was wrong with it.
#[derive(Debug)]
struct Loaded {
    info: Option<DebugInfo>,
    problems: Vec<String>,
}

impl Binary {
    /// Opens a regular file. Debug files are looked for in the usual places of this machine.
    ///
    /// # Errors
    /// When it is missing, not a regular file, not ELF or its header is cut short. Damage behind
    /// the header leaves a [`Binary`] that knows less and has [`problems`](Binary::problems).
    pub fn open(path: &Path) -> Result<Binary, Error> {
        Binary::open_with(
            FileLocation::named(path),
            Arc::new(SearchDirectories::usual(None)),
        )
    }

    /// Opens a file whose path a process states: a file that the kernel makes up is not opened.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn open_stated(path: &Path) -> Result<Binary, Error> {
        Binary::open_with(
            FileLocation::below(&Root::default(), path.to_owned()),
            Arc::new(SearchDirectories::usual(None)),
        )
    }

    /// Reads an ELF file that is already in memory, such as the vdso.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Binary, Error> {
        let places = Arc::new(SearchDirectories::usual(None));
        let budget = Budget::new(&places.pool);
        budget.add_bytes(bytes.len() as u64);
        let elf = Elf::read(Source::Memory(bytes), budget)?;
        Ok(Binary::new(FileLocation::named(Path::new("")), elf, places))
    }

    fn open_with(place: FileLocation, places: Arc<SearchDirectories>) -> Result<Binary, Error> {
        let elf = place.elf(&Budget::new(&places.pool))?;
        Ok(Binary::new(place, elf, places))
    }

    fn new(place: FileLocation, elf: Elf, places: Arc<SearchDirectories>) -> Binary {
        Binary {
            path: place.full(),
            place,
            elf,
            places,
            companion: OnceLock::new(),
            functions: OnceLock::new(),
            debug_info: OnceLock::new(),
            cache: None,
            kept_lines: OnceLock::new(),
            content: OnceLock::new(),
        }
    }

    fn with_cache(mut self, cache: Option<Arc<Cache>>) -> Binary {
        self.cache = cache;
        self
    }

    /// Keeps in this directory what takes long to find out. The directory is made if it is missing;
    /// nothing is kept if others can access it.
    pub fn keeping_in(self, directory: &Path) -> Binary {
        self.with_cache(Cache::open(directory).map(Arc::new))
    }

    /// The path it was opened by; empty when it came from memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode, by which the file is known under any name; `None` for bytes in memory.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.elf.source.identity()
    }

    /// Which file it is, its size and times; `None` for bytes in memory.
    pub fn status(&self) -> Option<FileStatus> {
        self.elf.source.status()
    }

    /// Whether the file consists of this, or `None` where that is not known. It is read for that.
    pub fn has_content(&self, content: &FileContent) -> Option<bool> {
        let own = self.content.get_or_init(|| self.elf.source.content());
        own.as_ref().map(|own| own == content)
    }

    /// When the file was last written; `None` for bytes in memory.
    pub fn modified(&self) -> Option<SystemTime> {
        self.elf.source.modified()
    }

    /// The users whose files these are: this one, and the one with its debug information if that is
    /// another. What they say is the word of these users.
    pub fn owners(&self) -> Vec<u32> {
        let debug = self.with_section(b".debug_info");
        let all = [Some(&self.elf), debug];
        let owners = all.into_iter().flatten();
        let owners: BTreeSet<u32> = owners.filter_map(|elf| elf.source.owner()).collect();
        owners.into_iter().collect()
    }

    /// How many bytes of memory reading this file and its debug files has taken beyond reading them
    /// as they are, for tables and for debug information, and how many it may take before those of
    /// other files count: its share. Holes of sparse files and what was refused count too.
    pub fn memory_taken(&self) -> MemoryTaken {
        self.elf.budget.taken()
    }

    /// The build id, if it has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.elf.build_id.as_ref()
    }

    /// Whether another file is another build, wherever it is: its build ID or its headers differ,
    /// or without a build ID its code, data or symbols. `false` where that takes too long to find
    /// out.
    pub fn is_other_build(&self, other: &Binary) -> bool {
        let builds = [&self.elf, &other.elf].map(|elf| elf.build(Used::Code));
        matches!(builds, [Some(own), Some(others)] if own != others)
    }

    /// Whether its addresses are those in memory: an executable that is not moved when loaded.
    pub fn is_fixed(&self) -> bool {
        self.elf.fixed
    }

    /// Whether it is started as a program, not loaded as a library. A program that is linked
    /// statically and loaded anywhere has no dynamic linker to name.
    pub fn is_program(&self) -> bool {
        self.elf.fixed || self.elf.has(b".interp") || self.needed().is_program
    }

    /// Whether it has been linked: it is a program or library, not an object file or kernel module.
    pub fn is_linked(&self) -> bool {
        !self.elf.relocatable
    }

    /// The stated address of the byte at `offset` of the file, by the loadable segments,
    /// executable ones first. In a relocatable file (`.o`, `.ko`), which has no addresses yet, the
    /// offset itself, if it lies in code; the functions of such a file are placed likewise.
    pub fn svma(&self, offset: FileOffset) -> Option<Svma> {
        self.elf.svma(offset)
    }

    /// Whether symbols name functions of this file, here or in its debug file.
    pub fn has_symbols(&self) -> bool {
        let mut functions = self.functions().iter();
        functions.any(|f| !matches!(f.source, SymbolSource::Unwind | SymbolSource::Plt))
    }

    /// Whether there is DWARF debug information, here or in its debug file. It is not read yet.
    pub fn has_debug_info(&self) -> bool {
        self.with_section(b".debug_info").is_some()
    }

    /// The functions, sorted by start, one for each start.
    pub fn functions(&self) -> &[FunctionSymbol] {
        self.table().symbols()
    }

    /// The function that contains `address`; of overlapping ones the one that starts last.
    pub fn function_at(&self, address: Svma) -> Option<&FunctionSymbol> {
        self.table().at(address)
    }

    /// The linkage name of a function of this file; `None` for those known only by their bounds.
    pub fn function_name(&self, function: &FunctionSymbol) -> Option<Cow<'_, str>> {
        self.table().name(function)
    }

    /// Whether an address may be in a function that has its code in common with others.
    pub fn may_be_folded(&self, at: Svma) -> bool {
        self.table().may_be_folded(at.0)
    }

    /// Linkage names of other functions with the same code: compilers and linkers merge such.
    pub fn folded_into(&self, function: &FunctionSymbol) -> impl Iterator<Item = Cow<'_, str>> {
        self.table().folded_into(function.start.0)
    }

    /// The linkage name under which others call what the function at this address chooses when the
    /// program starts: `memchr`, whose function may be `memchr_ifunc`.
    pub fn chosen_name(&self, chooser: Svma) -> Option<Cow<'_, str>> {
        self.table().chooser(chooser.0).map(utf8)
    }

    /// A reader of lines and inlined calls. The sections are loaded when they are first needed, as
    /// far as answers were not kept; after that it costs a walk over the headers of the units.
    /// Workers best share one: see [`Lines`].
    pub fn lines(&self) -> Lines<'_> {
        Lines::new(self)
    }

    /// Reads what [`Binary::lines`] will most likely need.
    pub fn prepare_lines(&self) {
        if !self.kept_lines().is_some_and(Kept::is_any_known) {
            self.debug_info();
        }
    }

    fn debug_info(&self) -> Option<&DebugInfo> {
        let loaded = self.debug_info.get_or_init(|| {
            let mut problems = Vec::new();
            let elf = self.with_section(b".debug_info");
            let info = elf.filter(|elf| !elf.relocatable).map(|elf| {
                let supplement = self.places.supplement(elf, &self.place);
                let package = self.places.rooted(&self.place);
                DebugInfo::load(elf, supplement.as_ref(), package, &mut problems)
            });
            Loaded { info, problems }
        });
        loaded.info.as_ref()
    }

    // What was answered before from the debug information, and is to be kept.
    fn kept_lines(&self) -> Option<&Kept> {
        let kept = self.kept_lines.get_or_init(|| {
            let cache = self.cache.as_ref()?;
            let elf = self.with_section(b".debug_info")?;
            let supplement = self.places.supplement(elf, &self.place);
            let supplement = supplement.map(|it| FileKey::of(&it, Used::DebugInformation));
            let files = [
                Some(FileKey::of(elf, Used::DebugInformation)?),
                // Without a key for one of them there is none for both.
                match supplement {
                    Some(key) => Some(key?),
                    None => None,
                },
            ];
            cache_place::place(cache, "lines", &files).map(Kept::open)
        });
        kept.as_ref()
    }

    /// Where something of this file is kept for the next start under a name: something that follows
    /// from its code, data and symbols alone. `None` without a cache.
    pub fn place_to_keep(&self, what: &str) -> Option<Place> {
        let cache = self.cache.as_ref()?;
        let symbols = match self.with_section(b".symtab") {
            Some(elf) => Some(FileKey::of(elf, Used::Code)?),
            None => None,
        };
        let own = FileKey::of(&self.elf, Used::Code)?;
        cache_place::place(cache, what, &[Some(own), symbols])
    }

    /// Keeps the answers of debug information for the next start, if there is a cache.
    ///
    /// Nothing is kept of debug information that was read only in part, as its answers depend on
    /// what else was asked for.
    pub fn keep_answers(&self) -> Option<()> {
        let kept = self.kept_lines.get()?.as_ref()?;
        let loaded = self.debug_info.get()?;
        let problems = self.companion.get().map_or(0, |other| other.problems.len());
        if !loaded.problems.is_empty() || problems > 0 || self.elf.budget.was_beyond() {
            return None;
        }
        kept.store()
    }

    /// Whether debug information of this file was left out because it would take too much memory.
    /// Discard what was read of it before, as that depends on the order of questions.
    pub fn is_debug_info_too_large(&self) -> bool {
        self.elf.budget.is_overdrawn()
    }

    /// What could not be read or is invalid, of what was needed so far; each a lower-case fragment.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.elf.problems.clone();
        let functions = self.functions.get().map(|f| f.problems.as_slice());
        let loaded = self.debug_info.get().map(|l| l.problems.as_slice());
        let companion = self.companion.get().map(|c| c.problems.as_slice());
        problems.extend_from_slice(companion.unwrap_or_default());
        if self.is_debug_info_too_large() {
            problems.push(Error::DebugInfoTooLarge.to_string());
        }
        problems.extend_from_slice(functions.unwrap_or_default());
        problems.extend_from_slice(loaded.unwrap_or_default());
        problems
    }

    // This file, or its debug file.
    fn with_section(&self, name: &[u8]) -> Option<&Elf> {
        if self.elf.has(name) {
            return Some(&self.elf);
        }
        let companion = self.companion.get_or_init(|| {
            let mut problems = Vec::new();
            let found = self
                .places
                .debug_file(&self.elf, &self.place, &mut problems);
            Companion {
                elf: found,
                problems,
            }
        });
        companion.elf.as_ref().filter(|elf| elf.has(name))
    }

    fn table(&self) -> &Functions {
        self.functions.get_or_init(|| {
            let mut functions = Functions::default();
            let (symtab, dynsym) = (object::elf::SHT_SYMTAB.0, object::elf::SHT_DYNSYM.0);
            let full = self.with_section(b".symtab");
            if let Some(elf) = full {
                symbols::read(elf, symtab, SymbolSource::Symtab, &mut functions);
            }
            symbols::read(&self.elf, dynsym, SymbolSource::Dynsym, &mut functions);
            if full.is_none() {
                match mini_debug::unpack(&self.elf) {
                    Some(Ok(mini)) => {
                        symbols::read(&mini, symtab, SymbolSource::MiniDebug, &mut functions);
                    }
                    Some(Err(error)) => functions.problems.push(error.to_string()),
                    None => {}
                }
                pclntab::read(&self.elf, &mut functions);
                unwind_bounds::read(&self.elf, &mut functions);
            }
            plt::read(&self.elf, &mut functions);
            functions.settle(&self.elf.code_ranges(), |at, number| self.bytes(at, number));
            functions
        })
    }
}
