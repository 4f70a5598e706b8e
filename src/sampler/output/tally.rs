//! What passes from the kernel to the file, counted.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::base::BuildId;
use crate::perfdata::raw::{self, Layouts, RawRecord};
use crate::perfdata::writer::WriterEvent;
use crate::perfdata::{Body, Mapping};
use crate::sampler::counts::Sums;
use crate::sampler::targets::jit_dumps::JitDumps;
use crate::sampler::targets::mapped_files::MappedFiles;
use crate::sampler::targets::other_namespaces::Elsewhere;
use crate::sampler::targets::perf_maps::PerfMaps;

#[derive(Debug, Default)]
pub(in crate::sampler) struct Tally {
    pub(in crate::sampler) samples: u64,
    pub(in crate::sampler) lost_records: u64,
    pub(in crate::sampler) lost_samples: u64,
    pub(in crate::sampler) throttled: u64,
    pub(in crate::sampler) execs: u64,
    /// How many threads ended, the first ones of processes included.
    pub(in crate::sampler) exits: u64,
    /// The threads and processes that began since they were taken, while somebody takes them.
    pub(in crate::sampler) began: Option<Vec<Began>>,
    pub(in crate::sampler) sums: Sums,
    pub(in crate::sampler) times: Option<(u64, u64)>,
    /// The files that were mapped as code, with their build IDs if the kernel recorded them.
    pub(in crate::sampler) images: HashMap<Vec<u8>, Option<BuildId>, FxBuildHasher>,
    /// Those without a build ID, as they were when they were mapped.
    pub(in crate::sampler) mapped_files: MappedFiles,
    /// Those that were mapped below other roots, as in containers.
    pub(in crate::sampler) elsewhere: Elsewhere,
    pub(in crate::sampler) perf_maps: PerfMaps,
    pub(in crate::sampler) jit_dumps: JitDumps,
    pub(in crate::sampler) layouts: Layouts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) struct Began {
    /// The process that has made it, which is its own if it is a thread.
    pub(in crate::sampler) parent: i32,
    pub(in crate::sampler) tid: i32,
    pub(in crate::sampler) time: u64,
}

impl Tally {
    pub(in crate::sampler) fn new(events: &[WriterEvent]) -> Tally {
        Tally {
            sums: Sums::new(events),
            layouts: Layouts::new(events),
            ..Tally::default()
        }
    }

    // Records that the kernel could not deliver: LOST_SAMPLES tells of all, LOST of most.
    pub(in crate::sampler) fn lost(&self) -> u64 {
        self.lost_records.max(self.lost_samples)
    }

    pub(in crate::sampler) fn is_empty(&self) -> bool {
        self.samples == 0 && self.lost() == 0 && self.images.is_empty()
    }

    /// Looks at what records say of files, and of what began: as soon as they come, as files may be
    /// gone soon.
    pub(in crate::sampler) fn look(&mut self, records: &[u8]) {
        for record in raw::records(records).filter(|record| !record.is_sample()) {
            match record.says(self.layouts.shared()) {
                Some(Body::Mapping(mapping)) if mapping.executable => self.image(&mapping),
                Some(Body::Name {
                    pid, exec: true, ..
                }) => self.perf_maps.exec(pid),
                Some(Body::Fork(task)) => {
                    let time = record.time(self.layouts.shared());
                    if let (Some(began), Some(time)) = (&mut self.began, time) {
                        began.push(Began {
                            parent: task.parent_pid,
                            tid: task.tid,
                            time,
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Counts what is written.
    pub(in crate::sampler) fn count(&mut self, records: &[u8]) {
        for record in raw::records(records) {
            if record.is_sample() {
                self.sample(record);
                continue;
            }
            match record.says(self.layouts.shared()) {
                Some(Body::Lost(count)) => self.lost_records += count,
                Some(Body::LostSamples(count)) => self.lost_samples += count,
                Some(Body::Throttle { on: true }) => self.throttled += 1,
                Some(Body::Name { exec: true, .. }) => self.execs += 1,
                Some(Body::Exit(_)) => self.exits += 1,
                _ => {}
            }
        }
    }

    fn sample(&mut self, record: RawRecord<'_>) {
        self.samples += 1;
        self.sums.add_sample(record, &self.layouts);
        if let Some(time) = record.time(self.layouts.shared()) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    fn image(&mut self, mapping: &Mapping<'_>) {
        let path = mapping.path;
        if is_generated(path) {
            self.perf_maps.generates(mapping.pid);
        }
        self.jit_dumps.mapped(mapping.pid, path);
        // Not a file: anonymous memory, the heap, the kernel's vsyscall page.
        let is_file = path.starts_with(b"/") && !path.starts_with(b"//");
        if !(is_file || path == b"[vdso]") {
            return;
        }
        let build_id = mapping.build_id.clone().or_else(|| {
            let id = mapping.file.filter(|_| is_file)?;
            self.mapped_files.look(mapping.pid, path, id)
        });
        let told = is_file.then(|| self.elsewhere.mapped(mapping.pid, path, build_id.as_ref()));
        if !self.images.contains_key(path) {
            self.images
                .insert(path.to_vec(), build_id.or(told.flatten()));
        }
    }
}

/// Whether a mapping with this name may hold code that its process generated.
fn is_generated(path: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"//anon", b"[anon", b"/memfd:", b"/dev/zero"];
    NAMES.iter().any(|name| path.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::perfdata::raw::oracle;
    use crate::sampler::events::attr::tests::description;
    use perf_event_open_sys::bindings as sys;

    const SAMPLE: u32 = sys::PERF_RECORD_SAMPLE;
    const LOST: u32 = sys::PERF_RECORD_LOST;
    const LOST_SAMPLES: u32 = sys::PERF_RECORD_LOST_SAMPLES;
    const MMAP2: u32 = sys::PERF_RECORD_MMAP2;
    const MISC_BUILD_ID: u16 = sys::PERF_RECORD_MISC_MMAP_BUILD_ID as u16;
    const MISC_MMAP_DATA: u16 = sys::PERF_RECORD_MISC_MMAP_DATA as u16;

    fn tally() -> Tally {
        Tally::new(&[description("cpu-clock")])
    }

    /// A record that ends, unless it is a sample, with process and thread, TIME, CPU, IDENTIFIER.
    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let trailer = if kind == SAMPLE { &[][..] } else { &[0; 32] };
        oracle::record(kind, misc, &[body, trailer].concat())
    }

    #[test]
    fn samples_losses_and_times_are_counted() {
        let sample = |time: u64| {
            let words = [1, 2, 3, time, 0, 5].map(u64::to_ne_bytes);
            record(SAMPLE, 1, &words.concat())
        };
        let mut tally = tally();
        tally.count(&[sample(70), sample(50), sample(90)].concat());
        tally.count(&record(LOST, 0, &[1, 12].map(u64::to_ne_bytes).concat()));
        tally.count(&record(LOST_SAMPLES, 0, &4u64.to_ne_bytes()));
        assert_eq!((tally.samples, tally.times), (3, Some((50, 90))));
        assert_eq!((tally.lost_records, tally.lost_samples), (12, 4));
        assert_eq!(tally.lost(), 12);
    }

    #[test]
    fn an_image_is_kept_once_with_its_build_id() {
        let mut body = vec![0u8; 64];
        body[32] = 20;
        body[36..56].fill(0xab);
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        let mut tally = tally();
        tally.look(&record(MMAP2, MISC_BUILD_ID, &body));
        tally.look(&record(MMAP2, 0, &body));
        body[64..].copy_from_slice(b"/data\0\0\0\0\0\0\0\0\0\0\0");
        tally.look(&record(MMAP2, MISC_MMAP_DATA, &body));
        body[64..].copy_from_slice(b"//anon\0\0\0\0\0\0\0\0\0\0");
        tally.look(&record(MMAP2, 0, &body));
        let images: Vec<_> = tally.images.into_iter().collect();
        let expected = BuildId::new(&[0xab; 20]);
        assert_eq!(images, [(b"/bin/true".to_vec(), expected)]);
    }

    #[test]
    fn a_note_that_is_too_long_is_not_a_build_id() {
        let mut body = vec![0u8; 64];
        // A device and an inode, in a mapping whose flag says otherwise.
        body[32] = 0xfe;
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        let mut tally = tally();
        tally.look(&record(MMAP2, MISC_BUILD_ID, &body));
        let images: Vec<_> = tally.images.into_iter().collect();
        assert_eq!(images, [(b"/bin/true".to_vec(), None)]);
    }

    #[test]
    fn broken_records_do_not_cause_a_hang() {
        let mut tally = tally();
        tally.count(&[0; 64]);
        tally.count(&[9, 0, 0, 0, 0, 0, 255, 255, 1]);
        tally.look(&record(MMAP2, MISC_BUILD_ID, &[0; 8]));
        assert_eq!(tally.samples, 0);
    }
}
