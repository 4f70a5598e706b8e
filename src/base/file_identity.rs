//! What tells a file from others that have, or had, its path.

/// A file as the kernel names it with a mapping, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// What tells it from files that had the inode before; 0 where that is not known.
    pub generation: u32,
}

impl FileId {
    /// Whether another id may be of the same file, wherever its device is mounted: inodes and
    /// generations are the same, as far as they are known.
    ///
    /// The device proves nothing. Some file systems state one to programs that the kernel does not
    /// use, and it may have another number after a restart.
    pub fn may_be(self, other: FileId) -> bool {
        // An overlay may state the layer in the upper bits of an inode.
        let mask = if self.device == other.device {
            u64::MAX
        } else {
            u64::from(u32::MAX)
        };
        let generations = [self.generation, other.generation];
        (self.inode ^ other.inode) & mask == 0
            && (generations.contains(&0) || generations[0] == generations[1])
    }
}

/// A file at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Which file it is.
    pub id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970. Its owner can set that to any time.
    pub modified: i64,
    /// When it or its metadata were last changed, which nobody can set.
    pub changed: i64,
}

/// What a file consists of, which copies have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// The build ID that Go writes into its programs.
    GoBuildId(Box<[u8]>),
    /// A hash of all bytes (XXH3, 128 bits).
    Hash(u128),
}

impl FileContent {
    /// Finds Go's build ID in ELF notes of this machine's byte order.
    ///
    /// It consists of an action and a content, each hashed: `ACTION/…/CONTENT`. One without a slash
    /// was set by a user, and may be that of any number of builds.
    pub fn go_in_notes(notes: &[u8]) -> Option<FileContent> {
        const BUILD_ID: u32 = 4;
        let mut all = super::build_id::notes(notes, u32::from_ne_bytes);
        let (_, _, id) = all.find(|&(name, kind, _)| name == b"Go\0\0" && kind == BUILD_ID)?;
        let is_hashed = id.contains(&b'/');
        is_hashed.then(|| FileContent::GoBuildId(id.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_that_is_used_again_is_of_another_file() {
        let id = |device, inode, generation| FileId {
            device,
            inode,
            generation,
        };
        let ran = id((8, 1), 5, 70);
        assert!(ran.may_be(id((8, 1), 5, 70)));
        assert!(ran.may_be(id((8, 1), 5, 0)));
        assert!(ran.may_be(id((0, 33), 1 << 62 | 5, 0)));
        assert!(!ran.may_be(id((8, 1), 5, 71)));
        assert!(!ran.may_be(id((8, 1), 1 << 62 | 5, 0)));
        assert!(!ran.may_be(id((0, 33), 6, 0)));
    }

    fn note(id: &[u8]) -> Vec<u8> {
        let words = [4, id.len() as u32, 4].map(u32::to_ne_bytes).concat();
        [&words[..], b"Go\0\0", id].concat()
    }

    #[test]
    fn the_build_id_of_go_is_used_if_go_has_made_it() {
        let own = FileContent::GoBuildId(b"abc/defg".as_slice().into());
        assert_eq!(FileContent::go_in_notes(&note(b"abc/defg")), Some(own));
        assert_eq!(FileContent::go_in_notes(&note(b"v1.2.3.4")), None);
        assert_eq!(FileContent::go_in_notes(&note(b"")), None);
        assert_eq!(FileContent::go_in_notes(&note(b"abc/defg")[..20]), None);
    }
}
