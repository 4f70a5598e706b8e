//! Section headers of an ELF file.

use object::elf;

#[derive(Clone, Debug)]
pub(in crate::binary) struct Section {
    pub(in crate::binary) name: Box<[u8]>,
    pub(in crate::binary) kind: u32,
    pub(in crate::binary) flags: u64,
    pub(in crate::binary) address: u64,
    pub(in crate::binary) offset: u64,
    pub(in crate::binary) size: u64,
    pub(in crate::binary) link: u32,
    pub(in crate::binary) info: u32,
    pub(in crate::binary) entry_size: u64,
    // Whether it is a `.zdebug_*`, which is kept under the name `.debug_*`.
    pub(in crate::binary) is_old_compressed: bool,
}

impl Section {
    pub(in crate::binary) fn is_code(&self) -> bool {
        let wanted = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
        self.flags & wanted == wanted
    }

    // Stubs of imported functions.
    pub(in crate::binary) fn is_linkage_table(&self) -> bool {
        let names: [&[u8]; 4] = [b".plt", b".plt.sec", b".plt.got", b".iplt"];
        names.contains(&&*self.name)
    }

    pub(in crate::binary) fn is_compressed(&self) -> bool {
        self.is_old_compressed || self.flags & elf::SHF_COMPRESSED.0 != 0
    }

    // Bytes that are loaded and are no instructions.
    pub(in crate::binary) fn is_data(&self) -> bool {
        let loaded = self.flags & elf::SHF_ALLOC.0 != 0;
        loaded && !self.is_code() && self.kind != elf::SHT_NOBITS.0
    }
}
