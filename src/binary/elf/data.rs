//! The bytes of a file's data, for those who look for what is no pointer by a relocation.

use super::slots::holds_pointers;
use crate::base::Svma;
use crate::binary::Binary;

/// A section of data.
#[derive(Debug)]
pub struct DataBytes {
    /// The address of the first byte.
    pub start: Svma,
    pub bytes: Vec<u8>,
}

impl Binary {
    /// The data that a program uses, in order of address: not what only the dynamic linker,
    /// unwinders and tracers know. What cannot be read is left out.
    pub fn data(&self) -> Vec<DataBytes> {
        // What could not be read is a problem of `data_pointers` already.
        let sections = self.elf.believed("data", &mut Vec::new(), |section| {
            section.is_data() && holds_pointers(section)
        });
        let read = sections.into_iter().filter_map(|section| {
            let bytes = { &self.elf.source }.read("data", section.offset, section.size);
            Some(DataBytes {
                start: Svma(self.elf.section_start(section)),
                bytes: bytes.ok()?,
            })
        });
        let mut data: Vec<DataBytes> = read.collect();
        data.sort_by_key(|section| section.start);
        data
    }

    /// The tables of slots, from one of which position-independent code of the large model counts
    /// its distances.
    pub fn slot_tables(&self) -> Vec<Svma> {
        let names: [&[u8]; 2] = [b".got.plt", b".got"];
        let tables = names.into_iter();
        tables.filter_map(|name| self.section_start(name)).collect()
    }
}
