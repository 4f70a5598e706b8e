//! Whether a file is the one that ran, without a build ID.
//!
//! ```text
//! content, size, time of writing    as our recorder saw them: they decide, wherever the file is
//! inode and its generation          as the kernel saw them: on the machine that was recorded
//! time of the last sample           what was written after it did not run
//! ```
//!
//! A file that is proven to be another one is not used. Where it is only possible, that is
//! reported.

use std::time::{Duration, SystemTime};

use crate::base::{FileContent, FileId, FileStatus};
use crate::binary::{self, Binary};
use crate::trace::{Image, ImageKind, Recording, SampleTime};

use crate::symbolize::host::Host;

// How the clocks of two machines may differ.
const SLACK: Duration = Duration::from_secs(60);

// A file's time is that of the kernel's last tick, of which there are at least 100 in a second.
const TICK: Duration = Duration::from_millis(10);

/// What is known of a file that was found for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Nothing shows that it is another one than the one that ran.
    Same,
    /// It may be another one; why.
    Unproven(&'static str),
    /// It is another one; why.
    Other(&'static str),
}

use Identity::{Other, Same, Unproven};

/// The machine on which files are looked for, as seen from a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The one that was recorded.
    SameMachine,
    /// Its kernel has the same release, but another name: perhaps a container of the same machine.
    SameKernel,
    /// Another one, or a directory that stands for its root.
    Elsewhere,
}

impl Identity {
    /// Compares a file with what a recording states about an image. `has_root` is whether files are
    /// looked for below another directory than `/`.
    pub(super) fn of(
        binary: &Binary,
        image: &Image,
        recording: &Recording,
        host: &Host,
        has_root: bool,
    ) -> Identity {
        let (ImageKind::File, Some(found)) = (image.kind, binary.status()) else {
            return Same;
        };
        let place = match () {
            () if has_root => Place::Elsewhere,
            () if host.is_named(recording) => Place::SameMachine,
            // A recording that states no kernel may be of any machine, where inodes mean something
            // else.
            () if recording.os_release.is_some() && host.may_have_made(recording) => {
                Place::SameKernel
            }
            () => Place::Elsewhere,
        };
        let ended = ended(recording, place);
        let mapped_at = image.file.and_then(|id| recording.mapped.get(&id));
        let mapped_at = mapped_at.and_then(|&time| mapped(recording, time, place));
        if image.build_id.is_some() {
            // Copies that are found by the build ID are other files.
            if place != Place::SameMachine || binary.path() != image.file_path() {
                return Same;
            }
            // perf links files into its cache when it has read their build IDs, which changes their
            // times, and is done with the recording after that.
            let read = recording.written.max(ended);
            return of_listed_build(image.file, &found, (mapped_at, read));
        }
        if let Some((mapped, content)) = recording.mapped_file(image) {
            return of_mapped(binary, mapped, content, &found, place);
        }
        let is_other = image.file.is_some_and(|id| !id.may_be(found.id));
        let is_later = is_after(found.modified, mapped_at.or(ended));
        match place {
            Place::Elsewhere if is_later => Unproven(WRITTEN),
            Place::Elsewhere if is_other && !has_root => {
                Unproven("it is not known to be the file that ran")
            }
            Place::Elsewhere => Same,
            _ if is_other => Other("it is another file than the one that ran"),
            _ if is_later => Other(WRITTEN),
            _ if is_after(found.changed, ended) => Unproven("it was changed after the recording"),
            _ if image
                .file
                .is_some_and(|id| is_on_other_device(id, found.id)) =>
            {
                Unproven("it is on another device than the file that ran")
            }
            _ => Same,
        }
    }
}

const WRITTEN: &str = "it was written after it had been mapped";

/// Of a file whose build ID the recorder read at the end, by its path: it is that of another build
/// if that had taken the place of the one that ran.
fn of_listed_build(
    mapped: Option<FileId>,
    found: &FileStatus,
    (mapped_at, read): (Option<SystemTime>, Option<SystemTime>),
) -> Identity {
    let (Some(mapped), Some(_)) = (mapped, read) else {
        return Same;
    };
    // A file system without a disk may have other inodes for the kernel than for programs.
    let is_plain = mapped.device == found.id.device || found.id.device.0 != 0;
    let is_other = is_plain && !mapped.may_be(found.id);
    let is_later = mapped_at.is_some() && is_after(found.modified, mapped_at);
    // A file that was put there later with the build ID that was read then is as good.
    if (is_other || is_later) && !is_after(found.changed, read) {
        return Other("it took the place of the file that ran before the recording ended");
    }
    Same
}

/// Of a file that the recorder looked at.
fn of_mapped(
    binary: &Binary,
    mapped: &FileStatus,
    content: Option<&FileContent>,
    found: &FileStatus,
    place: Place,
) -> Identity {
    let is_untouched = FileStatus {
        id: mapped.id,
        ..*found
    } == *mapped
        && mapped.id.may_be(found.id);
    if is_untouched && place != Place::Elsewhere {
        return Same;
    }
    match content.and_then(|content| binary.has_content(content)) {
        Some(true) => return Same,
        Some(false) => return Other("its content is not that of the file that ran"),
        None => {}
    }
    match place {
        _ if mapped.size != found.size => Other("its size is not that of the file that ran"),
        _ if mapped.modified == found.modified => Same,
        Place::Elsewhere => Unproven("it was written at another time than the file that ran"),
        _ => Other("it was written after the file that ran"),
    }
}

/// Whether two files of the same inode are on different disks.
fn is_on_other_device(recorded: FileId, found: FileId) -> bool {
    // Devices without a disk, of major number 0, have any number.
    let devices = [recorded.device, found.device];
    devices[0] != devices[1]
        && devices.iter().all(|device| device.0 != 0)
        && (recorded.generation == 0 || recorded.generation != found.generation)
}

fn ended(recording: &Recording, place: Place) -> Option<SystemTime> {
    let sampled = recording.ended.and_then(|time| latest(time, place));
    let is_exact = sampled.is_some() && place != Place::Elsewhere;
    let slack = if is_exact { Duration::ZERO } else { SLACK };
    let written = recording.written.and_then(|time| time.checked_add(slack));
    // A copy of the recording was written later.
    sampled.into_iter().chain(written).min()
}

/// The latest time of day at which a file was mapped, at this time by the recording's clock.
fn mapped(recording: &Recording, time: SampleTime, place: Place) -> Option<SystemTime> {
    // The recorder wrote its file after the last sample, which is closer than the clocks of the
    // machine are to the kernel's: these may be seconds apart after a day.
    let until_end = recording.ended.and_then(|ended| ended.since(time));
    let written = recording
        .written
        .filter(|_| place != Place::Elsewhere)
        .map(|written| written + TICK);
    let by_end = written
        .zip(until_end)
        .and_then(|(written, until)| written.checked_sub(until));
    latest(time, place).into_iter().chain(by_end).min()
}

/// The latest time of day that this may have been.
fn latest(time: SampleTime, place: Place) -> Option<SystemTime> {
    // The kernel's clock is that of one machine.
    let slack = match place {
        Place::Elsewhere => SLACK,
        Place::SameMachine | Place::SameKernel => Duration::ZERO,
    };
    match time {
        SampleTime::Wall(time) => {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(time) + slack)
        }
        SampleTime::Kernel(time) => {
            (place == Place::SameMachine).then(|| binary::latest_time(Duration::from_nanos(time)))
        }
    }
}

fn is_after(nanoseconds: i64, time: Option<SystemTime>) -> bool {
    time.is_some_and(|time| at(nanoseconds) > time)
}

fn at(nanoseconds: i64) -> SystemTime {
    let since = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH + since
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(device: (u32, u32), inode: u64, generation: u32) -> FileId {
        FileId {
            device,
            inode,
            generation,
        }
    }

    fn seconds(time: u64) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time))
    }

    #[test]
    fn a_listed_build_is_not_that_of_a_file_that_was_replaced_before_the_end() {
        let found = FileStatus {
            id: id((8, 1), 6, 0),
            size: 1,
            modified: 50_000_000_000,
            changed: 50_000_000_000,
        };
        let of = |mapped, mapped_at, ended| {
            of_listed_build(Some(mapped), &found, (seconds(mapped_at), seconds(ended)))
        };
        let replaced = |identity| matches!(identity, Other(_));
        assert!(replaced(of(id((8, 1), 5, 0), 40, 60)));
        assert!(replaced(of(id((0, 40), 5, 0), 40, 60)));
        // It was written over.
        assert!(replaced(of(found.id, 40, 60)));
        // Installed again later, with the same build ID.
        assert_eq!(of(id((8, 1), 5, 0), 30, 40), Same);
        assert_eq!(of(found.id, 30, 40), Same);
        assert_eq!(of(found.id, 51, 60), Same);
    }

    #[test]
    fn a_copy_of_a_recording_does_not_end_later() {
        let mut recording = Recording {
            written: seconds(900),
            ended: Some(SampleTime::Wall(50_000_000_000)),
            ..Recording::default()
        };
        assert_eq!(ended(&recording, Place::SameMachine), seconds(50));
        assert_eq!(ended(&recording, Place::Elsewhere), seconds(110));
        recording.ended = None;
        assert_eq!(ended(&recording, Place::SameMachine), seconds(960));
    }

    #[test]
    fn a_file_was_mapped_as_long_before_the_end_as_the_samples_say() {
        let recording = Recording {
            written: seconds(900),
            ended: Some(SampleTime::Kernel(50_000_000_000)),
            ..Recording::default()
        };
        let at = SampleTime::Kernel(20_000_000_000);
        let known = mapped(&recording, at, Place::SameKernel);
        assert_eq!(known, seconds(870).map(|time| time + TICK));
        assert_eq!(mapped(&recording, at, Place::Elsewhere), None);
        let of_other_clock = SampleTime::Wall(20_000_000_000);
        let known = mapped(&recording, of_other_clock, Place::SameMachine);
        assert_eq!(known, seconds(20));
    }

    #[test]
    fn only_devices_with_disks_are_told_apart() {
        let ran = id((8, 1), 5, 0);
        assert!(is_on_other_device(ran, id((8, 17), 5, 0)));
        assert!(!is_on_other_device(ran, id((0, 17), 5, 0)));
        assert!(!is_on_other_device(id((8, 1), 5, 7), id((8, 17), 5, 7)));
    }
}
