//! What a program says of a source file, and whose word that is.

use std::path::{Path, PathBuf};

use crate::binary::{StatedSource, is_source_name};

/// What is said of a source file by what names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceClaim {
    /// What a line table states of it.
    pub stated: Option<StatedSource>,
    /// Whether there are line tables, which name every file that was compiled.
    pub has_tables: bool,
    /// The users whose word it is, if known: the owners of the program file, or of the profile.
    pub owners: Vec<u32>,
}

impl SourceClaim {
    /// What is said here, as the word of this user if no program's owner is known.
    #[must_use]
    pub fn or_of(mut self, owner: Option<u32>) -> SourceClaim {
        if self.owners.is_empty() {
            self.owners.extend(owner);
        }
        self
    }

    // The directories below which the file may be, each with its name from there.
    pub(super) fn places(&self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        if let Some(stated) = &self.stated {
            let places = stated.places.iter();
            return places.map(|(at, name)| (at.into(), name.into())).collect();
        }
        // Profiles of other tools and generated code have paths alone.
        let split = path.parent().zip(path.file_name());
        let split = split.filter(|_| !self.has_tables);
        let place = split.map(|(directory, name)| (directory.to_owned(), name.into()));
        place.into_iter().collect()
    }

    pub(super) fn is_named_as_source(&self, file: &str) -> bool {
        let language = self.stated.as_ref().and_then(|stated| stated.language);
        is_source_name(file, language)
    }

    // A file that others can read needs no other sign that it is source. Where there is no line
    // table, its name has to be one.
    pub(super) fn is_enough_if_shared(&self, file: &str) -> bool {
        self.stated.is_some() || self.is_named_as_source(file)
    }
}
