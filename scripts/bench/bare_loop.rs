//! bare_loop FILE [symbols]: the least work that reading a recording can be, to measure readers against.
//!
//! Reads a perf.data file of the usual kind (not piped, not compressed, this machine's byte order)
//! in one pass, walks the headers of its records, and hashes the bytes of every sample. Prints the
//! numbers of records and samples, and the hash.
//!
//! With `symbols` it does the least that a profiler must: it counts equal stacks of a process as one,
//! and looks each distinct user address up once in the symbols of the file that is mapped there. It
//! counts every function once per stack, and prints the ten with the most samples. It knows no
//! inlined calls, kernel symbols, build ids or debug files, and believes every stack.
//!
//! ```text
//! file header, in 64-bit words          record header
//!   0 magic "PERFILE2"                    u32 type    9: a sample
//!   1 size of this header                 u16 misc
//!   2 size of an attr                     u16 size    with this header
//!   3, 4 attrs: offset, size
//!   5, 6 data: offset, size
//! ```

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Seek, SeekFrom};

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use rustc_hash::FxBuildHasher;

const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;

/// Fields of a sample before the chain, by their bits in an attr's `sample_type`; then the chain's.
const IDENTIFIER: u64 = 1 << 16;
const BEFORE_CHAIN: [u64; 9] = [IDENTIFIER, 1, TID, 4, 8, 1 << 6, 1 << 9, 1 << 7, 1 << 8];
const TID: u64 = 2;
const CHAIN: u64 = 1 << 5;

fn main() -> Result<(), Error> {
    let mut args = std::env::args_os().skip(1);
    let usage = || Error::new(ErrorKind::InvalidInput, "usage: bare_loop FILE [symbols]");
    let path = args.next().ok_or_else(usage)?;
    let mut profile = args.next().map(|_| Profile::default());
    let mut file = File::open(path)?;

    let mut header = [0u8; 56];
    file.read_exact(&mut header)?;
    if !header.starts_with(b"PERFILE2") {
        return Err(Error::new(ErrorKind::InvalidData, "no perf.data file"));
    }
    if let Some(profile) = &mut profile {
        file.seek(SeekFrom::Start(word(&header, 24)))?;
        let mut attr = [0u8; 32];
        file.read_exact(&mut attr)?;
        profile.fields = word(&attr, 24);
    }
    file.seek(SeekFrom::Start(word(&header, 40)))?;
    let mut data = BufReader::with_capacity(1 << 20, file.take(word(&header, 48)));

    let (mut records, mut samples, mut hash) = (0u64, 0u64, 0u64);
    let mut record_header = [0u8; 8];
    let mut body = vec![0u8; 1 << 16];
    while data.read_exact(&mut record_header).is_ok() {
        let [t0, t1, t2, t3, _, _, s0, s1] = record_header;
        let size = usize::from(u16::from_le_bytes([s0, s1]));
        let kind = u32::from_le_bytes([t0, t1, t2, t3]);
        let body = &mut body[..size.saturating_sub(8)];
        data.read_exact(body)?;
        records += 1;
        samples += u64::from(kind == SAMPLE);
        if let Some(profile) = &mut profile {
            profile.record(kind, body);
        } else if kind == SAMPLE {
            for chunk in body.chunks_exact(8) {
                hash = (hash.rotate_left(5) ^ word(chunk, 0)).wrapping_mul(0x517c_c1b7_2722_0a95);
            }
        }
    }
    println!("{records} records, {samples} samples, {hash:016x}");
    if let Some(profile) = profile {
        profile.print();
    }
    Ok(())
}

/// The 64-bit number at a place; 0 past the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).map(<[u8; 8]>::try_from);
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.unwrap_or_default()))
}

/// The 32-bit number at a place; 0 past the end.
fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).map(<[u8; 4]>::try_from);
    bytes.map_or(0, |bytes| u32::from_le_bytes(bytes.unwrap_or_default()))
}

/// What is mapped in a process: by start, the end, the offset in the file, and the file.
type Maps = BTreeMap<u64, (u64, u64, usize)>;

#[derive(Default)]
struct Profile {
    /// `sample_type` of the first attr: one for all, in the usual recording.
    fields: u64,
    files: Vec<String>,
    file_numbers: HashMap<String, usize>,
    processes: HashMap<u32, Maps, FxBuildHasher>,
    /// Samples by process and user part of the stack.
    stacks: HashMap<u32, HashMap<Box<[u64]>, u64, FxBuildHasher>, FxBuildHasher>,
}

impl Profile {
    fn record(&mut self, kind: u32, body: &[u8]) {
        match kind {
            FORK => {
                let (child, parent) = (half(body, 0), half(body, 4));
                if let Some(maps) = self.processes.get(&parent).cloned()
                    && child != parent
                {
                    self.processes.insert(child, maps);
                }
            }
            MMAP2 => {
                let name = body.get(64..).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                let files = &mut self.files;
                let file = *self.file_numbers.entry(name).or_insert_with_key(|name| {
                    files.push(name.clone());
                    files.len() - 1
                });
                let (start, size, offset) = (word(body, 8), word(body, 16), word(body, 24));
                let maps = self.processes.entry(half(body, 0)).or_default();
                maps.insert(start, (start.saturating_add(size), offset, file));
            }
            SAMPLE => self.sample(body),
            _ => {}
        }
    }

    fn sample(&mut self, body: &[u8]) {
        let before = |fields: &[u64]| {
            8 * fields
                .iter()
                .filter(|field| self.fields & **field != 0)
                .count()
        };
        let chain = before(&BEFORE_CHAIN);
        // Without the words that come before a thread's numbers.
        let pid = half(body, before(&[IDENTIFIER, 1]));
        if self.fields & CHAIN == 0 {
            return;
        }
        let length = word(body, chain) as usize;
        let words = body.get(chain + 8..).unwrap_or_default().chunks_exact(8);
        let words = words.take(length).map(|bytes| word(bytes, 0));
        let user = words.filter(|address| *address < 1 << 63);
        let user: Box<[u64]> = user.collect();
        *self.stacks.entry(pid).or_default().entry(user).or_default() += 1;
    }

    fn print(self) {
        let mut symbols: HashMap<usize, Symbols> = HashMap::new();
        let mut known = HashMap::<(u32, u64), Option<(usize, usize)>, FxBuildHasher>::default();
        let mut totals: HashMap<(usize, usize), u64, FxBuildHasher> = HashMap::default();
        let mut seen = HashSet::<(usize, usize), FxBuildHasher>::default();
        let mut stacks = 0;
        for (pid, distinct) in &self.stacks {
            let Some(maps) = self.processes.get(pid) else {
                continue;
            };
            stacks += distinct.len();
            for (stack, count) in distinct {
                seen.clear();
                for address in stack {
                    let function = *known.entry((*pid, *address)).or_insert_with(|| {
                        let (start, (end, offset, file)) = maps.range(..=*address).next_back()?;
                        let inside = (*address < *end).then(|| *address - start + offset)?;
                        let path = &self.files[*file];
                        let symbols = symbols.entry(*file).or_insert_with(|| Symbols::of(path));
                        Some((*file, symbols.find(inside)?))
                    });
                    if let Some(function) = function
                        && seen.insert(function)
                    {
                        *totals.entry(function).or_default() += count;
                    }
                }
            }
        }
        println!("{stacks} distinct stacks, {} addresses", known.len());
        let mut totals: Vec<_> = totals
            .into_iter()
            .map(|(function, count)| (count, function))
            .collect();
        totals.sort_unstable_by(|one, other| other.cmp(one));
        for (count, (file, function)) in totals.iter().take(10) {
            println!("{count:>9} {}", symbols[file].functions[*function].1);
        }
    }
}

/// Functions of one file by address.
#[derive(Default)]
struct Symbols {
    /// Ranges of the file, and the address that each has in it.
    segments: Vec<(u64, u64, u64)>,
    functions: Vec<(u64, String)>,
}

impl Symbols {
    fn of(path: &str) -> Symbols {
        let Ok(file) = File::open(path) else {
            return Symbols::default();
        };
        let bytes = ReadCache::new(file);
        let Ok(file) = object::File::parse(&bytes) else {
            return Symbols::default();
        };
        let segments = file.segments().map(|segment| {
            let (start, size) = segment.file_range();
            (start, start + size, segment.address())
        });
        let functions = file.symbols().chain(file.dynamic_symbols());
        let functions =
            functions.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let functions =
            functions.map(|symbol| (symbol.address(), symbol.name().unwrap_or("?").to_owned()));
        let mut functions: Vec<_> = functions.collect();
        functions.sort_unstable();
        functions.dedup_by_key(|function| function.0);
        Symbols {
            segments: segments.collect(),
            functions,
        }
    }

    fn find(&self, offset: u64) -> Option<usize> {
        let mut segments = self.segments.iter();
        let (start, _, address) =
            segments.find(|(start, end, _)| (*start..*end).contains(&offset))?;
        let address = offset - start + address;
        (self
            .functions
            .partition_point(|(start, _)| *start <= address))
        .checked_sub(1)
    }
}
