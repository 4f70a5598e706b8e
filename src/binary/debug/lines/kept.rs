//! Answers of debug information that are kept from one start of proftool to the next.
//!
//! A recording is looked at more than once, and the next recording of a program has mostly the same
//! addresses. The answers take a few hundred kilobytes. To find them again, the debug information
//! has to be inflated and read: megabytes for one address of the C library.
//!
//! Answers are kept as [`Lines`](super::Lines) gave them, so users cannot distinguish a kept one.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::definition::{DebugFile, DefinitionId};
use super::described::Described;
use super::{DefinitionKey, InlineFrame};
use crate::base::Interner;
use crate::cache;

// The kind of an answer, then what was asked. Files and definitions come first: the others refer to
// them, and where there is no room it is the last rows that go.
type Key = [u8; 18];

const FILE: u8 = 0;
const DEFINITION: u8 = 1;
const DESCRIPTION: u8 = 2;
const FRAMES: u8 = 3;
const FRAMES_WITH_LINES: u8 = 4;
const AROUND: u8 = 5;
const LINE: u8 = 6;

fn key(kind: u8, asked: u64) -> Key {
    entry_key(kind, 0, asked, 0)
}

fn definition_key(kind: u8, id: DefinitionId) -> Option<Key> {
    let file = match id.place {
        DebugFile::Main => 0,
        DebugFile::Supplement => 1,
        // Another file may be found there next time.
        DebugFile::Split(_) => return None,
    };
    Some(entry_key(kind, file, id.unit as u64, id.entry as u64))
}

fn entry_key(kind: u8, file: u8, unit: u64, entry: u64) -> Key {
    let mut key = [kind, file, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    key[2..10].copy_from_slice(&unit.to_be_bytes());
    key[10..].copy_from_slice(&entry.to_be_bytes());
    key
}

// Known wherever the definition occurs.
#[derive(Serialize, Deserialize)]
struct KeptDefinition<'k> {
    root: DefinitionId,
    // The linkage name, or else the plain one.
    name: Option<&'k str>,
}

#[derive(Serialize, Deserialize)]
struct KeptFrame {
    definition: Option<DefinitionId>,
    is_split_off: bool,
    file: Option<u32>,
    line: u32,
}

#[derive(Debug)]
pub(in crate::binary) struct Kept {
    rows: cache::Kept<18>,
    // By their numbers, those that were known before first.
    files: OnceLock<Mutex<Interner>>,
}

impl Kept {
    pub(in crate::binary) fn open(place: cache::Place) -> Kept {
        Kept {
            rows: cache::Kept::open(Some(place)),
            files: OnceLock::new(),
        }
    }

    pub(in crate::binary) fn is_any_known(&self) -> bool {
        let keys = self.rows.known().map_or(&[][..], |known| known.keys());
        let is_of_frames = |key: &Key| [FRAMES, FRAMES_WITH_LINES].contains(&key[0]);
        keys.iter().any(is_of_frames)
    }

    pub(in crate::binary) fn store(&self) -> Option<()> {
        self.rows.store()
    }

    // The answer depends on more than the file.
    pub(super) fn depends_on_others(&self) {
        self.rows.close();
    }

    // Returns whether the frames are known.
    pub(super) fn frames<'l>(
        &'l self,
        address: u64,
        lines: bool,
        out: &mut Vec<InlineFrame<'l>>,
    ) -> bool {
        let kept = |kind| self.rows.get(&key(kind, address));
        let plain = (!lines).then(|| kept(FRAMES)).flatten();
        let frames: Option<Vec<KeptFrame>> = plain.or_else(|| kept(FRAMES_WITH_LINES));
        let frames = frames.and_then(|frames| {
            let frames = frames.into_iter().map(|frame| self.frame(&frame, lines));
            frames.collect::<Option<Vec<_>>>()
        });
        let is_known = frames.is_some();
        out.extend(frames.into_iter().flatten());
        is_known
    }

    fn frame(&self, frame: &KeptFrame, lines: bool) -> Option<InlineFrame<'_>> {
        let definition = match frame.definition {
            Some(id) => Some(self.named(id)?),
            None => None,
        };
        let file = match frame.file.filter(|_| lines) {
            Some(number) => Some(self.file(number)?),
            None => None,
        };
        Some(InlineFrame {
            function: definition.and_then(|(_, name)| name).map(Cow::Borrowed),
            definition: definition.map(|(key, _)| key),
            is_split_off: frame.is_split_off,
            file,
            line: Some(frame.line).filter(|&line| lines && line > 0),
        })
    }

    pub(super) fn add_frames(&self, address: u64, has_lines: bool, frames: &[InlineFrame<'_>]) {
        let frames = frames.iter().map(|frame| {
            if let Some(definition) = frame.definition {
                self.add_definition(definition, frame.function.as_deref());
            }
            KeptFrame {
                definition: frame.definition.map(|key| key.id),
                is_split_off: frame.is_split_off,
                file: frame.file.map(|file| self.add_file(file)),
                line: frame.line.unwrap_or(0),
            }
        });
        let frames: Vec<KeptFrame> = frames.collect();
        let kind = if has_lines { FRAMES_WITH_LINES } else { FRAMES };
        self.rows.add(key(kind, address), &frames);
    }

    // If it is known whether there is a definition.
    pub(super) fn around(&self, address: u64) -> Option<Option<DefinitionKey>> {
        let found: Option<DefinitionId> = self.rows.get(&key(AROUND, address))?;
        match found {
            Some(id) => Some(Some(self.named(id)?.0)),
            None => Some(None),
        }
    }

    pub(super) fn add_around(&self, address: u64, found: Option<(DefinitionKey, Option<&str>)>) {
        if let Some((definition, name)) = found {
            self.add_definition(definition, name);
        }
        let id = found.map(|(definition, _)| definition.id);
        self.rows.add(key(AROUND, address), &id);
    }

    // If it is known whether the address has a line.
    pub(super) fn line(&self, address: u64) -> Option<Option<(&str, u32)>> {
        let found: Option<(u32, u32)> = self.rows.get(&key(LINE, address))?;
        match found {
            Some((file, line)) => Some(Some((self.file(file)?, line))),
            None => Some(None),
        }
    }

    pub(super) fn add_line(&self, address: u64, found: Option<(&str, u32)>) {
        let found = found.map(|(file, line)| (self.add_file(file), line));
        self.rows.add(key(LINE, address), &found);
    }

    // If it is known whether the definition has a name.
    pub(super) fn name(&self, id: DefinitionId) -> Option<Option<&str>> {
        Some(self.named(id)?.1)
    }

    fn named(&self, id: DefinitionId) -> Option<(DefinitionKey, Option<&str>)> {
        let KeptDefinition { root, name } = self.rows.get(&definition_key(DEFINITION, id)?)?;
        Some((DefinitionKey { id, root }, name))
    }

    fn add_definition(&self, DefinitionKey { id, root }: DefinitionKey, name: Option<&str>) {
        let definition = KeptDefinition { root, name };
        match definition_key(DEFINITION, id) {
            Some(key) => self.rows.add(key, &definition),
            None => self.rows.close(),
        }
    }

    // If that was asked for.
    pub(super) fn described(&self, id: DefinitionId) -> Option<Option<Described>> {
        self.rows.get(&definition_key(DESCRIPTION, id)?)
    }

    pub(super) fn add_described(&self, id: DefinitionId, described: Option<&Described>) {
        match definition_key(DESCRIPTION, id) {
            Some(key) => self.rows.add(key, &described),
            None => self.rows.close(),
        }
    }

    fn file(&self, number: u32) -> Option<&str> {
        self.rows.get(&key(FILE, number.into()))
    }

    fn add_file(&self, file: &str) -> u32 {
        let before = || {
            let mut files = Interner::default();
            let known = (0..).map_while(|number| self.file(number));
            known.for_each(|file| {
                files.intern(file);
            });
            Mutex::new(files)
        };
        let files = self.files.get_or_init(before);
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let next = files.iter().len();
        let number = files.intern(file).index();
        if number == next {
            self.rows.add(key(FILE, number as u64), &file);
        }
        number as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache, Place};
    use std::sync::Arc;

    #[test]
    fn no_contents_make_it_panic() {
        let entry = |entry| DefinitionId {
            place: DebugFile::Main,
            unit: 11,
            entry,
        };
        let own = std::fs::read_link("/proc/self").unwrap();
        let directory = format!("proftool-kept-lines-{}", own.display());
        let directory = std::env::temp_dir().join(directory);
        let place = Place {
            cache: Arc::new(Cache::open(&directory).unwrap()),
            name: "lines".to_owned(),
            key: Vec::new(),
        };
        let kept = Kept::open(place.clone());
        for number in 0..4 {
            let (id, root) = (entry(40 - number), entry(9));
            let definition = DefinitionKey { id, root };
            let frame = InlineFrame {
                function: Some("name".into()),
                definition: Some(definition),
                is_split_off: number == 1,
                file: Some("a.c"),
                line: Some(7),
            };
            kept.add_frames(number as u64, number > 1, &[frame.clone(), frame]);
            kept.add_around(number as u64, Some((definition, Some("name"))));
            kept.add_line(number as u64, None);
        }
        kept.store().unwrap();
        let look = |contents: &[u8]| {
            place.store(contents).unwrap();
            let kept = Kept::open(place.clone());
            let mut frames = Vec::new();
            for at in 0..4 {
                kept.frames(at, at > 1, &mut frames);
                kept.around(at);
                kept.line(at);
            }
            frames.len()
        };
        let contents = place.load().unwrap().bytes().to_vec();
        assert_eq!(look(&contents), 8);
        for place in 0..contents.len() {
            look(&contents[..place]);
            for bit in [1, 0x80] {
                let mut changed = contents.clone();
                changed[place] ^= bit;
                look(&changed);
            }
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
