//! The table itself: its header, the functions it lists, and the numbers it has for each address.

use gimli::RunTimeEndian;

use crate::binary::elf::fields::Fields;

// The most steps of one function's list of numbers; more than the largest functions have.
const STEP_LIMIT: usize = 1 << 16;

// Flags of a function: nothing called it; it sets the stack pointer to what it likes.
const TOP_FRAME: u8 = 1;
const WRITES_STACK_POINTER: u8 = 2;

/// What the stack is like at an address of a Go program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoStack {
    /// How far it has grown since the function was entered, in bytes; `None` in a function that
    /// changes to another stack.
    pub growth: Option<u32>,
    /// Whether nothing called the function: a goroutine or a thread starts with it.
    pub is_outermost: bool,
    /// How many bytes of the table were read for it.
    pub work: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) enum Version {
    // Go 1.2 to 1.15: one table, in which all offsets are counted from its start.
    Go2,
    // Go 1.16 and 1.17: a table for each subject.
    Go16,
    // Go 1.18 and later: functions are counted from where the code starts. From 1.20 on the magic
    // number is another one, and what is read here is the same.
    Go18,
}

#[derive(Debug)]
pub(in crate::binary) struct Table {
    bytes: Vec<u8>,
    endian: RunTimeEndian,
    pub(super) version: Version,
    // The smallest length of an instruction: addresses are counted in it.
    quantum: u8,
    wide: bool,
    // Whether the record of a function has the line where it starts: since Go 1.20.
    has_start_line: bool,
    // Where the code starts from which functions are counted; 0 where the table does not say.
    pub(super) text: u64,
    count: usize,
    // Where the names are, the lists of numbers, and the list of functions.
    names: usize,
    numbers: usize,
    functions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) struct Listed {
    pub(in crate::binary) start: u64,
    // The first address of the next function.
    pub(in crate::binary) end: u64,
    // Where its record is among the bytes.
    record: usize,
}

// Whether a table of some version starts with these bytes.
pub(super) fn is_header(f: Fields<'_>) -> bool {
    version(f).is_some()
}

fn version(f: Fields<'_>) -> Option<Version> {
    let version = match f.u32(0)? {
        0xffff_fffb => Version::Go2,
        0xffff_fffa => Version::Go16,
        0xffff_fff0 | 0xffff_fff1 => Version::Go18,
        _ => return None,
    };
    let is_sound = f.u16(4)? == 0 && matches!(f.u8(6)?, 1 | 2 | 4) && matches!(f.u8(7)?, 4 | 8);
    is_sound.then_some(version)
}

impl Table {
    // `None` where the header is of no known version, or its tables do not lie in it.
    pub(in crate::binary) fn read(bytes: Vec<u8>, endian: RunTimeEndian) -> Option<Table> {
        let f = Fields {
            bytes: &bytes,
            endian,
            wide: bytes.get(7) == Some(&8),
        };
        let version = version(f)?;
        let word = if f.wide { 8 } else { 4 };
        let field = |index: usize| usize::try_from(f.word(8 + index * word)?).ok();
        let (text, names, numbers, functions) = match version {
            Version::Go2 => (0, 0, 0, 8 + word),
            Version::Go16 => (0, field(2)?, field(5)?, field(6)?),
            Version::Go18 => (f.word(8 + 2 * word)?, field(3)?, field(6)?, field(7)?),
        };
        let mut table = Table {
            endian,
            version,
            quantum: f.u8(6)?,
            wide: f.wide,
            has_start_line: f.u32(0)? == 0xffff_fff1,
            text,
            count: field(0)?,
            names,
            numbers,
            functions,
            bytes,
        };
        // Its last entry is half of one: the end of the last function.
        let stride = table.stride();
        let room = table.bytes.len().checked_sub(functions)?;
        let needed = table.count.checked_mul(stride)?.checked_add(stride / 2)?;
        let fits = needed <= room && names.max(numbers) <= table.bytes.len();
        table.bytes.shrink_to_fit();
        (fits && table.count > 0).then_some(table)
    }

    fn fields(&self) -> Fields<'_> {
        Fields {
            bytes: &self.bytes,
            endian: self.endian,
            wide: self.wide,
        }
    }

    pub(in crate::binary) fn count(&self) -> usize {
        self.count
    }

    // The bytes of an entry of the list of functions.
    fn stride(&self) -> usize {
        match self.version {
            Version::Go18 => 8,
            _ if self.wide => 16,
            _ => 8,
        }
    }

    // The address at which the function at an index starts; behind the last one, where that ends.
    pub(super) fn start(&self, index: usize) -> Option<u64> {
        let at = index
            .checked_mul(self.stride())?
            .checked_add(self.functions)?;
        let f = self.fields();
        if self.version == Version::Go18 {
            self.text.checked_add(f.u32(at)?.into())
        } else {
            f.word(at)
        }
    }

    // `None` where it has no code.
    pub(in crate::binary) fn function(&self, index: usize) -> Option<Listed> {
        let (start, end) = (self.start(index)?, self.start(index.checked_add(1)?)?);
        let stride = self.stride();
        let at = index
            .checked_mul(stride)?
            .checked_add(self.functions)?
            .checked_add(stride / 2)?;
        let f = self.fields();
        let offset = match self.version {
            Version::Go18 => f.u32(at)?.into(),
            _ => f.word(at)?,
        };
        let base = match self.version {
            Version::Go2 => 0,
            _ => self.functions,
        };
        let record = usize::try_from(offset).ok()?.checked_add(base)?;
        (start < end).then_some(Listed { start, end, record })
    }

    pub(in crate::binary) fn at(&self, address: u64) -> Option<Listed> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.start(middle)? <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = self.function(low.checked_sub(1)?)?;
        (found.start <= address && address < found.end).then_some(found)
    }

    // The number at an index of a function's record, behind its address.
    fn number(&self, function: Listed, index: usize) -> Option<u32> {
        let address = if self.wide && self.version != Version::Go18 {
            8
        } else {
            4
        };
        let at = function.record.checked_add(address + 4 * index)?;
        self.fields().u32(at)
    }

    // Counted from [`Table::names`].
    pub(in crate::binary) fn name_offset(&self, function: Listed) -> Option<u32> {
        self.number(function, 0)
    }

    // Each ended by a zero.
    pub(in crate::binary) fn names(&self) -> &[u8] {
        // The next table begins behind them; in the first version they are between everything else.
        let end = match self.version {
            Version::Go2 => None,
            Version::Go16 => self.fields().word(8 + 3 * self.word()),
            Version::Go18 => self.fields().word(8 + 4 * self.word()),
        };
        let end = end.and_then(|end| usize::try_from(end).ok());
        let all = self.bytes.get(self.names..);
        let part = end.and_then(|end| self.bytes.get(self.names..end));
        part.or(all).unwrap_or_default()
    }

    fn word(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    // `None` where the table does not say. Only the versions since Go 1.18 mark functions that
    // change to another stack.
    pub(in crate::binary) fn stack_at(&self, address: u64) -> Option<GoStack> {
        let function = self.at(address)?;
        let flags = match self.version {
            Version::Go18 if self.has_start_line => self.number(function, 9)?,
            Version::Go18 => self.number(function, 8)?,
            Version::Go2 | Version::Go16 => return None,
        };
        // Four bytes in order: kind, flags, nothing, number of lists.
        let flags = match self.endian {
            RunTimeEndian::Little => flags.to_le_bytes(),
            RunTimeEndian::Big => flags.to_be_bytes(),
        };
        let is_outermost = flags[1] & TOP_FRAME != 0;
        if flags[1] & WRITES_STACK_POINTER != 0 && !is_outermost {
            return Some(GoStack {
                growth: None,
                is_outermost,
                work: 1,
            });
        }
        // 0 stands for no list: code that was not made by Go has none.
        let list = self.number(function, 3).filter(|&offset| offset != 0)?;
        let mut at = self.numbers.checked_add(list as usize)?;
        let first = at;
        let mut value: i32 = -1;
        let mut end = function.start;
        for step in 0..STEP_LIMIT {
            let change = self.variable(&mut at)?;
            if change == 0 && step > 0 {
                return None;
            }
            // Zigzag: the lowest bit is the sign.
            value = value.wrapping_add((change >> 1).cast_signed() ^ -(change & 1).cast_signed());
            let length = u64::from(self.variable(&mut at)?);
            end = end.checked_add(length.checked_mul(self.quantum.into())?)?;
            if address < end {
                return Some(GoStack {
                    growth: Some(u32::try_from(value).ok()?),
                    is_outermost,
                    work: at.saturating_sub(first),
                });
            }
        }
        None
    }

    // One to five bytes, seven bits in each, the lowest ones first.
    fn variable(&self, at: &mut usize) -> Option<u32> {
        let mut value: u32 = 0;
        for shift in (0..35).step_by(7) {
            let byte = *self.bytes.get(*at)?;
            *at += 1;
            value |= u32::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
