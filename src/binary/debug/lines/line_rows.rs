//! The line rows of a unit: which file and line an address comes from.

use std::num::NonZeroU64;
use std::sync::OnceLock;

use gimli::{IncompleteLineProgram, LineProgramHeader, UnitRef};

use super::{Slice, names, text};
use crate::binary::budget::Account;

// Rows that are taken from the account at a time.
const PORTION: u64 = 1024;
// Longer paths name no file on Linux (PATH_MAX) and are left out.
const PATH_LIMIT: usize = 4096;
// Copies of a path in memory.
const PATH_COPIES: u64 = 3;

// What the rows say of an address and those behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRow {
    address: u64,
    pub(super) file: u64,
    // 0 when the code comes from no line.
    pub(super) line: u32,
}

// Rows in order of address without a gap.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    begin: u64,
    end: u64,
    first: usize,
    behind: usize,
}

#[derive(Debug)]
pub(super) struct Rows<'b> {
    header: LineProgramHeader<Slice<'b>>,
    paths: Vec<OnceLock<Box<str>>>,
    sequences: Vec<Sequence>,
    rows: Vec<LineRow>,
}

impl<'b> Rows<'b> {
    // Runs the line program, up to the first instruction that cannot be read.
    pub(super) fn read(program: IncompleteLineProgram<Slice<'b>>, account: &Account) -> Rows<'b> {
        // Many units may share one program, which may make no rows however long it runs.
        if !account.take(program.header().raw_program_buf().len() as u64) {
            return Rows {
                header: program.header().clone(),
                paths: Vec::new(),
                sequences: Vec::new(),
                rows: Vec::new(),
            };
        }
        let mut machine = program.rows();
        let mut rows: Vec<LineRow> = Vec::new();
        let mut sequences = Vec::new();
        let mut first = 0;
        let mut portion = 0;
        while let Ok(Some((_, row))) = machine.next_row() {
            let address = row.address();
            if row.end_sequence() {
                if let Some(begin) = rows.get(first).map(|row| row.address)
                    && begin < address
                {
                    sequences.push(Sequence {
                        begin,
                        end: address,
                        first,
                        behind: rows.len(),
                    });
                } else {
                    rows.truncate(first);
                }
                first = rows.len();
                continue;
            }
            let row = LineRow {
                address,
                file: row.file_index(),
                line: row
                    .line()
                    .map_or(0, NonZeroU64::get)
                    .try_into()
                    .unwrap_or(0),
            };
            match rows.get_mut(first..).and_then(<[LineRow]>::last_mut) {
                Some(last) if last.address == address => *last = row,
                _ => {
                    if portion == 0 {
                        if !account.take_entries(PORTION) {
                            break;
                        }
                        portion = PORTION;
                    }
                    portion = portion.saturating_sub(1);
                    rows.push(row);
                }
            }
        }
        rows.truncate(first);
        rows.shrink_to_fit();
        sequences.sort_unstable_by_key(|sequence| (sequence.begin, sequence.first));
        let header = machine.header().clone();
        let files = header.file_names().len().saturating_add(1);
        Rows {
            header,
            paths: vec![OnceLock::new(); files],
            sequences,
            rows,
        }
    }

    pub(super) fn at(&self, address: u64) -> Option<LineRow> {
        let after = self.sequences.partition_point(|s| s.begin <= address);
        let sequence = self.sequences.get(after.checked_sub(1)?)?;
        if address >= sequence.end {
            return None;
        }
        let rows = self.rows.get(sequence.first..sequence.behind)?;
        let after = rows.partition_point(|row| row.address <= address);
        rows.get(after.checked_sub(1)?).copied()
    }

    // The ranges of the sequences, as (begin, end).
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sequences.iter().map(|s| (s.begin, s.end))
    }

    pub(super) fn path(
        &self,
        file: u64,
        unit: UnitRef<'_, Slice<'b>>,
        account: &Account,
    ) -> Option<&str> {
        let cell = self.paths.get(usize::try_from(file).ok()?)?;
        let path = || -> Box<str> {
            let path = path(&self.header, file, unit).unwrap_or_default();
            let bytes = (path.len() as u64).saturating_mul(PATH_COPIES);
            if account.take(bytes) {
                path.into()
            } else {
                Box::default()
            }
        };
        self.header.file(file)?;
        Some(cell.get_or_init(path))
            .map(|path| &**path)
            .filter(|path| !path.is_empty())
    }
}

// The directory of the compilation, the directory of the file and its name, as far as the latter
// are relative.
pub(super) fn path<'b>(
    header: &LineProgramHeader<Slice<'b>>,
    file: u64,
    unit: UnitRef<'_, Slice<'b>>,
) -> Option<String> {
    let entry = header.file(file)?;
    let mut path = String::new();
    let mut add = |part: Option<&[u8]>| {
        let part = part.filter(|part| part.len() <= PATH_LIMIT)?;
        join(&mut path, &text(part));
        (path.len() <= PATH_LIMIT).then_some(())
    };
    if let Some(directory) = unit.comp_dir {
        add(Some(directory.slice()))?;
    }
    // Directory 0 is that of the compilation.
    if entry.directory_index() != 0 {
        let directory = entry
            .directory(header)
            .and_then(|directory| names::string(directory, unit));
        add(Some(directory.unwrap_or_default()))?;
    }
    add(Some(
        names::string(entry.path_name(), unit).unwrap_or_default(),
    ))?;
    Some(path)
}

// An absolute part replaces the path.
pub(super) fn join(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
        path.push('/');
    }
    path.push_str(part);
}
