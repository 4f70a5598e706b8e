//! Answers of debug information that are kept from one start of proftool to the next.
//!
//! A recording is looked at more than once, and the next recording of a program has mostly the same
//! addresses. The answers take a few hundred kilobytes. To find them again, the debug information
//! has to be inflated and read: megabytes for one address of the C library.
//!
//! Answers are kept as [`Lines`](super::Lines) gave them, so users cannot distinguish a kept one.
//! They are valid as long as the files are the same, by their build and by device, inode, size and
//! time of the last change, and proftool is the same: see [`key`].

mod format;

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use rustc_hash::{FxBuildHasher, FxHashMap};

use self::format::{Known, KnownFrame};
use super::definition::DefinitionId;
use super::described::Described;
use super::{DefinitionKey, InlineFrame};
use crate::base::{Interner, NameId};
use crate::binary::budget::{Budget, Pool};
use crate::binary::elf::Elf;
use crate::binary::elf::build::Used;
use crate::binary::elf::source::{FileState, Source};
use crate::cache::Contents;
use crate::files;

/// The most addresses and definitions that are kept of one file.
const LIMIT: usize = 1 << 17;
/// The most frames of these addresses.
const FRAME_LIMIT: usize = 1 << 20;
/// The most bytes of names and paths that are noted for one file. Names may overlap in the file, so that
/// all together are far larger than it.
const TEXT_LIMIT: u64 = 1 << 27;
/// A file that was changed so lately may be changed again without a new time, in seconds.
const SETTLED: u64 = 2;

/// What is kept of the debug information of one file.
#[derive(Debug)]
pub(in crate::binary) struct Kept {
    known: Option<Known>,
    fresh: Mutex<Answers>,
    /// The bytes of names and paths that were noted, each time they were.
    text_bytes: AtomicU64,
    /// Whether nothing may be kept: answers came from files that the key does not name, or they are too
    /// many.
    is_open: AtomicBool,
}

/// New answers, by what was asked.
#[derive(Debug, Default)]
struct Answers {
    texts: Interner,
    definitions: Vec<KeptDefinition>,
    by_id: FxHashMap<DefinitionId, u32>,
    /// The frames of all addresses, those of each innermost first.
    frames: Vec<KeptFrame>,
    places: FxHashMap<u64, Place>,
    /// The definition of the function around an address.
    around: FxHashMap<u64, Option<u32>>,
    /// The line of an address.
    lines: FxHashMap<u64, Option<(NameId, u32)>>,
}

/// One definition: what is known of it wherever it occurs, and more where that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptDefinition {
    key: DefinitionKey,
    /// Its linkage name, or else its plain one.
    name: Option<NameId>,
    described: Option<Option<Box<Described>>>,
}

/// A frame of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptFrame {
    definition: Option<u32>,
    is_split_off: bool,
    file: Option<NameId>,
    line: u32,
}

/// The frames of an address: from, to; and whether they have files and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    from: u32,
    to: u32,
    has_lines: bool,
}

impl Kept {
    /// Answers that were kept before, and none that are new.
    pub(in crate::binary) fn of(contents: Option<Contents>) -> Kept {
        Kept {
            known: contents.and_then(Known::of),
            fresh: Mutex::default(),
            text_bytes: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
        }
    }

    /// Whether anything was kept before.
    pub(in crate::binary) fn is_any_known(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    /// The bytes to keep, if there is anything new and it may be kept.
    pub(in crate::binary) fn to_keep(&self) -> Option<Vec<u8>> {
        let fresh = self.fresh();
        if fresh.is_empty() || self.is_open.load(Ordering::Relaxed) {
            return None;
        }
        // What is asked for now counts more than what was before.
        let mut all = Answers::default();
        all.add(&fresh);
        if let Some(known) = &self.known {
            all.add(&known.all());
        }
        format::written(&all)
    }

    /// Notes that an answer depends on more than the file.
    pub(super) fn depends_on_others(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    fn fresh(&self) -> MutexGuard<'_, Answers> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answers to which one with `bytes` bytes of text may be added; `None` once there is too
    /// much text to keep.
    fn to_add(&self, bytes: usize) -> Option<MutexGuard<'_, Answers>> {
        let bytes = bytes as u64;
        let before = self.text_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_too_much = before.saturating_add(bytes) > TEXT_LIMIT;
        let was_open = if is_too_much {
            self.is_open.swap(true, Ordering::Relaxed)
        } else {
            self.is_open.load(Ordering::Relaxed)
        };
        if is_too_much && !was_open {
            *self.fresh() = Answers::default();
        }
        (!is_too_much && !was_open).then(|| self.fresh())
    }

    /// Puts the frames of an address into `out`. Returns whether they are known.
    pub(super) fn frames<'l>(
        &'l self,
        address: u64,
        lines: bool,
        out: &mut Vec<InlineFrame<'l>>,
    ) -> bool {
        let Some(known) = &self.known else {
            return false;
        };
        let found = known.frames(address, lines, |frame| {
            out.push(InlineFrame {
                function: frame.name.map(Cow::Borrowed),
                definition: frame.definition,
                is_split_off: frame.is_split_off,
                file: frame.file.filter(|_| lines),
                line: Some(frame.line).filter(|&line| lines && line > 0),
            });
        });
        if found.is_none() {
            out.clear();
        }
        found.is_some()
    }

    /// Takes note of the frames of an address.
    pub(super) fn add_frames(&self, address: u64, has_lines: bool, frames: &[InlineFrame<'_>]) {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        let texts = frames
            .iter()
            .map(|it| length(it.function.as_deref()) + length(it.file));
        let Some(mut fresh) = self.to_add(texts.sum()) else {
            return;
        };
        let frames = frames.iter().map(|frame| KnownFrame {
            name: frame.function.as_deref(),
            definition: frame.definition,
            is_split_off: frame.is_split_off,
            file: frame.file,
            line: frame.line.unwrap_or(0),
        });
        fresh.add_frames(address, has_lines, frames);
    }

    /// The definition of the function around an address, if it is known whether there is one.
    pub(super) fn around(&self, address: u64) -> Option<Option<DefinitionKey>> {
        self.known.as_ref()?.around(address)
    }

    /// Takes note of it, with its name.
    pub(super) fn add_around(&self, address: u64, found: Option<(DefinitionKey, Option<&str>)>) {
        let name = found.and_then(|(_, name)| name);
        let Some(mut fresh) = self.to_add(name.map_or(0, str::len)) else {
            return;
        };
        if fresh.around.len() < LIMIT {
            let definition = found.map(|(key, name)| fresh.intern(key, name));
            fresh.around.insert(address, definition);
        }
    }

    /// The line of an address, if it is known whether it has one.
    pub(super) fn line(&self, address: u64) -> Option<Option<(&str, u32)>> {
        self.known.as_ref()?.line(address)
    }

    /// Takes note of it.
    pub(super) fn add_line(&self, address: u64, found: Option<(&str, u32)>) {
        let Some(mut fresh) = self.to_add(found.map_or(0, |(file, _)| file.len())) else {
            return;
        };
        if fresh.lines.len() < LIMIT {
            let found = found.map(|(file, line)| (fresh.texts.intern(file), line));
            fresh.lines.insert(address, found);
        }
    }

    /// The name of a definition, if it is known whether it has one.
    pub(super) fn name(&self, id: DefinitionId) -> Option<Option<&str>> {
        let (_, name) = self.known.as_ref()?.named(id)?;
        Some(name)
    }

    /// What a definition was described as, if it was.
    pub(super) fn described(&self, id: DefinitionId) -> Option<Option<Described>> {
        self.known.as_ref()?.described(id)
    }

    /// Takes note of it.
    pub(super) fn add_described(&self, id: DefinitionId, described: Option<&Described>) {
        let Some(mut fresh) = self.to_add(described.map_or(0, Described::text_bytes)) else {
            return;
        };
        let fresh = &mut *fresh;
        let definition = match fresh.by_id.get(&id) {
            Some(&at) => at,
            None => {
                let known = self.known.as_ref();
                let Some((key, name)) = known.and_then(|known| known.named(id)) else {
                    return;
                };
                fresh.intern(key, name)
            }
        };
        if let Some(definition) = fresh.definitions.get_mut(definition as usize) {
            definition.described = Some(described.cloned().map(Box::new));
        }
    }
}

impl Answers {
    fn is_empty(&self) -> bool {
        let is_described = |definition: &KeptDefinition| definition.described.is_some();
        self.places.is_empty()
            && self.around.is_empty()
            && self.lines.is_empty()
            && !self.definitions.iter().any(is_described)
    }

    fn definition(&self, at: u32) -> Option<&KeptDefinition> {
        self.definitions.get(at as usize)
    }

    /// Takes note of the frames of an address, as far as there is room for them.
    fn add_frames<'f>(
        &mut self,
        address: u64,
        has_lines: bool,
        frames: impl ExactSizeIterator<Item = KnownFrame<'f>>,
    ) {
        let from = self.frames.len();
        let to = from.saturating_add(frames.len());
        if self.places.len() >= LIMIT || to > FRAME_LIMIT {
            return;
        }
        for frame in frames {
            let definition = frame.definition.map(|key| self.intern(key, frame.name));
            let file = frame.file.map(|file| self.texts.intern(file));
            self.frames.push(KeptFrame {
                definition,
                is_split_off: frame.is_split_off,
                file,
                line: frame.line,
            });
        }
        let (from, to) = (from as u32, to as u32);
        let place = Place {
            from,
            to,
            has_lines,
        };
        self.places.insert(address, place);
    }

    fn intern(&mut self, key: DefinitionKey, name: Option<&str>) -> u32 {
        let next = self.definitions.len() as u32;
        let (texts, definitions) = (&mut self.texts, &mut self.definitions);
        *self.by_id.entry(key.id).or_insert_with(|| {
            definitions.push(KeptDefinition {
                key,
                name: name.map(|name| texts.intern(name)),
                described: None,
            });
            next
        })
    }

    /// Adds the answers of others that are not here, as far as there is room for them.
    fn add(&mut self, others: &Answers) {
        let text = |name: NameId| &others.texts[name];
        let own = |all: &mut Answers, at: u32| {
            let definition = others.definition(at)?;
            let at = all.intern(definition.key, definition.name.map(text));
            let own = all.definitions.get_mut(at as usize)?;
            if own.described.is_none() {
                own.described.clone_from(&definition.described);
            }
            Some(at)
        };
        // In order, so that the same answers are the same bytes.
        let mut places: Vec<(u64, Place)> = others.places.iter().map(|(&a, &p)| (a, p)).collect();
        places.sort_unstable_by_key(|&(address, _)| address);
        for (address, place) in places {
            let frames = others
                .frames
                .get(place.from as usize..place.to as usize)
                .unwrap_or_default();
            let from = self.frames.len();
            let to = from.saturating_add(frames.len());
            let known = self.places.get(&address);
            let is_better = known.is_none_or(|known| place.has_lines && !known.has_lines);
            if !is_better || self.places.len() >= LIMIT || to > FRAME_LIMIT {
                continue;
            }
            for frame in frames {
                let definition = frame.definition.and_then(|at| own(self, at));
                let file = frame.file.map(|file| self.texts.intern(text(file)));
                self.frames.push(KeptFrame {
                    definition,
                    file,
                    ..*frame
                });
            }
            let (from, to) = (from as u32, to as u32);
            self.places.insert(address, Place { from, to, ..place });
        }
        let mut around: Vec<(u64, Option<u32>)> =
            others.around.iter().map(|(&a, &d)| (a, d)).collect();
        around.sort_unstable_by_key(|&(address, _)| address);
        for (address, definition) in around {
            if self.around.len() < LIMIT && !self.around.contains_key(&address) {
                let definition = definition.and_then(|at| own(self, at));
                self.around.insert(address, definition);
            }
        }
        let mut lines: Vec<(u64, Option<(NameId, u32)>)> =
            others.lines.iter().map(|(&a, &l)| (a, l)).collect();
        lines.sort_unstable_by_key(|&(address, _)| address);
        for (address, line) in lines {
            if self.lines.len() < LIMIT {
                let texts = &mut self.texts;
                let line = line.map(|(file, line)| (texts.intern(text(file)), line));
                self.lines.entry(address).or_insert(line);
            }
        }
        for at in 0..others.definitions.len() {
            if self.definitions.len() < LIMIT {
                own(self, at as u32);
            }
        }
    }
}

/// What tells a file from all others, and from what it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::binary) struct FileKey {
    state: FileState,
    build: Vec<u8>,
}

impl FileKey {
    /// The key of a file for what follows from its debug information, or from all else. `None` for bytes
    /// in memory, and where its build cannot be found out.
    pub(in crate::binary) fn of(elf: &Elf, used: Used) -> Option<FileKey> {
        Some(FileKey {
            state: elf.source.state()?,
            build: elf.build(used)?.to_vec(),
        })
    }
}

/// Under which name something is kept of these files, and for which key: for this build of proftool,
/// and these builds and states of the files. `None` where a file may change without a sign.
pub(in crate::binary) fn named(what: &str, files: &[Option<FileKey>]) -> Option<(String, Vec<u8>)> {
    let key = key(files)?;
    let name = format!("{what}-{:016x}", FxBuildHasher.hash_one(&key));
    Some((name, key))
}

/// What tells this build of proftool from others.
fn own_build() -> Option<&'static [u8]> {
    static BUILD: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let find = || {
        let opened = files::open_named(Path::new("/proc/self/exe")).ok()?;
        let budget = Budget::new(&Pool::default());
        let elf = Elf::read(Source::file(opened, &budget), budget).ok()?;
        elf.build(Used::Code).map(<[u8]>::to_vec)
    };
    BUILD.get_or_init(find).as_deref()
}

fn key(files: &[Option<FileKey>]) -> Option<Vec<u8>> {
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let mut key = format::VERSION.to_le_bytes().to_vec();
    for number in [program.dev(), program.ino(), program.len()] {
        key.extend(number.to_le_bytes());
    }
    // Recorders change its links, and so when it was changed.
    for number in [program.mtime(), program.mtime_nsec()] {
        key.extend(number.to_le_bytes());
    }
    add_text(&mut key, own_build()?);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?
        .as_secs();
    for file in files {
        key.push(u8::from(file.is_some()));
        let Some(FileKey { state, build }) = file else {
            continue;
        };
        let changed = u64::try_from(state.seconds).ok()?;
        if changed.saturating_add(SETTLED) >= now {
            return None;
        }
        for number in [state.device, state.inode, state.size] {
            key.extend(number.to_le_bytes());
        }
        for number in [state.seconds, state.nanoseconds] {
            key.extend(number.to_le_bytes());
        }
        add_text(&mut key, build);
    }
    Some(key)
}

/// Adds bytes with their number.
fn add_text(key: &mut Vec<u8>, bytes: &[u8]) {
    key.extend((bytes.len() as u64).to_le_bytes());
    key.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_too_many_names_is_not_kept() {
        let path = "x".repeat(1 << 20);
        let kept = Kept::of(None);
        let add = |address| kept.add_line(address, Some((&path, 1)));
        (0..128).for_each(add);
        assert!(kept.to_keep().is_some());
        add(128);
        assert!(kept.to_keep().is_none() && kept.fresh().is_empty());
        // What is small enough again would leave out what was before.
        kept.add_line(129, Some(("a.c", 1)));
        assert!(kept.to_keep().is_none() && kept.fresh().is_empty());
    }
}
