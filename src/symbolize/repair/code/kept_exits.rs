//! How control leaves functions, kept from one start to the next: to find it out, the relocations
//! and pointers of the whole file have to be read, and each function decoded.
//!
//! ```text
//!   number: u32
//!   rows    start: u64, end of its bytes in the body: u32; sorted by start
//!   body    complete: u8, number: u32, of each call or jump
//!             address: u64, length: u8, kind: u8 (0 call, 1 jump)
//!             to: u8 (0 unknown; 1 function, start: u64; 2 import, length: u32, name)
//! ```

use std::rc::Rc;

use crate::base::Svma;
use crate::cache::Contents;
use crate::scan::{Destination, Exits, Leaving, LeavingKind};

// The bytes of a row.
const ROW: usize = 12;
// The most functions of one file that are kept.
const LIMIT: usize = 1 << 16;

/// What was kept of one file.
pub(super) struct KeptExits {
    contents: Option<Contents>,
}

impl KeptExits {
    pub(super) fn of(contents: Option<Contents>) -> KeptExits {
        KeptExits { contents }
    }

    pub(super) fn of_function(&self, start: u64) -> Option<Exits> {
        let (rows, body) = self.parts()?;
        let place = rows.partition_point(|row| row_of(row).0 < start);
        let (found, to) = row_of(rows.get(place)?);
        let before = place.checked_sub(1).and_then(|before| rows.get(before));
        let from = before.map_or(0, |row| row_of(row).1);
        let mut rest = body.get(from..to).filter(|_| found == start)?;
        read(&mut rest)
    }

    /// The bytes to keep: what was, and these functions, sorted by start. `None` where none is new.
    pub(super) fn with(&self, found: &[(u64, Rc<Exits>)]) -> Option<Vec<u8>> {
        let (rows, _) = self.parts().unwrap_or_default();
        let is_known = |start: u64| {
            let starts = rows.binary_search_by_key(&start, |row| row_of(row).0);
            starts.is_ok()
        };
        if found.iter().all(|&(start, _)| is_known(start)) {
            return None;
        }
        let mut all: Vec<(u64, Rc<Exits>)> = found.to_vec();
        let others = rows
            .iter()
            .map(|row| row_of(row).0)
            .filter(|start| found.binary_search_by_key(start, |row| row.0).is_err())
            .filter_map(|start| Some((start, Rc::new(self.of_function(start)?))));
        // What is asked for now counts more than what was before.
        all.extend(others.take(LIMIT.saturating_sub(found.len())));
        all.truncate(LIMIT);
        all.sort_unstable_by_key(|row| row.0);
        let mut bytes = u32::try_from(all.len()).ok()?.to_le_bytes().to_vec();
        let mut body = Vec::new();
        for (start, exits) in all {
            write(&exits, &mut body)?;
            bytes.extend(start.to_le_bytes());
            bytes.extend(u32::try_from(body.len()).ok()?.to_le_bytes());
        }
        bytes.append(&mut body);
        Some(bytes)
    }

    fn parts(&self) -> Option<(&[[u8; ROW]], &[u8])> {
        let (number, rest) = self.contents.as_ref()?.bytes().split_first_chunk()?;
        let length = (u32::from_le_bytes(*number) as usize).checked_mul(ROW)?;
        let (rows, body) = rest.split_at_checked(length)?;
        Some((rows.as_chunks().0, body))
    }
}

/// The start of a function, and where its bytes end.
fn row_of(row: &[u8; ROW]) -> (u64, usize) {
    let [a, b, c, d, e, f, g, h, end @ ..] = *row;
    let start = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    (start, u32::from_le_bytes(end) as usize)
}

fn write(exits: &Exits, out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::from(exits.is_complete));
    out.extend(u32::try_from(exits.sites.len()).ok()?.to_le_bytes());
    for site in &exits.sites {
        out.extend(site.at.0.to_le_bytes());
        out.push(site.length);
        out.push(u8::from(site.kind == LeavingKind::Jump));
        match &site.to {
            Destination::Unknown => out.push(0),
            Destination::Function(start) => {
                out.push(1);
                out.extend(start.0.to_le_bytes());
            }
            Destination::Import(name) => {
                out.push(2);
                out.extend(u32::try_from(name.len()).ok()?.to_le_bytes());
                out.extend(name.as_bytes());
            }
        }
    }
    Some(())
}

fn read(rest: &mut &[u8]) -> Option<Exits> {
    let is_complete = byte(rest)? == 1;
    let mut sites = Vec::new();
    for _ in 0..u32::from_le_bytes(chunk(rest)?) {
        let at = Svma(u64::from_le_bytes(chunk(rest)?));
        let length = byte(rest)?;
        let kind = if byte(rest)? == 1 {
            LeavingKind::Jump
        } else {
            LeavingKind::Call
        };
        let to = match byte(rest)? {
            0 => Destination::Unknown,
            1 => Destination::Function(Svma(u64::from_le_bytes(chunk(rest)?))),
            2 => {
                let length = u32::from_le_bytes(chunk(rest)?);
                let (name, behind) = rest.split_at_checked(length as usize)?;
                *rest = behind;
                Destination::Import(str::from_utf8(name).ok()?.to_owned())
            }
            _ => return None,
        };
        sites.push(Leaving {
            at,
            length,
            kind,
            to,
        });
    }
    rest.is_empty().then_some(Exits { sites, is_complete })
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    chunk(rest).map(|[byte]| byte)
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    fn exits(start: u64) -> Rc<Exits> {
        let to = [
            Destination::Unknown,
            Destination::Function(Svma(start ^ 0xff)),
            Destination::Import(format!("import_{start}")),
        ];
        let sites = to.into_iter().zip(0..).map(|(to, number)| Leaving {
            at: Svma(start + number),
            length: 5,
            kind: if number == 1 {
                LeavingKind::Jump
            } else {
                LeavingKind::Call
            },
            to,
        });
        Rc::new(Exits {
            sites: sites.take(start as usize % 4).collect(),
            is_complete: start.is_multiple_of(3),
        })
    }

    #[test]
    fn functions_that_are_added_are_found_with_those_before() {
        let own = std::fs::read_link("/proc/self").unwrap();
        let directory = format!("proftool-kept-exits-{}", own.display());
        let directory = std::env::temp_dir().join(directory);
        let cache = Cache::open(&directory).unwrap();
        let functions = |starts: &[u64]| -> Vec<(u64, Rc<Exits>)> {
            starts.iter().map(|&start| (start, exits(start))).collect()
        };
        let none = KeptExits::of(None);
        assert!(none.with(&[]).is_none());
        let first = none.with(&functions(&[3, 9, 10])).unwrap();
        cache.store("exits", b"", &first).unwrap();
        let kept = KeptExits::of(cache.load("exits", b""));
        assert!(kept.with(&functions(&[9])).is_none(), "nothing is new");
        let second = kept.with(&functions(&[5, 9])).unwrap();
        cache.store("exits", b"", &second).unwrap();
        let kept = KeptExits::of(cache.load("exits", b""));
        for start in 0..12 {
            let found = kept.of_function(start);
            let wanted = [3, 5, 9, 10].contains(&start).then(|| exits(start));
            assert_eq!(found, wanted.as_deref().cloned(), "{start}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut bytes = Vec::new();
        write(&exits(7), &mut bytes).unwrap();
        assert_eq!(read(&mut &bytes[..]).as_ref(), Some(&*exits(7)));
        for place in 0..bytes.len() {
            assert_eq!(read(&mut &bytes[..place]), None);
            let mut changed = bytes.clone();
            changed[place] ^= 0x81;
            let _ = read(&mut &changed[..]);
        }
    }
}
