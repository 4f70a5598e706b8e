//! Which file defines a function that another one calls by name.
//!
//! Scanned files come first: those that the caller needs, in its order, then the others. After them
//! come the libraries of a program, if they can be found as the dynamic linker finds them: they
//! show where a function is that was not scanned.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::base::Svma;
use crate::binary::{Binary, Exports, Finder, Libraries};

/// Where a function is defined.
pub(super) enum Definition {
    /// In the file of this place among those that are looked at.
    Scanned(usize, Svma),
    /// In another file.
    Elsewhere(PathBuf, Svma),
}

/// What the files that are looked at define for each other.
pub(super) struct Definitions<'a> {
    files: Vec<&'a Arc<Binary>>,
    exports: Vec<OnceLock<Exports>>,
    /// For each file the places of all files in the order in which names are looked up for it.
    orders: Vec<OnceLock<Vec<usize>>>,
    /// How libraries are found that are not looked at, if they are to be.
    finder: Option<&'a Finder>,
    libraries: Vec<OnceLock<Libraries>>,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(files: Vec<&'a Arc<Binary>>, finder: Option<&'a Finder>) -> Definitions<'a> {
        Definitions {
            exports: files.iter().map(|_| OnceLock::new()).collect(),
            orders: files.iter().map(|_| OnceLock::new()).collect(),
            finder,
            libraries: files.iter().map(|_| OnceLock::new()).collect(),
            files,
        }
    }

    /// Where the function is that the file of this place calls by this linkage name.
    pub(super) fn of(&self, caller: usize, name: &str) -> Option<Definition> {
        let order = self.orders[caller].get_or_init(|| self.order(caller));
        for &file in order {
            if let Some(start) = self.exports(file).start(name.as_bytes()) {
                return Some(Definition::Scanned(file, start));
            }
        }
        let finder = self.finder?;
        let binary = self.files[caller];
        let libraries = self.libraries[caller].get_or_init(|| Libraries::of(binary, finder));
        let (file, start) = libraries.definition(name)?;
        Some(Definition::Elsewhere(file.path().to_owned(), start))
    }

    pub(super) fn exports(&self, file: usize) -> &Exports {
        self.exports[file].get_or_init(|| self.files[file].exports())
    }

    /// The other files: those that this one needs first.
    fn order(&self, caller: usize) -> Vec<usize> {
        let needed = self.files[caller].needed().libraries;
        let mut order: Vec<usize> = (0..self.files.len()).filter(|&i| i != caller).collect();
        // Stable: what is needed equally little stays in the order of the files.
        order.sort_by_cached_key(|&i| {
            let name = name_for_linker(self.files[i]);
            let place = needed.iter().position(|needed| *needed == name);
            place.unwrap_or(usize::MAX)
        });
        order
    }
}

/// What others need a file by.
fn name_for_linker(binary: &Arc<Binary>) -> Vec<u8> {
    binary.needed().soname.unwrap_or_else(|| {
        let name = binary.path().file_name().unwrap_or_default();
        name.as_encoded_bytes().to_vec()
    })
}
