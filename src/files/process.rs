//! What `/proc/PID` shows of a process that is not trusted.
//!
//! A process decides what is there and how long it is: it may state arguments of gigabytes without
//! having them (`PR_SET_MM_MAP`), and map files with long paths so often that the list of its
//! mappings has as much. So all is read up to a length.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{CWD, Mode};

use super::{Error, MadeUp, OpenedFile, open_checked};

/// What was read of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOfProcess {
    /// The bytes; if it is cut, up to the end of the last whole entry.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

/// Reads a list of `/proc/PID`, at most so many bytes of it. Its entries end with this byte.
///
/// # Errors
/// As of the system.
pub fn read_list(path: &Path, most: usize, end: u8) -> io::Result<ListOfProcess> {
    let mut bytes = Vec::new();
    let one_more = most as u64 + 1;
    File::open(path)?.take(one_more).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > most;
    if is_cut {
        bytes.truncate(most);
        let last = bytes.iter().rposition(|&byte| byte == end);
        bytes.truncate(last.map_or(0, |last| last + 1));
    }
    Ok(ListOfProcess { bytes, is_cut })
}

/// Opens the regular file that a link of `/proc/PID` leads to, such as `exe` or one in `map_files`:
/// the very file that the process has, whatever its name is.
///
/// # Errors
/// When there is no such file, it is not a regular one, or it may not be read.
pub fn open_link(path: &Path) -> Result<OpenedFile, Error> {
    open_checked(path, MadeUp::Refuse, |flags| {
        rustix::fs::openat(CWD, path, flags, Mode::empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_up_to_a_length_and_a_whole_entry() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let path = std::env::temp_dir().join(format!("proftool-list-{now}"));
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let read = |most| read_list(&path, most, b'\n').unwrap();
        let list = |text: &str, is_cut| ListOfProcess {
            bytes: text.as_bytes().to_vec(),
            is_cut,
        };
        assert_eq!(read(14), list("one\ntwo\nthree\n", false));
        assert_eq!(read(13), list("one\ntwo\n", true));
        assert_eq!(read(2), list("", true));
        std::fs::remove_file(&path).unwrap();
    }
}
