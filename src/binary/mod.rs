//! One opened ELF file: its functions, the names of its PLT stubs, its source lines and inlined
//! calls, its debug files, its build id.
//!
//! ```text
//!   path, build id ─▶ Finder ─▶ Binary ─▶ functions()     .symtab ∪ .dynsym ∪ PLT stubs, else .eh_frame
//!                                  │
//!                                  └────▶ lines()         DWARF: frames of an address, innermost first
//! ```
//!
//! A [`Binary`] is read lazily: opening costs a few pages; symbols and DWARF sections are read the
//! first time they are asked for. It is `Sync`, so workers may share it.
//!
//! Whatever a file holds, nothing here panics, recurses on it or allocates by a length that was
//! not checked. What cannot be believed is left out and told by [`Binary::problems`].

mod demangle;
mod dwarf;
mod elf;
mod error;
mod fields;
mod finder;
mod functions;
mod inflate;
mod lines;
mod source;
mod symbols;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use demangle::demangle;
pub use error::Error;
pub use finder::Finder;
pub use functions::{FunctionSymbol, SymbolSource};
pub use lines::{InlineFrame, Lines};

use self::dwarf::Dwarf;
use self::elf::Elf;
use self::functions::Functions;
use self::source::Source;
use crate::base::{BuildId, FileOffset, Svma};

/// One ELF file and its debug companions.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    elf: Elf,
    functions: OnceLock<Functions>,
    dwarf: OnceLock<(Option<Dwarf>, Vec<String>)>,
}

impl Binary {
    /// Opens a regular file.
    ///
    /// # Errors
    /// When it is missing, not a regular file, not ELF or its header is cut short. Damage behind
    /// the header leaves a [`Binary`] that knows less and has [`problems`](Binary::problems).
    pub fn open(path: &Path) -> Result<Binary, Error> {
        Ok(Binary::new(
            path.to_owned(),
            Elf::read(Source::open(path)?)?,
        ))
    }

    /// Reads an ELF file that is already in memory, such as the vdso.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Binary, Error> {
        let elf = Elf::read(Source::Memory(bytes))?;
        Ok(Binary::new(PathBuf::new(), elf))
    }

    fn new(path: PathBuf, elf: Elf) -> Binary {
        Binary {
            path,
            elf,
            functions: OnceLock::new(),
            dwarf: OnceLock::new(),
        }
    }

    /// The path it was opened by; empty when it came from memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build id, if it has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.elf.build_id.as_ref()
    }

    /// The stated address of the byte at `offset` of the file, by the loadable segments. In a
    /// relocatable file (`.o`, `.ko`), which has no addresses yet, the offset itself.
    pub fn svma(&self, offset: FileOffset) -> Option<Svma> {
        self.elf.svma(offset)
    }

    /// Whether symbols name functions of this file, here or in its debug file.
    pub fn has_symbols(&self) -> bool {
        let mut functions = self.functions().iter();
        functions.any(|function| function.source != SymbolSource::Unwind)
    }

    /// Whether there is DWARF debug information, here or in its debug file.
    pub fn has_debug_info(&self) -> bool {
        self.elf.has(b".debug_info")
    }

    /// The functions, sorted by start, one for each start.
    pub fn functions(&self) -> &[FunctionSymbol] {
        self.table().symbols()
    }

    /// The function that contains `address`. Where functions overlap, it is the one that starts
    /// last.
    pub fn function_at(&self, address: Svma) -> Option<&FunctionSymbol> {
        self.table().at(address)
    }

    /// The linkage name of a function of this file; `None` for those known only by their bounds.
    pub fn function_name(&self, function: &FunctionSymbol) -> Option<Cow<'_, str>> {
        self.table().name(function)
    }

    /// A reader of lines and inlined calls. It costs some milliseconds to make for a large
    /// file, so a worker makes one and keeps it.
    pub fn lines(&self) -> Lines<'_> {
        let (dwarf, _) = self.dwarf.get_or_init(|| {
            let mut problems = Vec::new();
            (Dwarf::load(&self.elf, &mut problems), problems)
        });
        Lines::new(dwarf.as_ref().map(Dwarf::borrow))
    }

    /// What of this file could not be read or believed, as far as it has been asked for; each a
    /// lower-case fragment.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.elf.problems.clone();
        problems.extend(
            self.functions
                .get()
                .into_iter()
                .flat_map(|f| f.problems.clone()),
        );
        problems.extend(self.dwarf.get().into_iter().flat_map(|(_, p)| p.clone()));
        problems
    }

    fn table(&self) -> &Functions {
        self.functions.get_or_init(|| {
            let mut functions = Functions::default();
            let (symtab, dynsym) = (object::elf::SHT_SYMTAB.0, object::elf::SHT_DYNSYM.0);
            symbols::read(&self.elf, symtab, SymbolSource::Symtab, &mut functions);
            symbols::read(&self.elf, dynsym, SymbolSource::Dynsym, &mut functions);
            functions.settle(&self.elf.code_ranges());
            functions
        })
    }
}
