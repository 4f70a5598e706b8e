//! The pprof format, in both directions: the messages of `profile.proto`, compressed with gzip.
//!
//! ```text
//!   Profile ─┬─ sample_type    what the values of a sample are: samples/count, cpu/nanoseconds
//!            ├─ sample         location ids, leaf first; values; labels
//!            ├─ mapping        a module
//!            ├─ location       an address: the function and those inlined there, innermost first
//!            ├─ function       names
//!            └─ string_table   texts; the first is empty
//! ```
//!
//! From `proto/profile.proto` of <https://github.com/google/pprof> (the format has no version
//! number; this is the state of 2024, without `column` and `doc_url`).

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// What the values at one place of every sample are.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ValueType {
    /// What is counted, as a string.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// Its unit, as a string: `count`, `nanoseconds`.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack with its values.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Sample {
    /// The ids of locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// A value for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// What else is known of the sample.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A key with a text or a number.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Label {
    /// The key, as a string.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// The text, as a string; 0 for a number.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The number.
    #[prost(int64, tag = "3")]
    pub num: i64,
    /// The unit of the number, as a string.
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

/// A module in the memory of the process.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Mapping {
    /// The id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The first address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// The address after the last.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where the first byte is in the file.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The path of the file, as a string.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// The build ID in hexadecimal, as a string.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether its locations have functions.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether they have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether they have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether they have inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Location {
    /// The id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The mapping, or 0.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address, or 0.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The functions there, innermost first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
    /// Whether several functions have this code.
    #[prost(bool, tag = "5")]
    pub is_folded: bool,
}

/// A function and the line in it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line, or 0.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Function {
    /// The id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The name for people, as a string.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// The name in the symbol table, as a string.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// The source file, as a string.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// The line of its declaration, or 0.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

/// A whole file.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Profile {
    /// What the values of samples are.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// The samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// The modules.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// The places on stacks.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// The functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// The texts, which need not be UTF-8. The first is empty.
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub string_table: Vec<Vec<u8>>,
    /// The time of the recording in nanoseconds since 1970, or 0.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// How long it took in nanoseconds, or 0.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What the period counts.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// The number of events between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Texts for people, as strings.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The kind of the sample type to show first, as a string.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

impl Profile {
    /// Reads an uncompressed profile; `None` if the bytes are not one, or if its messages would
    /// take more than `limit` bytes of memory.
    pub fn read(bytes: &[u8], limit: u64) -> Option<Profile> {
        (memory(bytes)? <= limit).then(|| Profile::decode(bytes).ok())?
    }

    /// Writes the profile compressed: the same bytes for the same profile, at any time.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // No file name, time or operating system in the header: they would differ between equal
        // runs.
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(out, Compression::new(6));
        gzip.write_all(&self.encode_to_vec())?;
        gzip.finish()?.flush()
    }
}

/// The most memory that the messages of a profile can take, by the lengths of the outermost ones;
/// `None` if they are broken.
fn memory(mut bytes: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    while !bytes.is_empty() {
        let (tag, kind) = decode_key(&mut bytes).ok()?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, tag, &mut bytes, DecodeContext::default()).ok()?;
            continue;
        }
        let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
        bytes = bytes.get(length..)?;
        // Two bytes may be a label of 32, one byte a number of 8; vectors have room for twice as
        // much.
        sum = sum.saturating_add(2 * (72 + 16 * length as u64));
    }
    Some(sum)
}
