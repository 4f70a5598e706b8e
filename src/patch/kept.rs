//! The call sites of a file, kept from one start to the next: finding them takes tenths of a second
//! in a large program, and it is the same each time.
//!
//! ```text
//!   version: u8; indirect calls; reasons { number; sites }[]; imports { length; name }[]
//!   taken imports { row }[]
//!   taken starts { start − the one before }[]; callers by pointers { start − the one before }[]
//!   sites { flags: u8 (1 tail call, 2 flags are saved, 4 callee is an import,
//!                      8 is led through a stub)
//!           address − the one before; caller − the one before
//!           callee − address, or the import's row
//!           length: u8 and the bytes of the instruction, if it is led through a stub }[]
//! ```
//!
//! Numbers are LEB128, those that may be negative in zigzag; lists begin with their length. What an
//! instruction does is read from its bytes again, and memory is changed only where it has these
//! bytes.

use rustc_hash::FxHashSet;

use super::form::{CallForm, LONGEST};
use super::left_alone::{LeftAlone, Reason};
use super::sites::{FileSites, Patch, Site};
use crate::binary::{Binary, Error};
use crate::perfdata::{CountedCallee, CountedSite};

const NAME: &str = "call-sites";
// What is found changes with the program that finds it.
const VERSION: u8 = 2;

const TAIL: u8 = 1;
const SAVES_FLAGS: u8 = 2;
const IMPORT: u8 = 4;
const LED: u8 = 8;

// In the order of their numbers.
const REASONS: [Reason; 7] = [
    Reason::NoBounds,
    Reason::Unreached,
    Reason::Form,
    Reason::Inside,
    Reason::Reach,
    Reason::Changed,
    Reason::Machine,
];

impl FileSites {
    pub(super) fn of(binary: Binary) -> Result<FileSites, Error> {
        let contents = binary.kept(NAME);
        if let Some(parts) = contents.and_then(|contents| read(contents.bytes())) {
            return Ok(parts.with(binary));
        }
        let found = FileSites::read(binary)?;
        found.keep();
        Ok(found)
    }

    fn keep(&self) {
        if self.binary.keeps() {
            // It does not matter if that fails.
            let _ = self.binary.keep(NAME, &self.bytes());
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put(&mut out, self.left_alone.indirect);
        let reasons = REASONS.iter().zip(0u64..);
        let reasons = reasons
            .filter_map(|(reason, number)| Some((number, *self.left_alone.sites.get(reason)?)));
        let reasons: Vec<(u64, u64)> = reasons.collect();
        put(&mut out, reasons.len() as u64);
        for (number, sites) in reasons {
            put(&mut out, number);
            put(&mut out, sites);
        }
        put(&mut out, self.imports.len() as u64);
        for name in &self.imports {
            put(&mut out, name.len() as u64);
            out.extend(name.as_bytes());
        }
        let taken = self.taken_imports.iter().map(|&row| row as u64);
        put_sorted(&mut out, taken);
        put_sorted(&mut out, self.taken_starts.iter().copied());
        put_sorted(&mut out, self.calls_otherwise.iter().copied());
        put(&mut out, self.sites.len() as u64);
        let (mut at, mut caller) = (0, 0);
        for Site { row, patch } in &self.sites {
            let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
            out.push(
                flag(row.is_tail, TAIL)
                    | flag(row.saves_flags, SAVES_FLAGS)
                    | flag(matches!(row.callee, CountedCallee::Import(_)), IMPORT)
                    | flag(patch.is_some(), LED),
            );
            put(&mut out, row.at.wrapping_sub(at));
            put(&mut out, zigzag(row.caller.wrapping_sub(caller)));
            put(
                &mut out,
                match row.callee {
                    CountedCallee::At(start) => zigzag(start.wrapping_sub(row.at)),
                    CountedCallee::Import(row) => row.into(),
                },
            );
            if let Some(patch) = patch {
                let length = usize::from(patch.length).min(LONGEST);
                out.push(length as u8);
                out.extend(patch.bytes.iter().take(length));
            }
            (at, caller) = (row.at, row.caller);
        }
        out
    }
}

struct Parts {
    sites: Vec<Site>,
    imports: Vec<String>,
    taken_imports: FxHashSet<usize>,
    taken_starts: FxHashSet<u64>,
    calls_otherwise: FxHashSet<u64>,
    left_alone: LeftAlone,
}

impl Parts {
    fn with(self, binary: Binary) -> FileSites {
        FileSites {
            binary,
            sites: self.sites,
            imports: self.imports,
            taken_imports: self.taken_imports,
            taken_starts: self.taken_starts,
            calls_otherwise: self.calls_otherwise,
            left_alone: self.left_alone,
        }
    }
}

fn read(bytes: &[u8]) -> Option<Parts> {
    let (&version, mut rest) = bytes.split_first()?;
    if version != VERSION {
        return None;
    }
    let rest = &mut rest;
    let mut left_alone = LeftAlone {
        indirect: number(rest)?,
        ..LeftAlone::default()
    };
    for _ in 0..number(rest)? {
        let reason = REASONS.get(usize::try_from(number(rest)?).ok()?)?;
        left_alone.sites.insert(*reason, number(rest)?);
    }
    let mut imports = Vec::new();
    for _ in 0..number(rest)? {
        let length = usize::try_from(number(rest)?).ok()?;
        imports.push(str::from_utf8(take(rest, length)?).ok()?.to_owned());
    }
    let taken_imports = sorted(rest)?;
    let taken_imports = taken_imports.into_iter().map(|row| row as usize).collect();
    let taken_starts = sorted(rest)?.into_iter().collect();
    let calls_otherwise = sorted(rest)?.into_iter().collect();
    let mut sites = Vec::new();
    let (mut at, mut caller) = (0, 0);
    for _ in 0..number(rest)? {
        let site = read_site(rest, at, caller)?;
        (at, caller) = (site.row.at, site.row.caller);
        sites.push(site);
    }
    rest.is_empty().then_some(Parts {
        sites,
        imports,
        taken_imports,
        taken_starts,
        calls_otherwise,
        left_alone,
    })
}

fn read_site(rest: &mut &[u8], before: u64, caller: u64) -> Option<Site> {
    let flags = *take(rest, 1)?.first()?;
    let has = |flag: u8| flags & flag != 0;
    let at = before.checked_add(number(rest)?)?;
    let caller = caller.wrapping_add(unzigzag(number(rest)?));
    let callee = number(rest)?;
    let callee = if has(IMPORT) {
        CountedCallee::Import(u32::try_from(callee).ok()?)
    } else {
        CountedCallee::At(at.wrapping_add(unzigzag(callee)))
    };
    let patch = if has(LED) {
        let length = *take(rest, 1)?.first()?;
        let instruction = take(rest, length.into())?;
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..length.into())?.copy_from_slice(instruction);
        Some(Patch {
            call: CallForm::read(instruction, at)?,
            length,
            bytes,
        })
    } else {
        None
    };
    let row = CountedSite {
        at,
        caller,
        callee,
        calls: None,
        is_tail: has(TAIL),
        saves_flags: has(SAVES_FLAGS),
        is_least: false,
        is_part: false,
    };
    Some(Site { row, patch })
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_sorted(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    put(out, numbers.len() as u64);
    let mut before = 0;
    for number in numbers {
        put(out, number.wrapping_sub(before));
        before = number;
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn sorted(rest: &mut &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut before = 0u64;
    for _ in 0..number(rest)? {
        before = before.checked_add(number(rest)?)?;
        numbers.push(before);
    }
    Some(numbers)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_found() {
        // This very program.
        let binary = || Binary::open(std::path::Path::new("/proc/self/exe")).unwrap();
        let Ok(found) = FileSites::read(binary()) else {
            return;
        };
        let bytes = found.bytes();
        let kept = read(&bytes).unwrap().with(binary());
        assert_eq!(kept.sites.len(), found.sites.len());
        for (kept, found) in kept.sites.iter().zip(&found.sites) {
            assert_eq!(format!("{kept:?}"), format!("{found:?}"));
        }
        assert_eq!(kept.imports, found.imports);
        assert_eq!(kept.taken_imports, found.taken_imports);
        assert_eq!(kept.taken_starts, found.taken_starts);
        assert_eq!(kept.calls_otherwise, found.calls_otherwise);
        assert_eq!(kept.left_alone, found.left_alone);
        // A part of it is nothing, and so is what another version wrote.
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert!(read(&bytes[..length]).is_none());
        }
        let mut other = bytes.clone();
        other[0] += 1;
        assert!(read(&other).is_none());
        // An instruction that is no call.
        let last = found.sites.iter().rev().find_map(|site| site.patch);
        let last = last.expect("it has calls");
        let instruction = &last.bytes[..usize::from(last.length)];
        let place = bytes
            .windows(instruction.len())
            .rposition(|it| it == instruction);
        let mut other = bytes;
        let opcode = place.unwrap() + instruction.len() - 5;
        other[opcode] = 0x90;
        assert!(read(&other).is_none());
    }
}
