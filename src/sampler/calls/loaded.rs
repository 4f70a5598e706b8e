//! What a program has loaded when it begins to run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::files::read_list;
use crate::patch::{CodeMapping, FileIdentity, LoadedImage};
use crate::perfdata::CallCounts;
use crate::sampler::targets::mapped::MAPPINGS;
use crate::sampler::targets::mapped::mappings;

const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Auxiliary {
    pub(super) entry: u64,
    /// Where the dynamic linker is loaded; 0 if there is none.
    pub(super) loader: u64,
}

impl Auxiliary {
    pub(super) fn of(pid: i32) -> io::Result<Auxiliary> {
        Ok(Auxiliary::read(&fs::read(format!("/proc/{pid}/auxv"))?))
    }

    fn read(bytes: &[u8]) -> Auxiliary {
        let mut found = Auxiliary::default();
        let (pairs, _) = bytes.as_chunks::<16>();
        for pair in pairs {
            let number = u128::from_le_bytes(*pair);
            let (kind, value) = (number as u64, (number >> 64) as u64);
            match kind {
                AT_BASE => found.loader = value,
                AT_ENTRY => found.entry = value,
                _ => {}
            }
        }
        found
    }
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The files that are mapped, in order of address.
    pub(super) images: Vec<LoadedImage>,
    pub(super) taken: Vec<(u64, u64)>,
    pub(super) shared: Vec<SharedMapping>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedMapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) identity: FileIdentity,
}

impl Memory {
    pub(super) fn known(&self) -> Vec<(FileIdentity, u64)> {
        let images = self.images.iter();
        images.map(|image| (image.identity, image.span.0)).collect()
    }

    pub(super) fn take(&mut self, start: u64, end: u64) {
        let place = self.taken.partition_point(|&(from, _)| from < start);
        self.taken.insert(place, (start, end));
    }

    pub(super) fn shares(&self, identity: FileIdentity) -> bool {
        self.shared.iter().any(|shared| shared.identity == identity)
    }

    pub(super) fn of(pid: i32, auxiliary: Auxiliary) -> io::Result<Memory> {
        let list = read_list(Path::new(&format!("/proc/{pid}/maps")), MAPPINGS, b'\n')?;
        if list.is_cut {
            let reason = "it has too many mappings: a list of them takes more than 32 MiB";
            return Err(io::Error::other(reason));
        }
        Ok(Memory::read(&list.bytes, auxiliary))
    }

    fn read(list: &[u8], auxiliary: Auxiliary) -> Memory {
        let mut memory = Memory::default();
        for mapped in mappings(list) {
            let (start, end) = (mapped.start, mapped.end);
            memory.taken.push((start, end));
            let identity = FileIdentity {
                device: mapped.device,
                inode: mapped.inode,
            };
            if mapped.path == CallCounts::MAPPING.as_bytes() {
                memory.shared.push(SharedMapping {
                    start,
                    end,
                    offset: mapped.offset,
                    identity,
                });
                continue;
            }
            if mapped.inode == 0 || !mapped.path.starts_with(b"/") {
                continue;
            }
            let path = PathBuf::from(OsStr::from_bytes(mapped.path));
            let mut images = memory.images.iter();
            let known = images.position(|image| image.identity == identity && image.path == path);
            let place = known.unwrap_or(memory.images.len());
            if known.is_none() {
                memory.images.push(LoadedImage {
                    path,
                    identity,
                    is_program: false,
                    is_loader: false,
                    mappings: Vec::new(),
                    span: (start, end),
                });
            }
            let Some(image) = memory.images.get_mut(place) else {
                continue;
            };
            image.span = (image.span.0.min(start), image.span.1.max(end));
            image.is_loader |= start == auxiliary.loader;
            if mapped.executable() {
                image.is_program |= (start..end).contains(&auxiliary.entry);
                let offset = mapped.offset;
                image.mappings.push(CodeMapping { start, end, offset });
            }
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_where_its_entry_is() {
        let list = b"555555554000-555555555000 r--p 00000000 fe:00 1 /bin/app\n\
            555555555000-555555557000 r-xp 00001000 fe:00 1 /bin/app\n\
            7ffff7d00000-7ffff7d01000 r-xp 00000000 00:00 0 \n\
            7ffff7e00000-7ffff7e01000 r-xp 00000000 fe:00 2 /lib/ld.so\n";
        let auxiliary = Auxiliary {
            entry: 0x5555_5555_5100,
            loader: 0x7fff_f7e0_0000,
        };
        let memory = Memory::read(list, auxiliary);
        assert_eq!(memory.taken.len(), 4);
        let [app, loader] = &memory.images[..] else {
            panic!("{:?}", memory.images);
        };
        assert!(app.is_program && !app.is_loader && loader.is_loader);
        assert_eq!(app.span, (0x5555_5555_4000, 0x5555_5555_7000));
        assert_eq!(app.mappings[0].offset, 0x1000);
    }

    #[test]
    fn the_auxiliary_vector_is_pairs_of_words() {
        let pairs: [u64; 6] = [AT_ENTRY, 0x1000, AT_BASE, 0x7000, 0, 0];
        let bytes: Vec<u8> = pairs.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = Auxiliary::read(&bytes);
        assert_eq!((found.entry, found.loader), (0x1000, 0x7000));
    }
}
