//! Where something about files is kept: for these builds of them, and for this build of proftool.

use std::hash::BuildHasher;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use rustc_hash::FxBuildHasher;
use serde::Serialize;

use super::budget::{Budget, Pool};
use super::elf::Elf;
use super::elf::build::Used;
use super::elf::source::{FileState, Source};
use crate::cache::{Cache, Place, encode};
use crate::files;

// In seconds: a file that was changed so lately may be changed again without a new time.
const SETTLED: u64 = 2;

// What tells a file from all others, and from what it was before.
#[derive(Serialize)]
pub(super) struct FileKey {
    state: FileState,
    build: Vec<u8>,
}

impl FileKey {
    // For what follows from this part of the file. `None` for bytes in memory, and where its build
    // cannot be found out.
    pub(super) fn of(elf: &Elf, used: Used) -> Option<FileKey> {
        Some(FileKey {
            state: elf.source.state()?,
            build: elf.build(used)?.to_vec(),
        })
    }

    // No change would be without a sign.
    fn is_settled(&self) -> Option<bool> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let changed = u64::try_from(self.state.seconds).ok()?;
        Some(changed.saturating_add(SETTLED) < now.ok()?.as_secs())
    }
}

// `None` where a file may change without a sign.
pub(super) fn place(cache: &Arc<Cache>, what: &str, files: &[Option<FileKey>]) -> Option<Place> {
    let mut settled = files.iter().flatten().map(FileKey::is_settled);
    if !settled.all(|is_settled| is_settled == Some(true)) {
        return None;
    }
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let place = (program.dev(), program.ino(), program.len());
    // Not when it was changed: recorders change its links.
    let written = (program.mtime(), program.mtime_nsec());
    let key = encode(&(place, written, own_build()?, files))?;
    Some(Place {
        cache: cache.clone(),
        name: format!("{what}-{:016x}", FxBuildHasher.hash_one(&key)),
        key,
    })
}

fn own_build() -> Option<&'static [u8]> {
    static BUILD: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let find = || {
        let opened = files::open_named(Path::new("/proc/self/exe")).ok()?;
        let budget = Budget::new(&Pool::default());
        let elf = Elf::read(Source::file(opened, &budget), budget).ok()?;
        elf.build(Used::Code).map(<[u8]>::to_vec)
    };
    BUILD.get_or_init(find).as_deref()
}
