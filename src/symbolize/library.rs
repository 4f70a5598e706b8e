//! Files and kernel symbols, each opened once, and before they are needed if a worker has time.

mod file_identity;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{BuildId, CaveatKind, GeneratedCode};
use crate::binary::{self, Binary, JitDump, PerfMap, ProcessTimes};
use crate::cache::Cache;
use crate::trace::{
    Image, ImageKind, JitSource, KeptJitDump, MappedDump, Recording, RuleSource, Trace,
};
use crate::unwind::Rules;

use self::file_identity::Identity;
use super::Options;
use super::host::Host;

/// An image's file, and what was read from it.
#[derive(Default)]
struct File {
    opened: OnceLock<OpenedBinary>,
    rules: OnceLock<Option<Arc<Rules>>>,
}

/// A file that was opened, or why it could not be.
pub(super) type OpenedBinary = Result<Arc<Binary>, Unusable>;

/// Why a file cannot be used.
type Unusable = (CaveatKind, String);

/// Why a file may not be the one that ran, if it may not.
pub(super) type Doubt = Option<&'static str>;

/// The sources of names. It may be shared: while one worker reads the samples of a recording,
/// another [prepares](Library::prepare) the images that they are in.
pub struct Library {
    pub(super) options: Options,
    pub(super) host: Host,
    files: Mutex<FxHashMap<FileKey, Arc<File>>>,
    /// Those whose times were read, by process and path.
    dumps: Mutex<FxHashMap<(i32, String), Dump>>,
    /// How often each file was opened, by device and inode.
    opened: Mutex<FxHashMap<(u64, u64), usize>>,
    /// What is known of the recording before its samples are read.
    recording: Option<Recording>,
}

// Under how many names one file is opened. A recording could name it in many thousand ways, each of
// which is read by itself.
const NAMES_PER_FILE: usize = 64;

/// A jitdump file that was read, or why it could not be.
type Dump = Result<Arc<JitDump>, String>;

/// What a file is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FileKey {
    path: PathBuf,
    build_id: Option<BuildId>,
}

impl FileKey {
    fn of(image: &Image) -> FileKey {
        FileKey {
            path: image.file_path().to_owned(),
            build_id: image.build_id.clone(),
        }
    }
}

impl Library {
    /// An empty library, which opens files as they are asked for.
    pub fn new(mut options: Options) -> Library {
        let cache = options.cache.as_deref().and_then(Cache::open).map(Arc::new);
        options.finder = options.finder.with_cache(cache.clone());
        Library {
            host: Host::new(cache),
            options,
            files: Mutex::default(),
            dumps: Mutex::default(),
            opened: Mutex::default(),
            recording: None,
        }
    }

    /// The files of one recording, so that stacks are unwound by those that ran.
    pub fn for_recording(self, recording: Recording) -> Library {
        Library {
            recording: Some(recording),
            ..self
        }
    }

    /// Reads the source of the names of an image's addresses.
    pub fn prepare(&self, image: &Image) {
        match image.kind {
            ImageKind::File => {
                if let Ok(binary) = self.file(image) {
                    binary.functions();
                    if self.options.inlines {
                        binary.prepare_lines();
                    }
                }
            }
            ImageKind::Kernel { .. } if self.host.is_or_may_be(image) => {
                let recording = self.recording.as_ref();
                self.host.prepare(recording.and_then(|it| it.written));
            }
            _ => {}
        }
    }

    /// Closes all files but those of a trace.
    pub fn forget_others(&self, trace: &Trace) {
        let known: FxHashSet<FileKey> = trace.images.iter().map(FileKey::of).collect();
        let mut files = self.files.lock().expect("no worker panics");
        files.retain(|key, _| known.contains(key));
        self.opened.lock().expect("no worker panics").clear();
    }

    /// How many workers it is for.
    pub fn workers(&self) -> NonZeroUsize {
        self.options.workers
    }

    pub(super) fn file_that_ran(
        &self,
        image: &Image,
        recording: &Recording,
    ) -> Result<(Arc<Binary>, Doubt), Unusable> {
        let binary = self.file(image)?;
        let has_root = self.options.finder.has_root();
        match Identity::of(&binary, image, recording, &self.host, has_root) {
            Identity::Same => Ok((binary, None)),
            Identity::Unproven(doubt) => Ok((binary, Some(doubt))),
            Identity::Other(why) => {
                Err((CaveatKind::ChangedBinary, format!("{}: {why}", image.path)))
            }
        }
    }

    pub(super) fn file(&self, image: &Image) -> OpenedBinary {
        let file = self.entry(image);
        file.opened.get_or_init(|| self.open(image)).clone()
    }

    fn entry(&self, image: &Image) -> Arc<File> {
        let mut files = self.files.lock().expect("no worker panics");
        files.entry(FileKey::of(image)).or_default().clone()
    }

    fn open(&self, image: &Image) -> OpenedBinary {
        let found = self
            .options
            .finder
            .find(image.file_path(), image.build_id.as_ref());
        if let Ok(binary) = &found
            && let Some(identity) = binary.identity()
        {
            let mut opened = self.opened.lock().expect("no worker panics");
            let count = opened.entry(identity).or_default();
            *count += 1;
            if *count > NAMES_PER_FILE {
                let path = &image.path;
                let detail = format!("{path}: one of too many names of one file, skipped");
                return Err((CaveatKind::MissingBinary, detail));
            }
        }
        found.map(Arc::new).map_err(|error| {
            let kind = match error {
                binary::Error::ChangedBuild { .. } => CaveatKind::ChangedBinary,
                _ => CaveatKind::MissingBinary,
            };
            (kind, format!("{}: {error}", image.path))
        })
    }
}

impl Library {
    /// A jitdump file of a process: the one whose times were read, else as it is now.
    pub(super) fn dump(&self, pid: i32, path: &str) -> Dump {
        let dumps = self.dumps.lock().expect("no worker panics");
        let known = dumps.get(&(pid, path.to_owned())).cloned();
        known.unwrap_or_else(|| self.read_dump(pid, path))
    }

    fn read_dump(&self, pid: i32, path: &str) -> Dump {
        let times = ProcessTimes {
            began: None,
            seen: self.recording.as_ref().and_then(|it| it.written),
        };
        let dump = self.options.finder.jit_dump(Path::new(path), pid, times);
        dump.map(Arc::new).map_err(|error| error.to_string())
    }
}

impl Library {
    /// Whether files of processes of this machine, or of the one below `symfs`, are those of a
    /// recording made under this kernel.
    fn may_be_of_here(&self, os_release: Option<&str>) -> bool {
        self.host.is_release(os_release) || self.options.finder.has_root()
    }

    /// Whether `/tmp/perf-PID.map` may be of a process of this recording.
    pub(super) fn may_name_generated(&self, recording: &Recording) -> bool {
        self.may_be_of_here(recording.os_release.as_deref())
    }

    pub(super) fn perf_map(&self, pid: u32, times: ProcessTimes) -> Result<PerfMap, binary::Error> {
        self.options.finder.perf_map(pid, times)
    }
}

impl JitSource for Library {
    fn is_dump(&self, path: &str) -> bool {
        JitDump::is_named_so(Path::new(path))
    }

    fn code(
        &self,
        dump: MappedDump<'_>,
        os_release: Option<&str>,
    ) -> Result<Option<Arc<[GeneratedCode]>>, String> {
        let mut dumps = self.dumps.lock().expect("no worker panics");
        let known = dumps.entry((dump.pid, dump.path.to_owned()));
        let read = || match dump.kept {
            Some(kept) => of_recording(kept),
            None if self.may_be_of_here(os_release) => self.read_dump(dump.pid, dump.path),
            None => Err("the recording was made under another kernel".to_owned()),
        };
        let dump = known.or_insert_with(read).clone()?;
        Ok(dump.has_clock().then(|| dump.changes().into()))
    }
}

/// A jitdump file of which a recording has the bytes.
fn of_recording(kept: &KeptJitDump) -> Dump {
    let left_out = kept.left_out;
    if kept.bytes.is_empty() && left_out > 0 {
        return Err(format!("it has {left_out} bytes, too many to keep"));
    }
    let dump = JitDump::parse(&kept.bytes).map_err(|error| error.to_string())?;
    Ok(Arc::new(dump.without_rest(left_out)))
}

impl RuleSource for Library {
    fn rules(&self, image: &Image, os_release: Option<&str>) -> Option<Arc<Rules>> {
        match image.kind {
            ImageKind::File => {}
            // That of another kernel is another file by the same name.
            ImageKind::Vdso if image.build_id.is_some() || self.host.is_release(os_release) => {}
            _ => return None,
        }
        let file = self.entry(image);
        if image.kind == ImageKind::File && !self.can_read(image) {
            return None;
        }
        let rules = || Rules::new(self.file(image).ok()?).map(Arc::new);
        file.rules.get_or_init(rules).clone()
    }

    fn can_read(&self, image: &Image) -> bool {
        match &self.recording {
            Some(recording) => self.file_that_ran(image, recording).is_ok(),
            None => self.file(image).is_ok(),
        }
    }
}
