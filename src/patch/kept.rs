//! The call sites of a file, kept from one start to the next: finding them takes tenths of a second
//! in a large program, and it is the same each time.

use super::sites::{FileSites, Found};
use crate::binary::{Binary, Error};
use crate::cache::{decode, encode};

const NAME: &str = "call-sites";

impl FileSites {
    /// The call sites of a file, as they were kept or found.
    pub(super) fn of(binary: Binary) -> Result<FileSites, Error> {
        let place = binary.place_to_keep(NAME);
        let contents = place.as_ref().and_then(|place| place.load());
        if let Some(found) = contents.and_then(|contents| read(contents.bytes())) {
            return Ok(FileSites { binary, found });
        }
        let file = FileSites::read(binary)?;
        if let Some((place, contents)) = place.zip(encode(&file.found)) {
            // It does not matter if that fails.
            let _ = place.store(&contents);
        }
        Ok(file)
    }
}

fn read(contents: &[u8]) -> Option<Found> {
    let found: Found = decode(contents)?;
    let is_sorted = found.sites.is_sorted_by_key(|site| site.row.at);
    is_sorted.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_found() {
        // This very program.
        let binary = Binary::open(std::path::Path::new("/proc/self/exe")).unwrap();
        let Ok(FileSites { found, .. }) = FileSites::read(binary) else {
            return;
        };
        let bytes = encode(&found).unwrap();
        let kept = read(&bytes).unwrap();
        assert_eq!(kept.sites.len(), found.sites.len());
        for (kept, found) in kept.sites.iter().zip(&found.sites) {
            assert_eq!(format!("{kept:?}"), format!("{found:?}"));
        }
        assert_eq!(kept.imports, found.imports);
        assert_eq!(kept.taken_imports, found.taken_imports);
        assert_eq!(kept.taken_starts, found.taken_starts);
        assert_eq!(kept.calls_otherwise, found.calls_otherwise);
        assert_eq!(kept.left_alone, found.left_alone);
        // A part of it is nothing.
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert!(read(&bytes[..length]).is_none());
        }
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
