//! Tracepoints: events by name in tracefs.
//!
//! ```text
//! /sys/kernel/tracing/events/SYSTEM/EVENT/id          318
//! /sys/kernel/tracing/events/SYSTEM/EVENT/format      name: sched_switch …
//! /sys/kernel/tracing/events/header_page, header_event
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::perfdata::writer::TracepointFormats;

// Where tracefs is mounted: its own place since Linux 4.1, inside debugfs before.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

pub(in crate::sampler) fn directory() -> Option<PathBuf> {
    PLACES
        .iter()
        .map(PathBuf::from)
        // A user who may not list it cannot see whether it is mounted; reading the id will show it.
        .find(|place| match fs::symlink_metadata(place.join("events")) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        })
}

pub(in crate::sampler) fn id(tracefs: &Path, system: &str, event: &str) -> io::Result<u64> {
    let is_name = |s: &str| !s.is_empty() && !s.starts_with('.') && !s.contains('/');
    if !is_name(system) || !is_name(event) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let path = tracefs.join("events").join(system).join(event).join("id");
    fs::read_to_string(path)?
        .trim()
        .parse()
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The formats of `tracepoints`, each a system and an event.
pub(in crate::sampler) fn formats(
    tracefs: &Path,
    tracepoints: &[(String, String)],
) -> io::Result<TracepointFormats> {
    let events = tracefs.join("events");
    let mut formats = TracepointFormats {
        header_page: read(&events.join("header_page"))?,
        header_event: read(&events.join("header_event"))?,
        ..Default::default()
    };
    for (system, event) in tracepoints {
        let format = read(&events.join(system).join(event).join("format"))?;
        let of_system = formats.systems.entry(system.clone()).or_default();
        if !of_system.contains(&format) {
            of_system.push(format);
        }
    }
    Ok(formats)
}

// The bytes of a file of tracefs, with one large read to begin with: the header files answer the
// first read only, and `fs::read` begins with a small one.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; 1 << 16];
    let first = file.read(&mut bytes)?;
    bytes.truncate(first);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The systems, or the tracepoints of one system.
pub(in crate::sampler) fn names(tracefs: &Path, system: Option<&str>) -> Vec<String> {
    let mut directory = tracefs.join("events");
    directory.extend(system);
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
