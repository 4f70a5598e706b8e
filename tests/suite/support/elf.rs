//! Writes ELF files and debug information that no compiler would make.

use std::fs;
use std::io::Write;
use std::path::Path;

/// The flag of a compressed section.
pub const COMPRESSED: u64 = 1 << 11;

/// A section: its name, type, flags and address, and where its bytes are.
pub struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    at: (u64, u64),
    link: &'static str,
    entry: u64,
}

/// A 64-bit ELF file with code at 0x1000, which is its offset in the file as well.
pub struct Elf {
    file: Vec<u8>,
    sections: Vec<Section>,
}

impl Elf {
    /// A file with functions: name, start and size.
    pub fn with_functions(functions: &[(&str, u64, u64)]) -> Elf {
        let (mut symbols, mut strings) = (vec![0; 24], vec![0]);
        for (name, start, size) in functions {
            symbols.extend((strings.len() as u32).to_le_bytes());
            // A global function in section 1.
            symbols.extend([0x12, 0, 1, 0]);
            symbols.extend([start.to_le_bytes(), size.to_le_bytes()].concat());
            strings.extend(name.bytes().chain([0]));
        }
        Elf::with_table(&symbols, &strings)
    }

    /// A file with this table of symbols and these names.
    pub fn with_table(symbols: &[u8], strings: &[u8]) -> Elf {
        let mut elf = Elf {
            file: vec![0xc3; 0x2000],
            sections: Vec::new(),
        };
        elf.file[..0x1000].fill(0);
        elf.sections.push(Section {
            name: ".text",
            kind: 1,
            flags: 6,
            address: 0x1000,
            at: (0x1000, 0x1000),
            link: "",
            entry: 0,
        });
        // The code that symbols and debug information speak of may go on beyond the file.
        let mut elf = elf.with(".symtab", 2, 0, symbols);
        elf.sections[1].link = ".strtab";
        elf.sections[1].entry = 24;
        elf.with(".strtab", 3, 0, strings)
    }

    /// Adds a section with these bytes.
    pub fn section(self, name: &'static str, bytes: &[u8]) -> Elf {
        self.with(name, 1, 0, bytes)
    }

    /// The same, with a type and flags. One that is there already gets the new bytes.
    pub fn with(mut self, name: &'static str, kind: u32, flags: u64, bytes: &[u8]) -> Elf {
        let at = (self.file.len() as u64, bytes.len() as u64);
        self.file.extend(bytes);
        self.push(name, kind, flags, at);
        self
    }

    fn push(&mut self, name: &'static str, kind: u32, flags: u64, at: (u64, u64)) {
        self.sections.push(Section {
            name,
            kind,
            flags,
            address: 0,
            at,
            link: "",
            entry: 0,
        });
    }

    /// Adds a section that has the bytes of another one.
    pub fn sharing(mut self, name: &'static str, other: &str) -> Elf {
        let other = self
            .sections
            .iter()
            .find(|section| section.name == other)
            .unwrap();
        let (kind, flags, at) = (other.kind, other.flags, other.at);
        self.push(name, kind, flags, at);
        self
    }

    /// Moves a section, or adds one: its offset and size in the file, and the size of an entry.
    pub fn placed(mut self, name: &'static str, kind: u32, at: (u64, u64), entry: u64) -> Elf {
        match self
            .sections
            .iter_mut()
            .find(|section| section.name == name)
        {
            Some(section) => section.at = at,
            None => self.sections.push(Section {
                name,
                kind,
                flags: 0,
                address: 0,
                at,
                link: "",
                entry,
            }),
        }
        self
    }

    /// Writes the file.
    pub fn write(mut self, path: &Path) {
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let index = |name: &str| {
            self.sections
                .iter()
                .position(|section| section.name == name)
        };
        for section in &self.sections {
            headers.extend((names.len() as u32).to_le_bytes());
            headers.extend(section.kind.to_le_bytes());
            let (offset, size) = section.at;
            for word in [section.flags, section.address, offset, size] {
                headers.extend(word.to_le_bytes());
            }
            let link = index(section.link).map_or(0, |at| at as u32 + 1);
            headers.extend([link.to_le_bytes(), [0; 4]].concat());
            headers.extend([1_u64.to_le_bytes(), section.entry.to_le_bytes()].concat());
            names.extend(section.name.bytes().chain([0]));
        }
        let last = names.len() as u32;
        names.extend(b".shstrtab\0");
        headers.extend([last.to_le_bytes(), 3_u32.to_le_bytes()].concat());
        for word in [0, 0, self.file.len() as u64, names.len() as u64, 0, 1, 0] {
            headers.extend(word.to_le_bytes());
        }
        self.file.extend(names);
        let table = self.file.len() as u64;
        self.file.extend(headers);
        let count = self.sections.len() as u16 + 2;
        // One segment, at the start of the file where nothing else is.
        self.file[0x40..0x44].copy_from_slice(&1_u32.to_le_bytes());
        self.file[0x44..0x48].copy_from_slice(&5_u32.to_le_bytes());
        for (at, word) in [
            (0x48, 0_u64),
            (0x50, 0),
            (0x60, 0x10_0000),
            (0x68, 0x10_0000),
        ] {
            self.file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        for (at, word) in [(0x20, 64_u64), (0x28, table)] {
            self.file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let halves = [
            (0x10, 3_u16),
            (0x12, 62),
            (0x34, 64),
            (0x36, 56),
            (0x38, 1),
            (0x3a, 64),
            (0x3c, count),
            (0x3e, count - 1),
        ];
        for (at, half) in halves {
            self.file[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        fs::write(path, self.file).unwrap();
    }
}

/// The contents of a section that is compressed with zlib, with its header.
pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut section = [1_u64, bytes.len() as u64, 1]
        .map(u64::to_le_bytes)
        .concat();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut section, flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
    section
}

/// Abbreviations: code, tag, children, then names and forms of attributes.
pub const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // unit: name, low_pc, high_pc
    2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // function
    3, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // function with entries inside
    4, 0x2e, 0, 0x03, 0x08, 0x20, 0x0b, 0, 0, // function that is only inlined
    5, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b, 0,
    0, // inlined call
    6, 0x2e, 0, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0, // function named in .debug_str
    7, 0x2e, 0, 0x03, 0x08, 0x55, 0x17, 0, 0, // function with DW_AT_ranges
    0,
];

/// One unit of DWARF 4.
pub struct Dwarf {
    info: Vec<u8>,
    base: u64,
}

impl Dwarf {
    /// A unit whose code starts there.
    pub fn unit(base: u64) -> Dwarf {
        let mut info = vec![0; 4];
        info.extend(4_u16.to_le_bytes());
        info.extend([0, 0, 0, 0, 8, 1]);
        info.extend(b"a.c\0");
        info.extend([base.to_le_bytes(), 0x10_0000_u64.to_le_bytes()].concat());
        Dwarf { info, base }
    }

    fn place(&mut self, offset: u64, size: u64) {
        self.info.extend((self.base + offset).to_le_bytes());
        self.info.extend(size.to_le_bytes());
    }

    fn named(&mut self, code: u8, name: &str) {
        self.info.push(code);
        self.info.extend(name.bytes().chain([0]));
    }

    /// Adds a function.
    pub fn function(mut self, name: &str, offset: u64, size: u64) -> Dwarf {
        self.named(2, name);
        self.place(offset, size);
        self
    }

    /// Adds a function whose name stands at an offset in `.debug_str`.
    pub fn function_named_at(mut self, name: u32, offset: u64, size: u64) -> Dwarf {
        self.info.push(6);
        self.info.extend(name.to_le_bytes());
        self.place(offset, size);
        self
    }

    /// Adds a function with a list of ranges.
    pub fn function_with_ranges(mut self, list: u32) -> Dwarf {
        self.named(7, "f");
        self.info.extend(list.to_le_bytes());
        self
    }

    /// Adds a function with calls that are inlined in one another over all of its code.
    pub fn nest(mut self, name: &str, size: u64, depth: usize) -> Dwarf {
        let mut origins = Vec::new();
        for level in 0..depth {
            origins.push(self.info.len() as u32);
            self.named(4, &format!("inner{level}"));
            self.info.push(1);
        }
        self.named(3, name);
        self.place(0, size);
        for origin in &origins {
            self.info.push(5);
            self.info.extend(origin.to_le_bytes());
            self.place(0, size);
            self.info.extend([1, 7]);
        }
        self.info.extend(vec![0; depth + 1]);
        self
    }

    /// `.debug_info` and `.debug_abbrev`.
    pub fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.info.push(0);
        let length = self.info.len() as u32 - 4;
        self.info[..4].copy_from_slice(&length.to_le_bytes());
        (self.info, ABBREVIATIONS.to_vec())
    }
}
