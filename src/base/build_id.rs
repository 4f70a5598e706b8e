//! The build id: the checksum by which one build of a file is told from another.

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
    /// The id made of `bytes`; `None` when nothing but zeros is left or it is longer than 64.
    pub fn new(bytes: &[u8]) -> Option<BuildId> {
        let end = bytes.iter().rposition(|&b| b != 0)? + 1;
        (end <= 64).then(|| BuildId(bytes[..end].into()))
    }

    /// The bytes, without trailing zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
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
