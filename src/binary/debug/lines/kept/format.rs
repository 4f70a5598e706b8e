//! Kept answers as bytes, which are looked up where they are: a recording asks for a few of many. All
//! numbers are little-endian.
//!
//! ```text
//!   numbers       of the rows of each table below, and of the bytes behind them: u32 each
//!   texts         where its bytes end: u32
//!   definitions   id and root (file: u8, 0 main, 1 supplement; unit, entry: u64), name: text,
//!                 where its description ends: u32 × 2 + (1 if it was asked for); sorted by id
//!   places        address: u64, where its frames end: u32 × 2 + (1 with lines); sorted
//!   frames        definition: u32 from 1, or 0; × 2 + (1 split off); file: text; line: u32
//!   around        address: u64, definition: u32 from 1, or 0; sorted
//!   lines         address: u64, file: text, line: u32; sorted
//!   descriptions  unit: u64, root as above
//!                 flags: u8 (1 external, 2 inlined, 4 declared at a line, 8 comes from lines)
//!                 language: u8
//!                 linkage name, name, qualified name, directory, file: text each; first and last line: u32; code: u64
//!   bytes         of the texts, which are UTF-8
//!
//!   text          u32 from 1, or 0 for none
//! ```

use super::super::DefinitionKey;
use super::super::definition::{DebugFile, DefinitionId};
use super::super::described::{Declared, Described};
use super::{Answers, KeptDefinition, KeptFrame, Place};
use crate::base::{Interner, Language, NameId};
use crate::cache::Contents;

/// Changes with what is written here and with what the answers mean.
pub(super) const VERSION: u32 = 5;

const EXTERNAL: u8 = 1;
const INLINED: u8 = 2;
const AT: u8 = 4;
const LINES: u8 = 8;
const MAIN_SOURCE: u8 = 16;
const UNIT_CODE: u8 = 32;
const INSTANCE: u8 = 64;

/// The tables in their order, and the bytes of a row.
const TEXTS: usize = 0;
const DEFINITIONS: usize = 1;
const PLACES: usize = 2;
const FRAMES: usize = 3;
const AROUND: usize = 4;
const LINE_ROWS: usize = 5;
const DESCRIPTIONS: usize = 6;
const BYTES: usize = 7;
const TABLES: usize = 8;
const ROWS: [usize; TABLES] = [4, 42, 12, 12, 12, 16, 1, 1];

/// Answers in bytes.
#[derive(Debug)]
pub(super) struct Known {
    contents: Contents,
    /// Where each table begins and ends.
    tables: [(usize, usize); TABLES],
}

impl Known {
    /// The answers in these contents; `None` if the tables do not fit.
    pub(super) fn of(contents: Contents) -> Option<Known> {
        let bytes = contents.bytes();
        let (numbers, _) = bytes.split_at_checked(TABLES * 4)?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let mut tables = [(0, 0); TABLES];
        let mut from = TABLES * 4;
        for ((table, row), number) in tables.iter_mut().zip(ROWS).zip(numbers) {
            let length = (u32::from_le_bytes(*number) as usize).checked_mul(row)?;
            let to = from.checked_add(length)?;
            *table = (from, to);
            from = to;
        }
        (from == bytes.len()).then_some(Known { contents, tables })
    }

    fn table(&self, table: usize) -> &[u8] {
        let (from, to) = self.tables[table];
        self.contents.bytes().get(from..to).unwrap_or_default()
    }

    fn rows<const N: usize>(&self, table: usize) -> &[[u8; N]] {
        self.table(table).as_chunks().0
    }

    /// The row of an address in a table whose rows begin with one, and its place.
    fn row_at<const N: usize>(&self, table: usize, address: u64) -> Option<(usize, Rest<'_>)> {
        let rows = self.rows::<N>(table);
        let first = |row: &[u8; N]| Rest(row).u64().unwrap_or(0);
        let place = rows.binary_search_by_key(&address, first).ok()?;
        let row = rows.get(place)?.get(8..)?;
        Some((place, Rest(row)))
    }

    fn text(&self, number: u32) -> Option<&str> {
        let place = number.checked_sub(1)? as usize;
        let ends = self.rows::<4>(TEXTS);
        let end = |place: usize| ends.get(place).map(|&end| u32::from_le_bytes(end) as usize);
        let from = place.checked_sub(1).map_or(Some(0), end)?;
        let bytes = self.table(BYTES).get(from..end(place)?)?;
        str::from_utf8(bytes).ok()
    }

    fn definition(&self, place: usize) -> Option<(DefinitionKey, u32, u32)> {
        let mut row = Rest(self.rows::<42>(DEFINITIONS).get(place)?);
        let (id, root) = (row.id()?, row.id()?);
        Some((DefinitionKey { id, root }, row.u32()?, row.u32()?))
    }

    fn place_of(&self, id: DefinitionId) -> Option<usize> {
        let rows = self.rows::<42>(DEFINITIONS);
        let place = rows.partition_point(|row| Rest(row).id().is_some_and(|known| known < id));
        (self.definition(place)?.0.id == id).then_some(place)
    }

    /// Whether there are answers about addresses.
    pub(super) fn is_empty(&self) -> bool {
        self.table(PLACES).is_empty()
    }

    /// Calls `add` with each frame of an address; `None` if it is not known, with lines if they are
    /// wanted.
    pub(super) fn frames<'l>(
        &'l self,
        address: u64,
        lines: bool,
        mut add: impl FnMut(KnownFrame<'l>),
    ) -> Option<()> {
        let (place, mut row) = self.row_at::<12>(PLACES, address)?;
        let end = row.u32()?;
        let has_lines = end % 2 == 1;
        if lines && !has_lines {
            return None;
        }
        for frame in self.frame_rows(place, end)? {
            let mut frame = Rest(frame);
            let (of, file, line) = (frame.u32()?, frame.u32()?, frame.u32()?);
            let definition = (of / 2)
                .checked_sub(1)
                .and_then(|at| self.definition(at as usize));
            add(KnownFrame {
                name: definition.and_then(|(_, name, _)| self.text(name)),
                definition: definition.map(|(key, ..)| key),
                is_split_off: of % 2 == 1,
                file: self.text(file),
                line,
            });
        }
        Some(())
    }

    fn frame_rows(&self, place: usize, end: u32) -> Option<&[[u8; 12]]> {
        let before = place.checked_sub(1).and_then(|at| {
            let row = self.rows::<12>(PLACES).get(at)?;
            Rest(row.get(8..)?).u32()
        });
        let (from, to) = (before.unwrap_or(0) / 2, end / 2);
        self.rows::<12>(FRAMES).get(from as usize..to as usize)
    }

    /// The definition of the function around an address.
    pub(super) fn around(&self, address: u64) -> Option<Option<DefinitionKey>> {
        let (_, mut row) = self.row_at::<12>(AROUND, address)?;
        let place = row.u32()?.checked_sub(1);
        Some(
            place
                .and_then(|at| self.definition(at as usize))
                .map(|(key, ..)| key),
        )
    }

    /// The line of an address.
    pub(super) fn line(&self, address: u64) -> Option<Option<(&str, u32)>> {
        let (_, mut row) = self.row_at::<16>(LINE_ROWS, address)?;
        let (file, line) = (row.u32()?, row.u32()?);
        Some(self.text(file).map(|file| (file, line)))
    }

    /// What a definition is known by and called.
    pub(super) fn named(&self, id: DefinitionId) -> Option<(DefinitionKey, Option<&str>)> {
        let (key, name, _) = self.definition(self.place_of(id)?)?;
        Some((key, self.text(name)))
    }

    /// What a definition was described as, if that was asked for.
    pub(super) fn described(&self, id: DefinitionId) -> Option<Option<Described>> {
        self.description(self.place_of(id)?)
    }

    fn description(&self, place: usize) -> Option<Option<Described>> {
        let (_, _, end) = self.definition(place)?;
        let before = place.checked_sub(1).and_then(|at| self.definition(at));
        let from = before.map_or(0, |(.., end)| end) / 2;
        let bytes = self
            .table(DESCRIPTIONS)
            .get(from as usize..(end / 2) as usize)?;
        let was_asked = end % 2 == 1;
        if bytes.is_empty() {
            return was_asked.then_some(None);
        }
        Some(Some(self.read_description(Rest(bytes))?))
    }

    fn read_description(&self, mut rest: Rest<'_>) -> Option<Described> {
        let (unit, root, flags) = (rest.u64()?, rest.id()?, rest.u8()?);
        let language = Language::of_number(rest.u8()?)?;
        let mut text = || Some(self.text(rest.u32()?).map(str::to_owned));
        let (linkage_name, name, qualified_name) = (text()?, text()?, text()?);
        let (directory, file) = (text()?, text()?);
        let (first, last, code) = (rest.u32()?, rest.u32()?, rest.u64()?);
        Some(Described {
            unit,
            root,
            is_external: flags & EXTERNAL != 0,
            is_inlined: flags & INLINED != 0,
            linkage_name,
            name,
            qualified_name,
            language,
            declared: match flags & (AT | LINES) {
                0 => None,
                AT => Some(Declared::At(file?, first)),
                _ => Some(Declared::Lines(file?, first, last)),
            },
            is_of_main_source: flags & MAIN_SOURCE != 0,
            has_unit_code: flags & UNIT_CODE != 0,
            may_be_instance: flags & INSTANCE != 0,
            code: (code > 0).then_some(code),
            directory,
        })
    }

    /// All answers.
    pub(super) fn all(&self) -> Answers {
        let mut all = Answers::default();
        // Definitions first: they bring their names; what follows finds them by key.
        for place in 0..self.rows::<42>(DEFINITIONS).len() {
            let Some((key, name, _)) = self.definition(place) else {
                continue;
            };
            let at = all.intern(key, self.text(name));
            if let Some(definition) = all.definitions.get_mut(at as usize) {
                let described = self.description(place);
                definition.described = described.map(|described| described.map(Box::new));
            }
        }
        let frames = &mut Vec::new();
        for row in self.rows::<12>(PLACES) {
            let mut row = Rest(row);
            let (Some(address), Some(end)) = (row.u64(), row.u32()) else {
                continue;
            };
            let has_lines = end % 2 == 1;
            frames.clear();
            if self
                .frames(address, has_lines, |frame| frames.push(frame))
                .is_some()
            {
                all.add_frames(address, has_lines, frames.iter().copied());
            }
        }
        for row in self.rows::<12>(AROUND) {
            if let Some(address) = Rest(row).u64()
                && let Some(found) = self.around(address)
            {
                let definition = found.map(|key| all.intern(key, None));
                all.around.insert(address, definition);
            }
        }
        for row in self.rows::<16>(LINE_ROWS) {
            if let Some(address) = Rest(row).u64()
                && let Some(found) = self.line(address)
            {
                let found = found.map(|(file, line)| (all.texts.intern(file), line));
                all.lines.insert(address, found);
            }
        }
        all
    }
}

/// A frame of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFrame<'l> {
    pub(super) name: Option<&'l str>,
    pub(super) definition: Option<DefinitionKey>,
    pub(super) is_split_off: bool,
    pub(super) file: Option<&'l str>,
    pub(super) line: u32,
}

/// The bytes of these answers; `None` if there are too many, or any cannot be kept.
pub(super) fn written(answers: &Answers) -> Option<Vec<u8>> {
    let mut tables: [Vec<u8>; TABLES] = Default::default();
    // Those of descriptions come behind the others.
    let mut texts = answers.texts.clone();
    let mut order: Vec<(u32, &KeptDefinition)> = (0..).zip(&answers.definitions).collect();
    order.sort_unstable_by_key(|(_, definition)| definition.key.id);
    let mut now = vec![0; order.len()];
    for (place, &(was, definition)) in (0..).zip(&order) {
        *now.get_mut(was as usize)? = place;
        let body = &mut tables[DESCRIPTIONS];
        if let Some(Some(described)) = &definition.described {
            write_described(body, described, &mut texts)?;
        }
        let end = body.len() * 2 + usize::from(definition.described.is_some());
        let out = &mut tables[DEFINITIONS];
        id(out, definition.key.id)?;
        id(out, definition.key.root)?;
        text(out, definition.name)?;
        number(out, end)?;
    }
    let of = |definition: Option<u32>| match definition {
        None => Some(0),
        Some(was) => Some(1 + *now.get(was as usize)? as usize),
    };
    let mut places: Vec<(&u64, &Place)> = answers.places.iter().collect();
    places.sort_unstable_by_key(|&(address, _)| address);
    for (address, place) in places {
        for frame in answers.frames.get(place.from as usize..place.to as usize)? {
            let out = &mut tables[FRAMES];
            let KeptFrame {
                definition,
                is_split_off,
                file,
                line,
            } = *frame;
            number(out, of(definition)? * 2 + usize::from(is_split_off))?;
            text(out, file)?;
            out.extend(line.to_le_bytes());
        }
        let end = tables[FRAMES].len() / ROWS[FRAMES];
        let out = &mut tables[PLACES];
        out.extend(address.to_le_bytes());
        number(out, end * 2 + usize::from(place.has_lines))?;
    }
    let mut around: Vec<(&u64, &Option<u32>)> = answers.around.iter().collect();
    around.sort_unstable();
    for (address, &definition) in around {
        tables[AROUND].extend(address.to_le_bytes());
        number(&mut tables[AROUND], of(definition)?)?;
    }
    let mut lines: Vec<(&u64, &Option<(NameId, u32)>)> = answers.lines.iter().collect();
    lines.sort_unstable_by_key(|&(address, _)| address);
    for (address, line) in lines {
        let out = &mut tables[LINE_ROWS];
        out.extend(address.to_le_bytes());
        text(out, line.map(|(file, _)| file))?;
        out.extend(line.map_or(0, |(_, line)| line).to_le_bytes());
    }
    for name in texts.iter() {
        tables[BYTES].extend(name.as_bytes());
        let end = tables[BYTES].len();
        number(&mut tables[TEXTS], end)?;
    }
    let mut bytes = Vec::new();
    for (table, row) in tables.iter().zip(ROWS) {
        number(&mut bytes, table.len() / row)?;
    }
    tables.iter().for_each(|table| bytes.extend(table));
    Some(bytes)
}

fn write_described(out: &mut Vec<u8>, described: &Described, texts: &mut Interner) -> Option<()> {
    out.extend(described.unit.to_le_bytes());
    id(out, described.root)?;
    let (declared, file, first, last) = match &described.declared {
        None => (0, None, 0, 0),
        Some(Declared::At(file, line)) => (AT, Some(file), *line, *line),
        Some(Declared::Lines(file, first, last)) => (LINES, Some(file), *first, *last),
    };
    let flag = |is: bool, flag| if is { flag } else { 0 };
    out.push(
        flag(described.is_external, EXTERNAL)
            | flag(described.is_inlined, INLINED)
            | flag(described.is_of_main_source, MAIN_SOURCE)
            | flag(described.has_unit_code, UNIT_CODE)
            | flag(described.may_be_instance, INSTANCE)
            | declared,
    );
    out.push(described.language as u8);
    let names = [
        described.linkage_name.as_ref(),
        described.name.as_ref(),
        described.qualified_name.as_ref(),
        described.directory.as_ref(),
        file,
    ];
    for name in names {
        text(out, name.map(|name| texts.intern(name)))?;
    }
    out.extend(first.to_le_bytes());
    out.extend(last.to_le_bytes());
    out.extend(described.code.unwrap_or(0).to_le_bytes());
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

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn u8(&mut self) -> Option<u8> {
        self.chunk().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn no_contents_make_it_panic() {
        let entry = |entry| DefinitionId {
            place: DebugFile::Main,
            unit: 11,
            entry,
        };
        let mut answers = Answers::default();
        for number in 0..4 {
            let (id, root) = (entry(40 - number), entry(9));
            let definition = Some(DefinitionKey { id, root });
            let frame = KnownFrame {
                name: Some("name"),
                definition,
                is_split_off: number == 1,
                file: Some("a.c"),
                line: 7,
            };
            let frames = [frame, frame];
            answers.add_frames(number as u64, number > 1, frames.into_iter());
            answers.around.insert(number as u64, Some(number as u32));
            answers.lines.insert(number as u64, None);
        }
        let bytes = written(&answers).unwrap();
        let own = std::fs::read_link("/proc/self").unwrap();
        let directory = format!("proftool-kept-lines-{}", own.display());
        let directory = std::env::temp_dir().join(directory);
        let cache = Cache::open(&directory).unwrap();
        let look = |bytes: &[u8]| {
            cache.store("lines", b"", bytes).unwrap();
            let known = Known::of(cache.load("lines", b"").unwrap());
            known.and_then(|known| written(&known.all()))
        };
        assert_eq!(look(&bytes).as_ref(), Some(&bytes));
        for place in 0..bytes.len() {
            look(&bytes[..place]);
            for bit in [1, 0x80] {
                let mut changed = bytes.clone();
                changed[place] ^= bit;
                look(&changed);
            }
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
