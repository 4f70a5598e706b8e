//! Programs that run and whose file has no name: deleted, replaced, or only ever in memory.
//!
//! ```text
//! /proc/PID/exe    /srv/app (deleted)      the text of the link
//!                  /memfd:app (deleted)    the link leads to the file all the same
//! ```

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::search_directories::FileLocation;

/// How long what was found is believed. Programs come and go.
const FRESH: Duration = Duration::from_secs(1);
/// No more programs are looked at.
const MOST: usize = 1024;
/// What the kernel adds to the name of a file that is gone.
const DELETED: &[u8] = b" (deleted)";

/// A program without a name.
#[derive(Clone, Debug)]
struct Program {
    /// The path that it had.
    path: PathBuf,
    /// The link that leads to it.
    link: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

/// Programs, and when they were found.
type Cached = Option<(Instant, Arc<[Program]>)>;

/// The programs that run and have no name, as far as this user may look at them.
#[derive(Clone, Debug, Default)]
pub(super) struct NamelessPrograms {
    found: Arc<Mutex<Cached>>,
}

impl NamelessPrograms {
    /// Where the programs are that had this path, and whether they are one file.
    pub(super) fn at(&self, path: &Path) -> (Vec<FileLocation>, bool) {
        let path = without_mark(path);
        let programs = self.programs();
        let those: Vec<&Program> = programs.iter().filter(|it| it.path == path).collect();
        let is_one = those.windows(2).all(|pair| pair[0].file == pair[1].file);
        let links = those.iter().map(|it| FileLocation::of_process(&it.link));
        (links.collect(), is_one)
    }

    fn programs(&self) -> Arc<[Program]> {
        let mut found = self.found.lock().expect("no worker panics");
        match &*found {
            Some((when, programs)) if when.elapsed() < FRESH => programs.clone(),
            _ => {
                let programs: Arc<[Program]> = look().into();
                *found = Some((Instant::now(), programs.clone()));
                programs
            }
        }
    }
}

fn look() -> Vec<Program> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        name.as_bytes().iter().all(u8::is_ascii_digit)
    });
    let programs = processes.filter_map(|entry| {
        let link = entry.path().join("exe");
        let text = fs::read_link(&link).ok()?;
        let is_gone = text.as_os_str().as_bytes().ends_with(DELETED);
        let file = fs::metadata(&link).ok().filter(|_| is_gone)?;
        Some(Program {
            path: without_mark(&text).to_owned(),
            link,
            file: (file.dev(), file.ino()),
        })
    });
    programs.take(MOST).collect()
}

fn without_mark(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(DELETED).unwrap_or(bytes);
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
