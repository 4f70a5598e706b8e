//! The bytes of gmon.out files, as histograms and arcs of addresses.
//!
//! GNU: a header, then records in any order and number. Numbers are in the byte order and
//! addresses in the word size of the program.
//!
//! ```text
//!   "gmon"  version 4 (1)  spare 12
//!   0  histogram     low word, high word, buckets 4, rate 4, dimension 15, its letter 1,
//!                    then a count of 2 bytes for each bucket
//!   1  arc           from word, to word, count 4
//!   2  basic blocks  number 4, then (address word, count word) for each
//! ```
//!
//! 4.4BSD: one histogram, then arcs up to the end. `size` counts the header and the buckets.
//!
//! ```text
//!   low word, high word, size 4, version 4 (0x51879), rate 4, spare 12
//!   then buckets of 2 bytes, then arcs: from word, to word, count word
//! ```
//!
//! Several files of one program are added up: equal histograms bucket by bucket, as `gprof` does.

use super::super::Reason;
use crate::base::{CaveatKind, Caveats};

// Programs have one.
const HISTOGRAMS: usize = 4096;

const MAGIC: &[u8] = b"gmon";
const BSD_VERSION: u32 = 0x51879;
const GNU_HEADER: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) wide: bool,
    pub(super) big_endian: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Histogram {
    pub(super) low: u64,
    // The address behind the last one.
    pub(super) high: u64,
    pub(super) ticks: Vec<u64>,
}

impl Histogram {
    // The size of a bucket, in units of two bytes.
    pub(super) fn scale(&self) -> f64 {
        (self.high.saturating_sub(self.low) / 2) as f64 / self.ticks.len().max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArcCount {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gmon {
    // Ticks a second; `None` without a histogram.
    pub(super) rate: Option<u32>,
    // No two of them overlap.
    pub(super) histograms: Vec<Histogram>,
    // In the order of their records, those of one file after those of the other.
    pub(super) arcs: Vec<ArcCount>,
    // The number of arcs up to the end of each file.
    pub(super) arcs_up_to: Vec<usize>,
    // The number of counts of basic blocks, which were passed over.
    pub(super) blocks: u64,
}

pub(in crate::input) fn is_gmon(head: &[u8]) -> bool {
    let version = |at: usize, read: fn([u8; 4]) -> u32| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.is_some_and(|bytes| read(bytes) == BSD_VERSION)
    };
    head.starts_with(MAGIC)
        || [20, 12]
            .iter()
            .any(|&at| version(at, u32::from_le_bytes) || version(at, u32::from_be_bytes))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    shape: Shape,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    fn number(&mut self, length: usize) -> Option<u64> {
        let bytes = self.take(length)?;
        let join = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.shape.big_endian {
            bytes.iter().fold(0, join)
        } else {
            bytes.iter().rev().fold(0, join)
        })
    }

    fn u32(&mut self) -> Option<u32> {
        self.number(4).and_then(|number| u32::try_from(number).ok())
    }

    fn word(&mut self) -> Option<u64> {
        self.number(if self.shape.wide { 8 } else { 4 })
    }

    fn buckets(&mut self, number: usize) -> Option<Vec<u64>> {
        let big_endian = self.shape.big_endian;
        let bytes = self.take(number.checked_mul(2)?)?;
        let read = |pair: &[u8]| match (pair, big_endian) {
            (&[a, b], true) => u64::from(u16::from_be_bytes([a, b])),
            (&[a, b], false) => u64::from(u16::from_le_bytes([a, b])),
            _ => 0,
        };
        Some(bytes.chunks_exact(2).map(read).collect())
    }
}

impl Gmon {
    // What cannot be read becomes a caveat, in which `name` names the file. An error if its header
    // is not that of a gmon.out.
    pub(super) fn add(
        &mut self,
        bytes: &[u8],
        shape: Shape,
        name: &str,
        caveats: &mut Caveats,
    ) -> Result<(), Reason> {
        let mut cursor = Cursor {
            bytes,
            at: 0,
            shape,
        };
        let done = if bytes.starts_with(MAGIC) {
            cursor.at = MAGIC.len();
            let version = cursor.u32().ok_or(Reason::Gmon {
                problem: "its header is cut short".into(),
            })?;
            if version > 1 {
                let order = if version.swap_bytes() <= 1 {
                    ": the program has another byte order"
                } else {
                    ""
                };
                let text = format!("it has version {version}, expected 1{order}");
                return Err(Reason::Gmon { problem: text });
            }
            cursor.at = GNU_HEADER;
            self.gnu(&mut cursor, name, caveats)
        } else {
            self.bsd(&mut cursor, name, caveats)?
        };
        if done.is_none() {
            let text = format!("{name} at offset {:#x}", cursor.at);
            caveats.add_detail(CaveatKind::Truncated, 1, text);
        }
        self.arcs_up_to.push(self.arcs.len());
        Ok(())
    }

    // How places of calls are stated differs between files.
    pub(super) fn arcs_by_file(&self) -> impl Iterator<Item = &[ArcCount]> {
        let starts = std::iter::once(0).chain(self.arcs_up_to.iter().copied());
        let ends = self.arcs_up_to.iter().copied();
        starts
            .zip(ends)
            .filter_map(|(start, end)| self.arcs.get(start..end))
    }

    // `None` where the last record is cut short.
    fn gnu(&mut self, cursor: &mut Cursor, name: &str, caveats: &mut Caveats) -> Option<()> {
        if cursor.bytes.len() < GNU_HEADER {
            return None;
        }
        while cursor.at < cursor.bytes.len() {
            let start = cursor.at;
            let whole = match cursor.number(1)? {
                0 => self.histogram(cursor, start, name, caveats),
                1 => self.arc(cursor),
                2 => self.skip_blocks(cursor),
                tag => {
                    let text = format!(
                        "{name} at offset {start:#x}: tag {tag}, expected 0 to 2; the rest was not \
                         read"
                    );
                    caveats.add_detail(CaveatKind::Skipped, 1, text);
                    return Some(());
                }
            };
            if whole.is_none() {
                cursor.at = start;
                return None;
            }
        }
        Some(())
    }

    fn histogram(
        &mut self,
        cursor: &mut Cursor,
        start: usize,
        name: &str,
        caveats: &mut Caveats,
    ) -> Option<()> {
        let (low, high) = (cursor.word()?, cursor.word()?);
        let (number, rate) = (cursor.u32()?, cursor.u32()?);
        let dimension = cursor.take(16)?;
        let ticks = cursor.buckets(usize::try_from(number).ok()?)?;
        if !dimension.starts_with(b"seconds") {
            let text =
                format!("{name} at offset {start:#x}: a histogram that does not count seconds");
            caveats.add_detail(CaveatKind::Skipped, 1, text);
            return Some(());
        }
        let read = Histogram { low, high, ticks };
        if let Err(reason) = self.add_histogram(read, rate) {
            let text = format!("{name} at offset {start:#x}: a histogram {reason}");
            caveats.add_detail(CaveatKind::Skipped, 1, text);
        }
        Some(())
    }

    fn arc(&mut self, cursor: &mut Cursor) -> Option<()> {
        let (from, to) = (cursor.word()?, cursor.word()?);
        let count = u64::from(cursor.u32()?);
        self.arcs.push(ArcCount { from, to, count });
        Some(())
    }

    fn skip_blocks(&mut self, cursor: &mut Cursor) -> Option<()> {
        let number = usize::try_from(cursor.u32()?).ok()?;
        let pair = if cursor.shape.wide { 16 } else { 8 };
        cursor.take(number.checked_mul(pair)?)?;
        self.blocks = self.blocks.saturating_add(number as u64);
        Some(())
    }

    // `None` where the file is cut short.
    fn bsd(
        &mut self,
        cursor: &mut Cursor,
        name: &str,
        caveats: &mut Caveats,
    ) -> Result<Option<()>, Reason> {
        let mut header = || {
            let (low, high) = (cursor.word()?, cursor.word()?);
            let (size, version, rate) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
            cursor.take(12)?;
            (version == BSD_VERSION).then_some((low, high, size, rate))
        };
        let Some((low, high, size, rate)) = header() else {
            let text = "its header is not of this program's word size and byte order";
            return Err(Reason::Gmon {
                problem: text.into(),
            });
        };
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        // The stated size includes the header.
        let Some(bytes) = bytes.checked_sub(cursor.at) else {
            return Err(Reason::Gmon {
                problem: format!("its histogram has size {size}, less than its header"),
            });
        };
        let Some(ticks) = cursor.buckets(bytes / 2) else {
            return Ok(None);
        };
        if let Err(reason) = self.add_histogram(Histogram { low, high, ticks }, rate) {
            let text = format!("{name}: a histogram {reason}");
            caveats.add_detail(CaveatKind::Skipped, 1, text);
        }
        while cursor.at < cursor.bytes.len() {
            let mut arc = || {
                let (from, to, count) = (cursor.word()?, cursor.word()?, cursor.word()?);
                self.arcs.push(ArcCount { from, to, count });
                Some(())
            };
            if arc().is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    fn add_histogram(&mut self, read: Histogram, rate: u32) -> Result<(), &'static str> {
        if read.high <= read.low || read.ticks.is_empty() {
            return if read.ticks.iter().any(|&ticks| ticks > 0) {
                Err("over no addresses")
            } else {
                Ok(())
            };
        }
        if rate == 0 {
            return Err("of 0 ticks a second");
        }
        if self.rate.is_some_and(|first| first != rate) {
            return Err("with another number of ticks a second than the first");
        }
        let first = self.histograms.first().map(Histogram::scale);
        if first.is_some_and(|scale| (scale - read.scale()).abs() > 1e-6) {
            return Err("with buckets of another size than the first");
        }
        // Those that are known are in order and share no address.
        let place = self
            .histograms
            .partition_point(|known| known.high <= read.low);
        let met = self
            .histograms
            .get_mut(place)
            .filter(|known| known.low < read.high);
        if let Some(known) = met {
            if (known.low, known.high) != (read.low, read.high) {
                return Err("that overlaps another one");
            }
            if known.ticks.len() != read.ticks.len() {
                return Err("with buckets of another size than the first");
            }
            for (sum, ticks) in known.ticks.iter_mut().zip(&read.ticks) {
                *sum = sum.saturating_add(*ticks);
            }
            return Ok(());
        }
        if self.histograms.len() >= HISTOGRAMS {
            return Err("after as many as are read");
        }
        self.rate = Some(rate);
        self.histograms.insert(place, read);
        Ok(())
    }
}
