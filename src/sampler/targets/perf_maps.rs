//! Lists of the code that processes in containers generate, kept for readers of the recording.
//!
//! Such a list is below the root of its process, where nobody finds it once the process has ended.
//! An open file can be read after that.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::files::{LastLink, ProcessView};
use crate::perfdata::KeptPerfMap;

// The most processes that are looked at, and those whose lists are kept open.
const PROCESSES: usize = 4096;
pub(super) const OPENED: usize = 64;
// The most bytes of one list, and of all with the jitdump files.
pub(super) const LIST_BYTES: u64 = 32 << 20;
pub(in crate::sampler) const KEPT_BYTES: u64 = 128 << 20;
// The start of the machine is known to a second, and with it that of a process.
const CLOCK_SLACK: Duration = Duration::from_secs(5);
// How often a list is looked for that is not there yet: a process may begin it late.
const LOOKS: u32 = 256;

#[derive(Debug)]
enum List {
    /// It is where readers find it.
    Here,
    Missing(u32),
    Opened(File),
}

#[derive(Debug, Default)]
pub(in crate::sampler) struct PerfMaps {
    lists: FxHashMap<i32, List>,
    opened: usize,
}

impl PerfMaps {
    /// A process has mapped code that is in no file.
    pub(in crate::sampler) fn generates(&mut self, pid: i32) {
        let known = self.lists.get(&pid);
        let looks = match known {
            None if self.lists.len() < PROCESSES => 0,
            Some(List::Missing(looks)) if *looks < LOOKS && self.opened < OPENED => *looks,
            _ => return,
        };
        let list = look(pid, looks);
        self.opened += usize::from(matches!(list, List::Opened(_)));
        self.lists.insert(pid, list);
    }

    /// A process has become another program, and may see other files.
    pub(in crate::sampler) fn exec(&mut self, pid: i32) {
        if let Some(List::Opened(_)) = self.lists.remove(&pid) {
            self.opened -= 1;
        }
    }

    /// The lists as they are at the end, with this number of bytes at most.
    pub(in crate::sampler) fn kept(&mut self, most: u64) -> Vec<KeptPerfMap> {
        let missing: Vec<i32> = self.lists.keys().copied().collect();
        for pid in missing {
            self.generates(pid);
        }
        let mut left = most;
        let mut kept = Vec::new();
        let mut lists: Vec<_> = self.lists.iter().collect();
        lists.sort_unstable_by_key(|(pid, _)| **pid);
        for (&pid, list) in lists {
            let List::Opened(file) = list else { continue };
            let Ok((lines, left_out)) = read(file, LIST_BYTES.min(left)) else {
                continue;
            };
            left -= lines.len() as u64;
            if !lines.is_empty() || left_out > 0 {
                kept.push(KeptPerfMap {
                    pid,
                    lines,
                    left_out,
                });
            }
        }
        kept
    }
}

/// The first lines of a list, this number of bytes at most, and how many bytes it has after them.
fn read(file: &File, most: u64) -> io::Result<(Vec<u8>, u64)> {
    let size = file.metadata()?.len();
    let mut lines = Vec::new();
    file.take(most).read_to_end(&mut lines)?;
    // The last line may be half written, which is not worth a word, or cut.
    let end = lines.iter().rposition(|&b| b == b'\n');
    lines.truncate(end.map_or(0, |at| at + 1));
    let left_out = if size > most {
        size - lines.len() as u64
    } else {
        0
    };
    Ok((lines, left_out))
}

// Looks for the list of a process. It is used only if it belongs to the user of the process or to
// root: other users can write to the directory where it is.
fn look(pid: i32, looks: u32) -> List {
    let view = u32::try_from(pid).ok().and_then(ProcessView::of);
    let Some(view) = view else {
        return List::Missing(LOOKS);
    };
    if !view.is_elsewhere {
        return List::Here;
    }
    match view.root.open(&view.perf_map(), LastLink::Refuse) {
        Ok(opened) if is_of(&view, &opened.metadata) => List::Opened(opened.file),
        _ => List::Missing(looks + 1),
    }
}

/// Whether a list may be believed to be of a process, and not of another user or an earlier
/// process.
pub(super) fn is_of(process: &ProcessView, list: &Metadata) -> bool {
    let times = list.modified().ok().zip(process.started);
    let is_later = times.is_none_or(|(written, started)| written + CLOCK_SLACK >= started);
    is_later && [0, process.user].contains(&list.uid())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_list_that_is_too_large_is_kept_up_to_the_limit_and_says_so() {
        let path = std::env::temp_dir().join(format!("proftool-map-{}", std::process::id()));
        let lines = b"1000 10 first\n1010 10 second\n";
        fs::write(&path, lines).unwrap();
        let first = |most| read(&File::open(&path).unwrap(), most).unwrap();
        assert_eq!(first(1 << 20), (lines.to_vec(), 0));
        assert_eq!(first(20), (lines[..14].to_vec(), 15));
        assert_eq!(first(0), (Vec::new(), 29));
        // Half of a line that is being written.
        fs::write(&path, &lines[..20]).unwrap();
        assert_eq!(first(1 << 20), (lines[..14].to_vec(), 0));
        fs::remove_file(&path).unwrap();
    }
}
