//! Finds the file that was mapped when a program ran.

use std::path::{Path, PathBuf};

use super::{Binary, Error};
use crate::base::BuildId;

/// Where files that a recording names are looked for.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    /// A directory that stands for `/`: files are looked for under it, and not outside it but in
    /// the caches by build id. perf calls it `--symfs`.
    pub symfs: Option<PathBuf>,
}

impl Finder {
    /// Opens the file that a recording knows by `path`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn find(&self, path: &str, build_id: Option<&BuildId>) -> Result<Binary, Error> {
        if !path.starts_with('/') {
            return Err(Error::RelativePath);
        }
        let real = match &self.symfs {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => Path::new(path).to_owned(),
        };
        let binary = Binary::open(&real)?;
        match build_id {
            Some(recorded) if binary.build_id() != Some(recorded) => Err(Error::ChangedBuild {
                found: binary.build_id().cloned(),
                recorded: recorded.clone(),
            }),
            _ => Ok(binary),
        }
    }
}
