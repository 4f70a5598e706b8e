//! Tables built by hand, one for each version, in a file of each kind.

use gimli::RunTimeEndian::{self, Big, Little};
use object::elf;

use super::table::{GoStack, Table};
use crate::base::Svma;
use crate::binary::Binary;

const TEXT: u64 = 0x40_1000;
const TABLE: u64 = 0x50_0000;
const DATA: u64 = 0x60_0000;

// Where functions start, counted from the text, with their names and flags; the last is only an
// end.
const FUNCTIONS: [(u64, &str, u8); 4] = [
    (0, "runtime.text", 0),
    (0x20, "main.(*T).Spin", 0),
    (0x50, "main.Map[...]", 2),
    (0x60, "runtime.goexit", 1),
];
const END: u64 = 0x70;

// Changes of the stack: none for 4 bytes, 24 for 10, 200 for 15, none for 3. The first number is
// counted from -1.
const NUMBERS: [u8; 10] = [2, 4, 48, 10, 0xe0, 0x02, 15, 0x8f, 0x03, 3];

#[derive(Clone, Copy, Debug)]
struct Form {
    magic: u32,
    wide: bool,
    endian: RunTimeEndian,
}

const MAGICS: [u32; 4] = [0xffff_fffb, 0xffff_fffa, 0xffff_fff0, 0xffff_fff1];

fn forms() -> impl Iterator<Item = Form> {
    MAGICS.into_iter().flat_map(|magic| {
        [(true, Little), (false, Little), (true, Big), (false, Big)]
            .into_iter()
            .map(move |(wide, endian)| Form {
                magic,
                wide,
                endian,
            })
    })
}

impl Form {
    fn put(self, into: &mut Vec<u8>, size: usize, value: u64) {
        match self.endian {
            Little => into.extend(&value.to_le_bytes()[..size]),
            Big => into.extend(&value.to_be_bytes()[8 - size..]),
        }
    }

    fn word(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    // A table of [`FUNCTIONS`], which states this start of the text.
    fn table(self, text: u64) -> Vec<u8> {
        let (word, is_old) = (self.word(), self.magic == 0xffff_fffb);
        let is_new = self.magic <= 0xffff_fff1;
        let mut names = vec![0];
        let mut numbers = vec![0];
        numbers.extend(NUMBERS);
        numbers.push(0);
        let name_offsets = FUNCTIONS.map(|(_, name, _)| {
            let at = names.len();
            names.extend(name.bytes().chain([0]));
            at as u64
        });
        let head = match self.magic {
            0xffff_fffb => 8 + word,
            0xffff_fffa => 8 + 7 * word,
            _ => 8 + 8 * word,
        };
        let entry = if is_new { 8 } else { 2 * word };
        let list = FUNCTIONS.len() * entry + entry / 2;
        // The first version has its list in front, the others behind everything else.
        let (list_at, names_at) = if is_old {
            (head, head + list)
        } else {
            (head + names.len() + numbers.len(), head)
        };
        let numbers_at = names_at + names.len();
        let mut records = Vec::new();
        let records_at = if is_old {
            numbers_at + numbers.len()
        } else {
            list
        };
        let base = |offset: usize| if is_old { offset as u64 } else { 0 };
        let address = |start: u64| if is_new { start } else { TEXT + start };
        let mut functions = Vec::new();
        for ((start, _, flags), name) in FUNCTIONS.into_iter().zip(name_offsets) {
            let size = if is_new { 4 } else { word };
            self.put(&mut functions, size, address(start));
            self.put(&mut functions, size, (records_at + records.len()) as u64);
            self.put(&mut records, size, address(start));
            self.put(&mut records, 4, name + base(names_at));
            self.put(&mut records, 8, 0);
            self.put(&mut records, 4, 1 + base(numbers_at));
            let rest = if self.magic == 0xffff_fff1 { 20 } else { 16 };
            records.extend(vec![0; rest]);
            records.extend([0, flags, 0, 0]);
        }
        self.put(&mut functions, entry / 2, address(END));
        let mut table = Vec::new();
        self.put(&mut table, 4, self.magic.into());
        table.extend([0, 0, 1, word as u8]);
        let count = FUNCTIONS.len() as u64;
        let at = |offset: usize| offset as u64;
        let fields = match self.magic {
            0xffff_fffb => vec![count],
            0xffff_fffa => vec![
                count,
                0,
                at(names_at),
                at(numbers_at),
                at(numbers_at),
                at(numbers_at),
                at(list_at),
            ],
            _ => vec![
                count,
                0,
                text,
                at(names_at),
                at(numbers_at),
                at(numbers_at),
                at(numbers_at),
                at(list_at),
            ],
        };
        for field in fields {
            self.put(&mut table, word, field);
        }
        assert_eq!(table.len(), head);
        if is_old {
            table.extend([functions, names, numbers, records].concat());
        } else {
            table.extend([names, numbers, functions, records].concat());
        }
        table
    }

    // What is in `moved` the dynamic linker writes: where, and what.
    fn program(self, section: &str, table: &[u8], data: &[u64], moved: &[(u64, u64)]) -> Binary {
        let mut words = Vec::new();
        for &value in data {
            self.put(&mut words, self.word(), value);
        }
        let mut relocations = Vec::new();
        for &(at, to) in moved {
            self.put(&mut relocations, 8, at);
            self.put(&mut relocations, 8, elf::R_X86_64_RELATIVE.0.into());
            self.put(&mut relocations, 8, to);
        }
        let (alloc, exec, write) = (2, 4, 1);
        let names = [
            section,
            ".text",
            ".data",
            ".rela.dyn",
            ".note.go.buildid",
            ".names",
        ];
        let mut strings = vec![0];
        let offsets = names.map(|name| {
            let at = strings.len();
            strings.extend(name.bytes().chain([0]));
            at as u64
        });
        let code = vec![0x90; 0x100];
        let sections: [(u32, u64, u64, &[u8]); 6] = [
            (1, alloc, TABLE, table),
            (1, alloc | exec, TEXT, &code),
            (1, alloc | write, DATA, &words),
            (4, alloc, 0x70_0000, &relocations),
            (1, alloc, 0x71_0000, b"id"),
            (3, 0, 0, &strings),
        ];
        let (head, entry) = if self.wide { (64, 64) } else { (52, 40) };
        let mut contents = Vec::new();
        let mut headers = Vec::new();
        for ((kind, flags, address, bytes), name) in sections.iter().zip(offsets) {
            self.put(&mut headers, 4, name);
            self.put(&mut headers, 4, (*kind).into());
            for field in [
                *flags,
                *address,
                (head + contents.len()) as u64,
                bytes.len() as u64,
            ] {
                self.put(&mut headers, self.word(), field);
            }
            headers.resize(headers.len().next_multiple_of(entry), 0);
            contents.extend_from_slice(bytes);
        }
        let kind = if moved.is_empty() {
            elf::ET_EXEC.0
        } else {
            elf::ET_DYN.0
        };
        let machine = if self.wide {
            elf::EM_X86_64.0
        } else {
            elf::EM_386.0
        };
        let mut file = b"\x7fELF".to_vec();
        file.extend([
            1 + u8::from(self.wide),
            1 + u8::from(self.endian == Big),
            1,
            0,
        ]);
        file.resize(16, 0);
        self.put(&mut file, 2, kind.into());
        self.put(&mut file, 2, machine.into());
        self.put(&mut file, 4, 1);
        for field in [TEXT, 0, (head + contents.len()) as u64] {
            self.put(&mut file, self.word(), field);
        }
        self.put(&mut file, 4, 0);
        for half in [head, 0, 0, entry, sections.len(), sections.len() - 1] {
            self.put(&mut file, 2, half as u64);
        }
        assert_eq!(file.len(), head);
        file.extend(contents);
        file.extend(headers);
        Binary::from_bytes(file).unwrap()
    }
}

fn named(binary: &Binary) -> Vec<(u64, u64, String)> {
    let functions = binary.functions().iter();
    functions
        .map(|f| {
            (
                f.start.0,
                f.end().0,
                binary.function_name(f).unwrap_or_default().into_owned(),
            )
        })
        .collect()
}

// What [`FUNCTIONS`] are in a program.
fn expected() -> Vec<(u64, u64, String)> {
    let ends = FUNCTIONS.iter().skip(1).map(|f| f.0).chain([END]);
    let functions = FUNCTIONS.iter().zip(ends);
    functions
        .map(|(&(start, name, _), end)| (TEXT + start, TEXT + end, name.to_owned()))
        .collect()
}

#[test]
fn functions_have_their_names_in_every_version_width_and_byte_order() {
    for form in forms() {
        for section in [".gopclntab", ".data.rel.ro.gopclntab"] {
            let binary = form.program(section, &form.table(TEXT), &[0], &[]);
            assert_eq!(named(&binary), expected(), "{form:?}");
            assert_eq!(binary.problems(), [""; 0], "{form:?}");
            assert!(binary.has_symbols());
        }
    }
}

#[test]
fn a_table_that_was_merged_into_other_data_is_found() {
    for form in forms() {
        let mut merged = vec![0x11; 64];
        merged.extend(form.table(TEXT));
        let binary = form.program(".data.rel.ro", &merged, &[0], &[]);
        assert_eq!(named(&binary), expected(), "{form:?}");
    }
}

#[test]
fn addresses_that_are_left_to_the_dynamic_linker_are_its() {
    let form = |magic| Form {
        magic,
        wide: true,
        endian: Little,
    };
    let new = form(0xffff_fff0);
    let moved = [(TABLE + 24, TEXT)];
    let binary = new.program(".data.rel.ro.gopclntab", &new.table(0), &[0], &moved);
    assert_eq!(named(&binary), expected());
    // Before Go 1.18 each function has an address of its own.
    let old = form(0xffff_fffa);
    let mut table = old.table(0);
    let list = table.len() - FUNCTIONS.len() * (8 + 4 + 8 + 4 + 16 + 4) - 72;
    let mut moved = Vec::new();
    for (index, expected) in expected().iter().enumerate() {
        let at = list + 16 * index;
        assert_eq!(table[at..at + 8], expected.0.to_le_bytes());
        table[at..at + 8].fill(0);
        moved.push((TABLE + at as u64, expected.0));
    }
    let binary = old.program(".data.rel.ro.gopclntab", &table, &[0], &moved);
    assert_eq!(named(&binary), expected());
}

// What the runtime knows of the program, behind other data.
fn module(first: u64, last: u64, text: u64) -> Vec<u64> {
    let mut words = vec![7, TABLE, 9, TABLE];
    words.resize(3 + 20, 1);
    words.extend([first, last, text, 0]);
    words
}

#[test]
fn a_table_without_the_start_of_the_text_has_it_from_the_runtime() {
    for form in forms().filter(|form| form.magic == 0xffff_fff1) {
        let table = form.table(0);
        let right = form.program(".gopclntab", &table, &module(TEXT, TEXT + END, TEXT), &[]);
        assert_eq!(named(&right), expected(), "{form:?}");
        for (first, last) in [(TEXT + 1, TEXT + END), (TEXT, TEXT)] {
            let wrong = form.program(".gopclntab", &table, &module(first, last, TEXT), &[]);
            assert_eq!(named(&wrong), [], "{form:?}");
            let problems = wrong.problems().join("; ");
            assert!(problems.contains("where the code starts"), "{problems}");
        }
    }
}

#[test]
fn the_growth_of_the_stack_is_read_up_to_the_end_of_its_list() {
    for form in forms() {
        let table = Table::read(form.table(TEXT), form.endian).unwrap();
        let spin = TEXT + 0x20;
        let at = |offset| table.stack_at(spin + offset).map(|stack| stack.growth);
        if form.magic > 0xffff_fff1 {
            assert_eq!(
                at(0),
                None,
                "functions that change stacks are not marked yet"
            );
            continue;
        }
        for (offset, growth) in [
            (0, 0),
            (3, 0),
            (4, 24),
            (13, 24),
            (14, 200),
            (28, 200),
            (29, 0),
        ] {
            assert_eq!(at(offset), Some(Some(growth)), "{form:?} {offset}");
        }
        assert_eq!(at(32), None, "behind the list");
        let changing = table.stack_at(TEXT + 0x50).map(|stack| stack.growth);
        assert_eq!(changing, Some(None), "it sets the stack pointer");
        let outermost = |stack: GoStack| stack.is_outermost;
        assert_eq!(table.stack_at(TEXT + 0x60).map(outermost), Some(true));
        assert_eq!(table.stack_at(TEXT + END), None);
        assert_eq!(table.stack_at(TEXT - 1), None);
    }
}

#[test]
fn names_that_share_their_bytes_are_limited_together() {
    let form = Form {
        magic: 0xffff_fff1,
        wide: true,
        endian: Little,
    };
    let (count, long): (u32, usize) = (4096, 64 << 10);
    let names = 72;
    let list = names + long;
    let record = list + 8 * count as usize + 8;
    let mut table = Vec::new();
    form.put(&mut table, 4, form.magic.into());
    table.extend([0, 0, 1, 8]);
    let offsets = [names, list, list, list, list];
    for field in [u64::from(count), 0, TEXT]
        .into_iter()
        .chain(offsets.map(|at| at as u64))
    {
        form.put(&mut table, 8, field);
    }
    table.resize(list - 1, b'x');
    table.push(0);
    for index in 0..=count {
        // Addresses do not go beyond the code for the first 256 of them.
        form.put(&mut table, 4, index.into());
        form.put(&mut table, 4, (record - list) as u64);
    }
    table.resize(record + 48, 0);
    let binary = form.program(".gopclntab", &table, &[0], &[]);
    let total: usize = named(&binary).iter().map(|(_, _, name)| name.len()).sum();
    assert!(total > long && total <= 16 * long + (1 << 20), "{total}");
    assert!(binary.problems().join("").contains("too long together"));
}

#[test]
fn damaged_tables_leave_what_is_sound() {
    for form in forms() {
        let sound = form.table(TEXT);
        for length in 0..sound.len() {
            let binary = form.program(".gopclntab", &sound[..length], &[0], &[]);
            let _ = (named(&binary), binary.problems());
        }
        for at in 0..sound.len() {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let mut damaged = sound.clone();
                damaged[at] = byte;
                let binary = form.program(".gopclntab", &damaged, &[0], &[]);
                for (start, end, _) in named(&binary) {
                    assert!(TEXT <= start && start < end && end <= TEXT + 0x100);
                }
                if let Some(frames) = binary.go_frames() {
                    for address in TEXT..TEXT + END {
                        let _ = frames.at(Svma(address));
                    }
                }
            }
        }
    }
}
