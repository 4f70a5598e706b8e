//! Programs and libraries that run and whose file has no name: deleted, replaced, or only ever in
//! memory.
//!
//! ```text
//! /proc/PID/exe               /srv/app (deleted)      the text of the link
//!                             /memfd:app (deleted)    the link leads to the file all the same
//! /proc/PID/maps              START-END r-xp 00001000 08:01 52 /srv/lib.so (deleted)
//! /proc/PID/map_files/START-END                       leads to that, for those who may follow it
//! ```

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::search_directories::FileLocation;
use crate::files::{living_thread, read_list};

// No more of the list of a process's mappings is read, and no more of all lists, in bytes.
const LIST: usize = 1 << 20;
const LISTS: usize = 64 << 20;
// How long what was found is believed. Programs come and go.
const FRESH: Duration = Duration::from_secs(1);
// No more programs are looked at.
const MOST: usize = 1024;
// What the kernel adds to the name of a file that is gone.
const DELETED: &[u8] = b" (deleted)";

// A program or a library without a name.
#[derive(Clone, Debug)]
struct Program {
    // The path that it had.
    path: PathBuf,
    // The link that leads to it.
    link: PathBuf,
    // Device and inode.
    file: (u64, u64),
}

// Programs, and when they were found.
type Cached = Option<(Instant, Arc<[Program]>)>;

// The programs that run and have no name, as far as this user may look at them.
#[derive(Clone, Debug, Default)]
pub(super) struct NamelessPrograms {
    found: Arc<Mutex<Cached>>,
}

impl NamelessPrograms {
    // Where the programs are that had this path, and whether they are one file.
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
    let mut programs = Vec::new();
    let mut read = 0;
    for entry in processes {
        // The first thread may have ended before the others, and shows no memory then.
        let pid = entry.file_name().to_str().and_then(|pid| pid.parse().ok());
        let Some(by) = pid.and_then(living_thread) else {
            continue;
        };
        let process = Path::new("/proc").join(by.to_string());
        let exe = process.join("exe");
        let Ok(text) = fs::read_link(&exe) else {
            continue;
        };
        programs.extend(nameless(text.as_os_str().as_bytes(), exe));
        let most = LIST.min(LISTS - read);
        if let Ok(list) = read_list(&process.join("maps"), most, b'\n') {
            read += list.bytes.len();
            programs.extend(libraries(&process, &list.bytes));
        }
        if programs.len() >= MOST {
            break;
        }
    }
    programs
}

// The files without a name in a list of mappings of code, each once.
fn libraries(process: &Path, list: &[u8]) -> Vec<Program> {
    let mut found: Vec<Program> = Vec::new();
    let lines = list.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| line.ends_with(DELETED)) {
        // Range, permissions, offset, device, inode; the path follows spaces and may have some.
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let [Some(range), Some(permissions), _, _, _, Some(path)] =
            std::array::from_fn(|_| fields.next())
        else {
            continue;
        };
        if !permissions.contains(&b'x') {
            continue;
        }
        let link = process.join("map_files").join(OsStr::from_bytes(range));
        let program = nameless(path.trim_ascii_start(), link);
        found.extend(program.filter(|it| found.iter().all(|known| known.file != it.file)));
    }
    found
}

// The file at the end of a link, if it has no name by the link's text, and can be reached.
fn nameless(text: &[u8], link: PathBuf) -> Option<Program> {
    let path = text.strip_suffix(DELETED)?;
    let file = fs::metadata(&link).ok()?;
    Some(Program {
        path: Path::new(OsStr::from_bytes(path)).to_owned(),
        link,
        file: (file.dev(), file.ino()),
    })
}

fn without_mark(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(DELETED).unwrap_or(bytes);
    Path::new(OsStr::from_bytes(bytes))
}
