//! File systems as other processes of this machine see them: those of containers and of `chroot`.
//!
//! ```text
//! /proc/PID/ns/mnt    mnt:[4026531841]    which mounts the process sees
//! /proc/PID/root      /srv/jail           where its paths begin; can be walked, whatever it is
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

// How long what was found is believed. Containers come and go.
const FRESH: Duration = Duration::from_secs(1);
// No more file systems are looked at.
const MOST: usize = 256;

// Directories, and when they were found.
type Cached = Option<(Instant, Arc<[PathBuf]>)>;

// The roots of file systems that are not this process's own, as far as they may be looked at.
#[derive(Clone, Debug, Default)]
pub(in crate::binary) struct Namespaces {
    found: Arc<Mutex<Cached>>,
}

impl Namespaces {
    // One directory for each.
    pub(in crate::binary) fn roots(&self) -> Arc<[PathBuf]> {
        let mut found = self.found.lock().expect("no worker panics");
        match &*found {
            Some((when, roots)) if when.elapsed() < FRESH => roots.clone(),
            _ => {
                let roots: Arc<[PathBuf]> = look().into();
                *found = Some((Instant::now(), roots.clone()));
                roots
            }
        }
    }
}

fn look() -> Vec<PathBuf> {
    let mut seen: FxHashSet<_> = view(Path::new("/proc/self")).into_iter().collect();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbered = processes.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
    });
    let other = numbered
        .map(|entry| entry.path())
        .filter(|process| view(process).is_some_and(|view| seen.insert(view)));
    other
        .map(|process| process.join("root"))
        .take(MOST)
        .collect()
}

// What tells the file systems of two processes apart: the mounts, and where paths begin.
fn view(process: &Path) -> Option<(PathBuf, PathBuf)> {
    let mounts = fs::read_link(process.join("ns/mnt")).ok()?;
    Some((mounts, fs::read_link(process.join("root")).ok()?))
}
