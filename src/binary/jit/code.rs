//! The machine code in a jitdump file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::dump::JitDump;
use crate::binary::{Error, Machine};
use crate::files::OpenedFile;

/// A piece of code: what a compiler made of a function at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitPiece {
    /// The place of its first byte in the file.
    pub place: u64,
    /// The number of bytes.
    pub size: u64,
    /// The address in memory that it was made for.
    pub start: u64,
}

/// A jitdump file with the bytes of its code.
#[derive(Debug)]
pub struct JitCode {
    dump: JitDump,
    source: Source,
    // The functions that began at an address; `None` where several did at different times.
    starts: FxHashMap<u64, Option<u64>>,
}

#[derive(Debug)]
enum Source {
    File(File),
    Memory(Arc<[u8]>),
}

impl JitCode {
    pub(in crate::binary) fn read_opened(opened: OpenedFile, path: &Path) -> Result<Self, Error> {
        let file = opened.file.try_clone().map_err(Error::at(path))?;
        let dump = JitDump::read_opened(opened, path, None)?;
        Ok(JitCode::of(dump, Source::File(file)))
    }

    /// Reads a jitdump that is in memory.
    ///
    /// # Errors
    /// As [`JitDump::parse`].
    pub fn parse(bytes: Arc<[u8]>) -> Result<Self, Error> {
        let dump = JitDump::parse(&bytes)?;
        Ok(JitCode::of(dump, Source::Memory(bytes)))
    }

    fn of(dump: JitDump, source: Source) -> Self {
        let mut starts: FxHashMap<u64, Option<u64>> = FxHashMap::default();
        for change in dump.changes() {
            let name = |place| dump.at(place).map(|frame| frame.name);
            let known = starts.entry(change.start).or_insert(Some(change.place));
            if known.is_some_and(|place| name(place) != name(change.place)) {
                *known = None;
            }
        }
        JitCode {
            dump,
            source,
            starts,
        }
    }

    /// The instruction set; `None` if it is not known here.
    pub fn machine(&self) -> Option<Machine> {
        self.dump.machine()
    }

    /// What the file says beyond the bytes.
    pub fn dump(&self) -> &JitDump {
        &self.dump
    }

    /// The piece of code that has this place in the file.
    pub fn piece(&self, place: u64) -> Option<JitPiece> {
        let (first, size) = self.dump.bounds(place)?;
        let mut loads = self.dump.changes().iter();
        // Where code was moved, the bytes in the file are those of the place that it was made for.
        let load = loads.find(|load| load.place == first && load.moved_from.is_none())?;
        Some(JitPiece {
            place: first,
            size,
            start: load.start,
        })
    }

    /// The bytes of a piece.
    ///
    /// # Errors
    /// When the file cannot be read, or no longer has these bytes.
    pub fn read(&self, piece: JitPiece) -> Result<Vec<u8>, Error> {
        const MOST: u64 = 64 << 20;
        let size = piece.size.min(MOST);
        let malformed = |error| Error::Malformed {
            problem: format!("its code cannot be read: {error}"),
        };
        let mut bytes = vec![0; size as usize];
        match &self.source {
            Source::File(file) => file.read_exact_at(&mut bytes, piece.place),
            Source::Memory(all) => {
                let rest = all.get(piece.place as usize..).unwrap_or_default();
                (&*rest).read_exact(&mut bytes)
            }
        }
        .map_err(malformed)?;
        Ok(bytes)
    }

    /// The function that begins at an address in memory, if it was the only one there at any time.
    pub fn starting_at(&self, address: u64) -> Option<&str> {
        let place = (*self.starts.get(&address)?)?;
        self.dump.at(place).map(|frame| frame.name)
    }
}
