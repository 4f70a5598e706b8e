//! The names of code that is in no file, as its process lists them.
//!
//! | list | used |
//! |---|---|
//! | a jitdump file whose times cannot be used | first: its names are those of a perf map |
//! | a perf map that the recorder kept | where it ran in a container, which may be gone |
//! | a perf map of the process, while it lives or after | unless of an earlier one of the number |

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::CaveatKind;
use crate::binary::{self, PerfMap, ProcessTimes};
use crate::trace::{Image, ImageId, ImageKind, Trace};

use super::library::Library;

/// A list, or why there is none, if that is to be reported.
type Found = Result<Arc<PerfMap>, Option<Box<(CaveatKind, String)>>>;

/// The lists of generated code that come with a recording.
pub(super) struct Lists<'a> {
    /// Jitdump files whose times cannot be used.
    dumps: FxHashMap<i32, &'a Image>,
    /// Each is read once: a process may have very many images.
    kept: FxHashMap<i32, Arc<PerfMap>>,
}

impl<'a> Lists<'a> {
    pub(super) fn of(trace: &'a Trace, hit: &[ImageId]) -> Lists<'a> {
        let mut dumps = FxHashMap::default();
        for image in &trace.images {
            if let ImageKind::JitDump {
                pid,
                is_timed: false,
            } = image.kind
            {
                dumps.entry(pid).or_insert(image);
            }
        }
        let kinds = hit.iter().map(|&id| trace.images[id].kind);
        let processes: FxHashSet<i32> = kinds.filter_map(ImageKind::generated_by).collect();
        let mut kept: FxHashMap<i32, Arc<PerfMap>> = FxHashMap::default();
        let maps = trace.perf_maps.iter();
        let maps = maps.filter(|map| !map.lines.is_empty());
        for map in maps.filter(|map| processes.contains(&map.pid)) {
            let read = || Arc::new(PerfMap::parse(&map.lines));
            kept.entry(map.pid).or_insert_with(read);
        }
        Lists { dumps, kept }
    }

    pub(super) fn open(&self, trace: &Trace, image: &Image, pid: i32, library: &Library) -> Found {
        let is_of_here = library.may_name_generated(&trace.recording);
        if let Some(dump) = self.dumps.get(&pid)
            && let Ok(dump) = library.dump(pid, &dump.path)
        {
            return Ok(Arc::new(PerfMap::of(dump.everywhere())));
        }
        if let Some(kept) = self.kept.get(&pid) {
            return Ok(kept.clone());
        }
        match u32::try_from(pid) {
            Ok(number) if is_of_here => of_process(trace, image, number, library),
            _ => Err(None),
        }
    }
}

fn of_process(trace: &Trace, image: &Image, pid: u32, library: &Library) -> Found {
    let because = |kind, why: String| Err(Some(Box::new((kind, why))));
    match library.perf_map(pid, times(trace, pid.cast_signed())) {
        Ok(map) => Ok(Arc::new(map)),
        // It may be that of a library, which is reported.
        Err(_) if matches!(image.kind, ImageKind::Replaced { .. }) => Err(None),
        Err(binary::Error::NotFound) => {
            let path = PerfMap::path(pid);
            let why = format!("process {pid} (no {})", path.display());
            because(CaveatKind::GeneratedCode, why)
        }
        Err(error @ binary::Error::OlderThanProcess { .. }) => {
            let why = format!("process {pid} ({error})");
            because(CaveatKind::GeneratedCode, why)
        }
        Err(error) => because(
            CaveatKind::MissingBinary,
            format!("{}: {error}", image.path),
        ),
    }
}

/// When a process ran, as far as the recording says.
fn times(trace: &Trace, pid: i32) -> ProcessTimes {
    let wall = |nanoseconds| -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_nanos(nanoseconds))
    };
    let generator = trace.generators.get(&pid);
    ProcessTimes {
        began: generator.and_then(|it| it.began).and_then(wall),
        seen: trace.recording.written,
    }
}
