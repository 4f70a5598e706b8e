//! The build ID: the checksum that distinguishes one build of a file from another.

use std::fmt;

/// The contents of an ELF file's `NT_GNU_BUILD_ID` note, at most 64 bytes (20 as a rule).
///
/// perf pads short ids with zeros to 20 bytes; trailing zeros are therefore not compared.
///
/// ```
/// use proftool::base::BuildId;
/// let id = BuildId::new(&[0xab, 0xcd]).unwrap();
/// assert_eq!(id.to_string(), "abcd");
/// assert_eq!(id, BuildId::new(&[0xab, 0xcd, 0, 0]).unwrap());
/// assert!(BuildId::new(&[0, 0]).is_none());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// The build ID made of `bytes`; `None` if they are all zeros or more than 64.
    pub fn new(bytes: &[u8]) -> Option<BuildId> {
        let end = bytes.iter().rposition(|&b| b != 0)? + 1;
        (end <= 64).then(|| BuildId(bytes[..end].into()))
    }

    /// The build id among the ELF notes of a file or of the kernel (`/sys/kernel/notes`), which
    /// are in this machine's byte order.
    ///
    /// ```c
    /// // name and desc are padded to 4
    /// struct { u32 namesz, descsz, type; char name[namesz]; u8 desc[descsz]; }
    /// ```
    pub fn in_notes(bytes: &[u8]) -> Option<BuildId> {
        BuildId::in_notes_of(bytes, u32::from_ne_bytes)
    }

    /// [`BuildId::in_notes`] for files of any byte order.
    pub(crate) fn in_notes_of(bytes: &[u8], number: fn([u8; 4]) -> u32) -> Option<BuildId> {
        const NT_GNU_BUILD_ID: u32 = 3;
        let mut all = notes(bytes, number);
        let found = all.find(|&(name, kind, _)| kind == NT_GNU_BUILD_ID && name == b"GNU\0");
        found.and_then(|(_, _, description)| BuildId::new(description))
    }

    /// The bytes, without trailing zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The notes in these bytes, as far as they are whole: the name, type and description of each.
pub(super) fn notes(
    mut bytes: &[u8],
    number: fn([u8; 4]) -> u32,
) -> impl Iterator<Item = (&[u8], u32, &[u8])> {
    std::iter::from_fn(move || {
        let (header, rest) = bytes.split_first_chunk::<12>()?;
        let (words, _) = header.as_chunks::<4>();
        let [name_size, size, kind] = *words else {
            return None;
        };
        let (name_size, size) = (number(name_size) as usize, number(size) as usize);
        let name = rest.get(..name_size)?;
        let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
        let description = rest.get(..size)?;
        // The last one may lack its padding.
        bytes = size
            .checked_next_multiple_of(4)
            .and_then(|padded| rest.get(padded..))
            .unwrap_or_default();
        Some((name, number(kind), description))
    })
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        note.extend((name.len() as u32).to_ne_bytes());
        note.extend((description.len() as u32).to_ne_bytes());
        note.extend(kind.to_ne_bytes());
        for part in [name, description] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let notes = [
            note(1, b"Xen\0", &[1, 2, 3, 4, 5]),
            note(3, b"GNU\0", &[0xcd; 20]),
        ]
        .concat();
        assert_eq!(BuildId::in_notes(&notes), BuildId::new(&[0xcd; 20]));
        assert_eq!(BuildId::in_notes(&notes[..40]), None);
        assert_eq!(BuildId::in_notes(&[0xff; 16]), None);
        assert_eq!(BuildId::in_notes(&[]), None);
    }
}
