//! The output file, which stays the old one until the new one is complete.
//!
//! ```text
//!   perf.data         the recording of before              perf.data.old
//!                                              ─ rename ─▶
//!   perf.data.part    the recording that is being made     perf.data
//! ```
//!
//! The part file is in the directory of the output: on the same file system, and where the user
//! looks for it. Its name is taken only if it is free, so the part file of a recorder that was
//! killed is never overwritten; the next one is `perf.data.part2`.
//!
//! From [`Output::begin`] on nothing here removes the part file: whatever fails then, the
//! recording stays, and the error names it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::earlier::{check_earlier, check_target};
use crate::base::system_reason;
use crate::sampler::error::Error;

// How many part files are left alone before recording to this output is refused.
const PART_FILES: usize = 100;
// The room that must be there: enough for the head of a file.
const LEAST_ROOM: usize = 4096;

#[derive(Debug)]
pub(in crate::sampler) struct Output {
    target: PathBuf,
    part: PathBuf,
    /// Whether there may be something in it that must not be lost.
    has_begun: bool,
}

impl Output {
    /// Makes the part file, for its owner only whatever the umask; gives it and the part file of
    /// another recording, if there is one. Fails if it cannot be made, or could not get its name in
    /// the end. To be called with SIGXFSZ held back.
    pub(in crate::sampler) fn create(
        target: &Path,
    ) -> Result<(Output, File, Option<PathBuf>), Error> {
        let failed = |error: io::Error| failure(target, &error);
        check_target(target).map_err(failed)?;
        let (part, mut file, other) = create_part(target).map_err(failed)?;
        let output = Output {
            target: target.to_owned(),
            part,
            has_begun: false,
        };
        check_earlier(target, &with_suffix(target, ".old"), &file)?;
        // A full disk or a limit should show now, not after the command has run.
        let fits = file.write_all(&[0; LEAST_ROOM]);
        fits.and_then(|()| file.set_len(0))
            .and_then(|()| file.rewind())
            .map_err(failed)?;
        Ok((output, file, other))
    }

    /// From now on there is something to lose: the part file stays, whatever happens.
    pub(in crate::sampler) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Gives the file its name; what had the name before is now called `.old`, but for an error,
    /// which tells where the recording is.
    pub(in crate::sampler) fn commit(mut self, file: &File) -> Result<(), Error> {
        self.begin();
        let found = self.find(file).map_err(|error| Error::Gone {
            path: self.target.clone(),
            reason: system_reason(&error),
        })?;
        let unnamed = |error: io::Error| Error::Unnamed {
            path: self.target.clone(),
            reason: system_reason(&error),
            kept: found.clone(),
        };
        if found.parent() != self.target.parent() {
            return Err(unnamed(io::Error::other(
                "its directory was removed or moved meanwhile",
            )));
        }
        // What is there now may be something else than at the beginning.
        check_target(&self.target).map_err(unnamed)?;
        let old = with_suffix(&self.target, ".old");
        let is_replaced = match fs::rename(&self.target, &old) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(unnamed(error)),
        };
        fs::rename(&found, &self.target).map_err(|error| {
            if is_replaced {
                // If this fails, too, the earlier recording stays as FILE.old.
                let _ = fs::rename(&old, &self.target);
            }
            unnamed(error)
        })
    }

    /// Leaves the part file if something was recorded; tells where it is, unless it is gone and
    /// cannot be saved.
    pub(in crate::sampler) fn keep_part(
        mut self,
        file: &File,
        has_recorded: bool,
    ) -> Option<PathBuf> {
        self.has_begun = has_recorded;
        has_recorded.then(|| self.find(file).ok()).flatten()
    }

    /// Where the file is: under its name, or where it was moved to. If it was removed, its
    /// contents are saved: next to the output, else in the directory for temporary files.
    fn find(&self, file: &File) -> io::Result<PathBuf> {
        let own = file.metadata()?;
        let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| is_same(&it, &own));
        if is_own(&self.part) {
            return Ok(self.part.clone());
        }
        if own.nlink() > 0
            && let Ok(moved) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            && is_own(&moved)
        {
            return Ok(moved);
        }
        self.save(file, &self.target).or_else(|error| {
            let name = self.target.file_name().ok_or(error)?;
            self.save(file, &std::env::temp_dir().join(name))
        })
    }

    fn save(&self, mut file: &File, target: &Path) -> io::Result<PathBuf> {
        let (path, mut copy, _) = create_part(target)?;
        file.rewind()?;
        match io::copy(&mut file, &mut copy) {
            Ok(_) => Ok(path),
            Err(error) => {
                // A part of a copy is no recording; its source is still open.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.has_begun {
            // Nothing can be done if it fails.
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> Error {
    Error::Output {
        path: path.to_owned(),
        reason: system_reason(error),
    }
}

/// Makes a part file of `target` under the first free name; gives the last one that was not, too.
fn create_part(target: &Path) -> io::Result<(PathBuf, File, Option<PathBuf>)> {
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
                file.set_permissions(Permissions::from_mode(0o600))?;
                return Ok((part, file, other));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => other = Some(part),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("{PART_FILES} part files of other recordings are in the way"),
    ))
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
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

    /// An earlier recording.
    const OLD: &[u8] = b"PERFILE2 of before";

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
        fs::write(&target, OLD).unwrap();
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), OLD);
        output.commit(&file).unwrap();
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
        let (killed, file, other) = Output::create(&target).unwrap();
        assert_eq!(other, None);
        let part = killed.keep_part(&file, true);
        let (output, file, other) = Output::create(&target).unwrap();
        assert_eq!(other, part);
        output.commit(&file).unwrap();
        assert_eq!(directory.names(), ["perf.data", "perf.data.part"]);
    }

    #[test]
    fn only_a_file_is_replaced() {
        let directory = Directory::new("kinds");
        for target in [&directory.0, Path::new("/dev/null"), Path::new("/")] {
            assert!(Output::create(target).is_err(), "{}", target.display());
        }
        let missing = directory.0.join("no/such/perf.data");
        let error = Output::create(&missing).unwrap_err().to_string();
        assert!(error.ends_with("no such file or directory"), "{error}");
        assert!(directory.names().is_empty());
    }

    #[test]
    fn a_file_that_is_no_recording_is_not_replaced() {
        let directory = Directory::new("other");
        let target = directory.0.join("prog");
        let old = directory.0.join("prog.old");
        for (contents, mode) in [(&b"\x7fELF"[..], 0o644), (b"#!/bin/sh\n", 0o755)] {
            fs::write(&target, contents).unwrap();
            fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
            let link = directory.0.join("link");
            std::os::unix::fs::symlink("prog", &link).unwrap();
            for target in [&target, &link] {
                let error = Output::create(target).unwrap_err().to_string();
                assert!(error.ends_with("it exists and is a program"), "{error}");
            }
            fs::remove_file(&link).unwrap();
            assert_eq!(fs::read(&target).unwrap(), contents);
            fs::remove_file(&target).unwrap();
        }
        for contents in [&b"main;f 3\n"[..], b"PERF"] {
            fs::write(&target, contents).unwrap();
            let error = Output::create(&target).unwrap_err().to_string();
            assert!(error.ends_with("it exists and is no recording"), "{error}");
            // A file that is FILE.old already is not lost for another one.
            fs::rename(&target, &old).unwrap();
            fs::write(&target, OLD).unwrap();
            let error = Output::create(&target).unwrap_err();
            assert!(matches!(error, Error::EarlierStays { .. }), "{error}");
            fs::remove_file(&old).unwrap();
        }
        assert_eq!(directory.names(), ["prog"]);
        // As mktemp makes it.
        fs::write(&target, "").unwrap();
        drop(Output::create(&target).unwrap());
        // What is called as recordings are is kept.
        let (target, old) = (
            directory.0.join("out.data"),
            directory.0.join("out.data.old"),
        );
        fs::write(&target, "x,y\n").unwrap();
        let (output, file, _) = Output::create(&target).unwrap();
        output.commit(&file).unwrap();
        assert_eq!(fs::read(&old).unwrap(), b"x,y\n");
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let directory = Directory::new("link");
        let target = directory.0.join("perf.data");
        fs::write(directory.0.join("elsewhere"), OLD).unwrap();
        std::os::unix::fs::symlink("elsewhere", &target).unwrap();
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        output.commit(&file).unwrap();
        assert_eq!(fs::read(directory.0.join("elsewhere")).unwrap(), OLD);
        assert_eq!(fs::read(directory.0.join("perf.data.old")).unwrap(), OLD);
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn an_earlier_recording_that_cannot_be_kept_is_refused_at_once() {
        let directory = Directory::new("earlier");
        let target = directory.0.join("perf.data");
        fs::create_dir(directory.0.join("perf.data.old")).unwrap();
        // Nothing is to be kept yet.
        drop(Output::create(&target).unwrap());
        fs::write(&target, OLD).unwrap();
        let error = Output::create(&target).unwrap_err();
        assert!(matches!(error, Error::EarlierStays { .. }), "{error}");
        assert_eq!(directory.names(), ["perf.data", "perf.data.old"]);
    }

    #[test]
    fn a_recording_that_cannot_get_its_name_is_kept_and_named() {
        let directory = Directory::new("unnamed");
        let target = directory.0.join("perf.data");
        fs::write(&target, OLD).unwrap();
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        fs::create_dir(directory.0.join("perf.data.old")).unwrap();
        let Err(Error::Unnamed { kept, .. }) = output.commit(&file) else {
            panic!("a file cannot take the name of a directory");
        };
        assert_eq!(kept, directory.0.join("perf.data.part"));
        assert_eq!(fs::read(&kept).unwrap(), b"new");
        assert_eq!(fs::read(&target).unwrap(), OLD);
    }

    #[test]
    fn an_output_that_became_a_directory_meanwhile_is_not_touched() {
        let directory = Directory::new("became");
        let target = directory.0.join("perf.data");
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        fs::create_dir(&target).unwrap();
        let Err(Error::Unnamed { kept, .. }) = output.commit(&file) else {
            panic!("a directory is not replaced");
        };
        assert_eq!(fs::read(kept).unwrap(), b"new");
        assert_eq!(directory.names(), ["perf.data", "perf.data.part"]);
    }

    #[test]
    fn a_part_file_that_was_removed_is_written_again() {
        let directory = Directory::new("removed");
        let target = directory.0.join("perf.data");
        let (output, mut file, _) = Output::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        fs::remove_file(directory.0.join("perf.data.part")).unwrap();
        output.commit(&file).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(directory.names(), ["perf.data"]);
    }

    #[test]
    fn a_recording_survives_its_directory() {
        let directory = Directory::new("vanished");
        let inner = directory.0.join("inner");
        let moved = directory.0.join("moved");
        let name = format!("proftool-vanished-{}.data", std::process::id());
        for is_moved in [true, false] {
            fs::create_dir(&inner).unwrap();
            let (output, mut file, _) = Output::create(&inner.join(&name)).unwrap();
            file.write_all(b"new").unwrap();
            if is_moved {
                fs::rename(&inner, &moved).unwrap();
            } else {
                fs::remove_dir_all(&inner).unwrap();
            }
            let Err(Error::Unnamed { kept, .. }) = output.commit(&file) else {
                panic!("there is no directory for the name");
            };
            assert_eq!(fs::read(&kept).unwrap(), b"new");
            assert_eq!(kept.starts_with(&moved), is_moved, "{}", kept.display());
            fs::remove_file(&kept).unwrap();
        }
    }

    #[test]
    fn a_recording_that_has_begun_is_never_removed() {
        let directory = Directory::new("begun");
        let (mut output, _, _) = Output::create(&directory.0.join("perf.data")).unwrap();
        output.begin();
        drop(output);
        assert_eq!(directory.names(), ["perf.data.part"]);
    }
}
