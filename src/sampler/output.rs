//! The output file, which is the old one until the new one is whole.
//!
//! ```text
//!   perf.data         the recording of before              perf.data.old
//!                                              ─ rename ─▶
//!   perf.data.part    the recording that is being made     perf.data
//! ```
//!
//! The part file stands beside the output, so that it is on the same file system and is found by
//! who looks for the output. Its name is taken only if nobody has it; the recording of a recorder
//! that was killed is therefore never overwritten, and the next one is `perf.data.part2`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How many part files are left alone before recording to this output is refused.
const PART_FILES: usize = 100;

/// A file that becomes the output when it is whole. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Output {
    target: PathBuf,
    part: PathBuf,
    keep: bool,
}

impl Output {
    /// Makes the part file, for its owner only whatever the umask; gives it and the part file
    /// of another recording, if there is one.
    pub(super) fn create(target: &Path) -> io::Result<(Output, File, Option<PathBuf>)> {
        check_target(target)?;
        let mut other = None;
        for number in 1..=PART_FILES {
            let part = with_suffix(target, &part_suffix(number));
            // create_new is O_EXCL: it does not follow a symbolic link either.
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part);
            match opened {
                Ok(file) => {
                    let output = Output {
                        target: target.to_owned(),
                        part,
                        keep: false,
                    };
                    file.set_permissions(Permissions::from_mode(0o600))?;
                    return Ok((output, file, other));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    other = Some(part);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{PART_FILES} part files of killed recordings are in the way"),
        ))
    }

    /// Gives the file its name; what had the name before is now called `.old`.
    pub(super) fn commit(mut self) -> io::Result<()> {
        match fs::rename(&self.target, with_suffix(&self.target, ".old")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(&self.part, &self.target)?;
        self.keep = true;
        Ok(())
    }

    /// Leaves the part file where it is, and tells its name.
    pub(super) fn keep_part(mut self) -> PathBuf {
        self.keep = true;
        self.part.clone()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing can be done if it fails.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// A recording replaces a file or nothing: replacing a device or a directory would be a mistake.
fn check_target(target: &Path) -> io::Result<()> {
    let refuse = |what| Err(io::Error::other(what));
    if target.file_name().is_none() {
        return refuse("it is a directory");
    }
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => refuse("it is a directory"),
        Ok(found) if found.is_file() || found.is_symlink() => Ok(()),
        Ok(_) => refuse("it is a device, pipe or socket; a recording needs a file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn part_suffix(number: usize) -> String {
    match number {
        1 => ".part".to_owned(),
        _ => format!(".part{number}"),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(suffix);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("proftool-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Directory(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_whole() {
        let directory = Directory::new("output");
        let target = directory.0.join("perf.data");
        fs::write(&target, "old").unwrap();
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        output.commit().unwrap();
        assert_eq!(directory.names(), ["perf.data", "perf.data.old"]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn a_recording_that_failed_leaves_nothing() {
        let directory = Directory::new("failed");
        let (output, _, _) = Output::create(&directory.0.join("perf.data")).unwrap();
        assert_eq!(directory.names(), ["perf.data.part"]);
        drop(output);
        assert!(directory.names().is_empty());
    }

    #[test]
    fn the_part_of_a_killed_recording_is_left_alone_and_named() {
        let directory = Directory::new("killed");
        let target = directory.0.join("perf.data");
        let (killed, _, other) = Output::create(&target).unwrap();
        assert_eq!(other, None);
        let part = killed.keep_part();
        let (output, _, other) = Output::create(&target).unwrap();
        assert_eq!(other.as_ref(), Some(&part));
        output.commit().unwrap();
        assert_eq!(directory.names(), ["perf.data", "perf.data.part"]);
    }

    #[test]
    fn only_a_file_is_replaced() {
        let directory = Directory::new("kinds");
        for target in [&directory.0, Path::new("/dev/null"), Path::new("/")] {
            assert!(Output::create(target).is_err(), "{}", target.display());
        }
        let missing = directory.0.join("no/such/perf.data");
        assert_eq!(
            Output::create(&missing).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
