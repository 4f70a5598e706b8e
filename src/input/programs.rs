//! Programs and libraries: the calls in their code, found without running it.

use std::path::PathBuf;

use super::{Error, Options};
use crate::binary::Finder;
use crate::profile::Profile;
use crate::symbolize;

/// The functions of these files and the calls in their code; each file once, however often it is
/// named.
///
/// # Errors
///
/// The first file that cannot be opened or whose code cannot be looked at, and why.
pub fn programs(paths: &[PathBuf], options: &Options) -> Result<Profile, Error> {
    let finder = Finder::new(options.symfs.as_deref());
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !files.contains(path) {
            files.push(path.clone());
        }
    }
    let opened: Result<Vec<_>, _> = files
        .iter()
        .map(|path| {
            let opened = finder.open_named(path);
            opened.map_err(Error::of(path))
        })
        .collect();
    let options = symbolize::Options {
        finder,
        inlines: options.inlines,
        ..symbolize::Options::default()
    };
    symbolize::programs(opened?, &options)
        .map_err(|error| Error::of(&files[error.index])(error.reason))
}
