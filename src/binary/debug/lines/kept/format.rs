//! Kept answers as bytes, all numbers little-endian.
//!
//! ```text
//!   texts         number: u32; length: u32 of each; the bytes of all, which are UTF-8
//!   definitions   number: u32; of each
//!     id, root      file: u8 (0 main, 1 supplement), unit: u64, entry: u64
//!     name          text
//!     described     u8: 0 not asked for, 1 nothing known, 2 and then
//!       unit          u64
//!       root          as above
//!       flags         u8: 1 external, 2 inlined, 4 declared at a line, 8 comes from lines
//!       linkage name, name, qualified name, directory    text each
//!       file: text; first and last line: u32, if there is one
//!   addresses     number: u32; address: u64, number of frames × 2 + (1 with lines): u32
//!     of each frame definition: u32 from 1, or 0; × 2 + (1 split off); file: text; line: u32
//!   around        number: u32; address: u64, definition: u32 from 1, or 0
//!   lines         number: u32; address: u64, file: text, line: u32
//!
//!   text          u32 from 1, or 0 for none
//! ```

use super::super::DefinitionKey;
use super::super::definition::{DebugFile, DefinitionId};
use super::super::described::{Declared, Described};
use super::{Answers, KeptDefinition, KeptFrame, Place};
use crate::base::{Interner, NameId};

/// Changes with what is written here and with what the answers mean.
pub(super) const VERSION: u32 = 2;

const EXTERNAL: u8 = 1;
const INLINED: u8 = 2;
const AT: u8 = 4;
const LINES: u8 = 8;

/// The bytes of these answers; `None` if there are too many, or any cannot be kept.
pub(super) fn written(answers: &Answers) -> Option<Vec<u8>> {
    // Those of descriptions come behind the others.
    let mut texts = answers.texts.clone();
    let mut rest = Vec::new();
    let out = &mut rest;
    number(out, answers.definitions.len())?;
    for definition in &answers.definitions {
        id(out, definition.key.id)?;
        id(out, definition.key.root)?;
        text(out, definition.name)?;
        match &definition.described {
            None => out.push(0),
            Some(None) => out.push(1),
            Some(Some(described)) => {
                out.push(2);
                write_described(out, described, &mut texts)?;
            }
        }
    }
    let mut places: Vec<(&u64, &Place)> = answers.places.iter().collect();
    places.sort_unstable_by_key(|&(address, _)| address);
    number(out, places.len())?;
    for (address, place) in places {
        let frames = answers.frames.get(place.from as usize..place.to as usize)?;
        out.extend(address.to_le_bytes());
        number(out, frames.len() * 2 + usize::from(place.has_lines))?;
        for frame in frames {
            let definition = frame.definition.map_or(0, |at| at as usize + 1);
            number(out, definition * 2 + usize::from(frame.is_split_off))?;
            text(out, frame.file)?;
            out.extend(frame.line.to_le_bytes());
        }
    }
    let mut around: Vec<(&u64, &Option<u32>)> = answers.around.iter().collect();
    around.sort_unstable();
    number(out, around.len())?;
    for (address, definition) in around {
        out.extend(address.to_le_bytes());
        number(out, definition.map_or(0, |at| at as usize + 1))?;
    }
    let mut lines: Vec<(&u64, &Option<(NameId, u32)>)> = answers.lines.iter().collect();
    lines.sort_unstable_by_key(|&(address, _)| address);
    number(out, lines.len())?;
    for (address, line) in lines {
        out.extend(address.to_le_bytes());
        text(out, line.map(|(file, _)| file))?;
        out.extend(line.map_or(0, |(_, line)| line).to_le_bytes());
    }
    let mut bytes = Vec::new();
    number(&mut bytes, texts.iter().len())?;
    for name in texts.iter() {
        number(&mut bytes, name.len())?;
    }
    texts.iter().for_each(|name| bytes.extend(name.as_bytes()));
    bytes.append(&mut rest);
    Some(bytes)
}

fn write_described(out: &mut Vec<u8>, described: &Described, texts: &mut Interner) -> Option<()> {
    out.extend(described.unit.to_le_bytes());
    id(out, described.root)?;
    let declared = match &described.declared {
        None => 0,
        Some(Declared::At(..)) => AT,
        Some(Declared::Lines(..)) => LINES,
    };
    let flag = |is: bool, flag| if is { flag } else { 0 };
    out.push(
        flag(described.is_external, EXTERNAL) | flag(described.is_inlined, INLINED) | declared,
    );
    let names = [
        &described.linkage_name,
        &described.name,
        &described.qualified_name,
        &described.directory,
    ];
    for name in names {
        text(out, name.as_ref().map(|name| texts.intern(name)))?;
    }
    let (file, first, last) = match &described.declared {
        None => return Some(()),
        Some(Declared::At(file, line)) => (file, *line, *line),
        Some(Declared::Lines(file, first, last)) => (file, *first, *last),
    };
    text(out, Some(texts.intern(file)))?;
    out.extend(first.to_le_bytes());
    out.extend(last.to_le_bytes());
    Some(())
}

fn number(out: &mut Vec<u8>, number: usize) -> Option<()> {
    out.extend(u32::try_from(number).ok()?.to_le_bytes());
    Some(())
}

fn text(out: &mut Vec<u8>, name: Option<NameId>) -> Option<()> {
    number(out, name.map_or(0, |name| name.index() + 1))
}

fn id(out: &mut Vec<u8>, id: DefinitionId) -> Option<()> {
    out.push(match id.place {
        DebugFile::Main => 0,
        DebugFile::Supplement => 1,
        DebugFile::Split(_) => return None,
    });
    for number in [id.unit, id.entry] {
        out.extend((number as u64).to_le_bytes());
    }
    Some(())
}

/// The answers in these bytes; `None` if they are no answers.
pub(super) fn read(bytes: &[u8]) -> Option<Answers> {
    let mut answers = Answers::default();
    let mut rest = Rest { bytes, texts: 0 };
    let rest = &mut rest;
    let lengths = rest.u32()?;
    let lengths = rest.take((lengths as usize).checked_mul(4)?)?;
    let (lengths, _) = lengths.as_chunks::<4>();
    for length in lengths {
        let length = u32::from_le_bytes(*length) as usize;
        rest.texts = rest.texts.checked_add(length)?;
    }
    let all = std::str::from_utf8(rest.take(rest.texts)?).ok()?;
    let mut from = 0;
    for length in lengths {
        let to = from + u32::from_le_bytes(*length) as usize;
        answers.texts.intern(all.get(from..to)?);
        from = to;
    }
    // Each stands there once.
    rest.texts = answers.texts.iter().len();
    if rest.texts != lengths.len() {
        return None;
    }
    for _ in 0..rest.u32()? {
        let key = DefinitionKey {
            id: rest.id()?,
            root: rest.id()?,
        };
        let name = rest.text()?;
        let described = match rest.u8()? {
            0 => None,
            1 => Some(None),
            2 => Some(Some(Box::new(rest.described(&answers.texts)?))),
            _ => return None,
        };
        let at = u32::try_from(answers.definitions.len()).ok()?;
        answers.by_id.insert(key.id, at);
        answers.definitions.push(KeptDefinition {
            key,
            name,
            described,
        });
    }
    let definitions = answers.definitions.len();
    let definition = |number: u32| match number.checked_sub(1) {
        Some(at) if at as usize >= definitions => None,
        at => Some(at),
    };
    for _ in 0..rest.u32()? {
        let address = rest.u64()?;
        let number = rest.u32()?;
        let from = u32::try_from(answers.frames.len()).ok()?;
        for _ in 0..number / 2 {
            let of = rest.u32()?;
            answers.frames.push(KeptFrame {
                definition: definition(of / 2)?,
                is_split_off: of % 2 == 1,
                file: rest.text()?,
                line: rest.u32()?,
            });
        }
        let to = u32::try_from(answers.frames.len()).ok()?;
        let has_lines = number % 2 == 1;
        let place = Place {
            from,
            to,
            has_lines,
        };
        answers.places.insert(address, place);
    }
    for _ in 0..rest.u32()? {
        let address = rest.u64()?;
        let found = definition(rest.u32()?)?;
        answers.around.insert(address, found);
    }
    for _ in 0..rest.u32()? {
        let address = rest.u64()?;
        let (file, line) = (rest.text()?, rest.u32()?);
        answers.lines.insert(address, file.map(|file| (file, line)));
    }
    rest.bytes.is_empty().then_some(answers)
}

/// What is not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    /// The number of texts.
    texts: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    /// A text, if it is one of those that there are.
    fn text(&mut self) -> Option<Option<NameId>> {
        match self.u32()?.checked_sub(1) {
            None => Some(None),
            Some(at) => ((at as usize) < self.texts).then(|| Some(NameId::new(at as usize))),
        }
    }

    fn owned(&mut self, texts: &Interner) -> Option<Option<String>> {
        Some(self.text()?.map(|name| texts[name].to_owned()))
    }

    fn id(&mut self) -> Option<DefinitionId> {
        Some(DefinitionId {
            place: match self.u8()? {
                0 => DebugFile::Main,
                1 => DebugFile::Supplement,
                _ => return None,
            },
            unit: usize::try_from(self.u64()?).ok()?,
            entry: usize::try_from(self.u64()?).ok()?,
        })
    }

    fn described(&mut self, texts: &Interner) -> Option<Described> {
        let (unit, root, flags) = (self.u64()?, self.id()?, self.u8()?);
        Some(Described {
            unit,
            root,
            is_external: flags & EXTERNAL != 0,
            is_inlined: flags & INLINED != 0,
            linkage_name: self.owned(texts)?,
            name: self.owned(texts)?,
            qualified_name: self.owned(texts)?,
            directory: self.owned(texts)?,
            declared: if flags & (AT | LINES) == 0 {
                None
            } else {
                let (file, first, last) = (self.owned(texts)??, self.u32()?, self.u32()?);
                Some(if flags & AT != 0 {
                    Declared::At(file, first)
                } else {
                    Declared::Lines(file, first, last)
                })
            },
        })
    }
}
