//! Writing a perf.data file.
//!
//! ```text
//! 0     header, 104 bytes: magic, header size, attr size,
//!       attrs {offset, size}, data {offset, size}, event types {0, 0} (unused since 2011; while
//!       the file is written {UNFINISHED, 0}), feature bits [u64; 4]
//! 104   the ids of event 0, of event 1, …         u64 each
//!       event 0 {attr, 128 bytes; ids {offset, size}}, event 1 …
//!       data: records as the kernel made them, or COMPRESSED records with these inside;
//!       FINISHED_ROUND after every pass over the kernel's buffers
//!       feature table: {offset, size} of each feature, in order of number
//!       feature bodies
//! ```
//!
//! The writer keeps the file readable all the time: the feature bits are set last, and
//! [`Writer::sync`] updates the data size in the header. A recorder that is killed leaves a file
//! that has everything up to its last `sync`, lacks the features, and says that it is unfinished.
//! (perf leaves a data size of 0 for that, which other readers take for no data. A file without
//! features may be whole: other programs write such.)

use std::io::{self, Seek, SeekFrom, Write};

use super::Feature;
use super::header::UNFINISHED;
use super::split::{self, NATIVE};

mod compressor;
mod records;
mod sections;

pub use records::{
    FINISHED_ROUND, KernelMapping, UserMapping, blocked_record, comm_record, count_record,
    lost_samples_record, thread_record, time_record,
};
pub use sections::{BuildIdEntry, FeatureSections, TracepointFormats};

use compressor::Compressor;

/// The size of the attrs that are written: `PERF_ATTR_SIZE_VER7`. Older versions of perf refuse
/// any attr that is larger than the one they were built with, so this does not grow by itself.
pub const ATTR_SIZE: usize = 128;

const HEADER_SIZE: u64 = 104;
const SECTION_SIZE: u64 = 16;
const ATTR_ENTRY_SIZE: u64 = ATTR_SIZE as u64 + SECTION_SIZE;
const DATA_SIZE_AT: u64 = 48;
const EVENT_TYPES_AT: u64 = 56;

/// An event as the file describes it.
#[derive(Clone, Debug)]
pub struct WriterEvent {
    /// Its name, as the user gave it.
    pub name: String,
    /// The `perf_event_attr` with which it was opened, in this machine's byte order.
    pub attr: [u8; ATTR_SIZE],
    /// The ids that the kernel gave it, one a processor; records name their event by them.
    pub ids: Vec<u64>,
}

#[cfg(feature = "record")]
impl WriterEvent {
    pub(crate) fn settings(&self) -> super::Attr {
        // It is as long as an attr has to be, so there is nothing to fail.
        super::Attr::parse(&self.attr, NATIVE).unwrap_or_default()
    }
}

/// A perf.data file being written. See the module's page for the layout.
///
/// ```
/// use proftool::perfdata::writer::{FeatureSections, Writer};
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &[]).unwrap();
/// writer.append(&[68, 0, 0, 0, 0, 0, 8, 0]).unwrap();
/// assert_eq!(writer.finish(&FeatureSections::default()).unwrap(), 104 + 8);
/// assert!(writer.into_inner().into_inner().starts_with(b"PERFILE2"));
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    data_start: u64,
    data_size: u64,
    synced_size: u64,
    compressor: Option<Compressor>,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a file: writes the header and the events at the start of `out`.
    pub fn new(mut out: W, events: &[WriterEvent]) -> io::Result<Writer<W>> {
        let ids: u64 = events.iter().map(|event| event.ids.len() as u64).sum();
        let attrs_start = HEADER_SIZE + ids * 8;
        let attrs_size = events.len() as u64 * ATTR_ENTRY_SIZE;
        let data_start = attrs_start + attrs_size;

        let mut head = Vec::with_capacity(data_start as usize);
        head.extend(b"PERFILE2");
        for number in [
            HEADER_SIZE,
            ATTR_ENTRY_SIZE,
            attrs_start,
            attrs_size,
            data_start,
            0,          // the data's size, kept by `sync`
            UNFINISHED, // event types
            0,
            0, // feature bits, set by `finish`
            0,
            0,
            0,
        ] {
            head.extend(number.to_ne_bytes());
        }
        for event in events {
            head.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
        }
        let mut ids_start = HEADER_SIZE;
        for event in events {
            let size = event.ids.len() as u64 * 8;
            head.extend(event.attr);
            head.extend(ids_start.to_ne_bytes());
            head.extend(size.to_ne_bytes());
            ids_start += size;
        }
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&head)?;
        Ok(Writer {
            out,
            data_start,
            data_size: 0,
            synced_size: 0,
            compressor: None,
        })
    }

    /// From now on compresses what is given to [`Writer::append_drained`], at this level of zstd (1
    /// to 22).
    ///
    /// # Errors
    ///
    /// If zstd has no such level or no memory.
    pub fn compress(&mut self, level: u8) -> io::Result<()> {
        self.compressor = Some(Compressor::new(level)?);
        Ok(())
    }

    /// Appends whole records out of the kernel's buffers, compressed if that was asked for.
    ///
    /// # Errors
    ///
    /// As of [`Writer::append`].
    pub fn append_drained(&mut self, records: &[u8]) -> io::Result<()> {
        let Some(compressor) = &mut self.compressor else {
            return self.append(records);
        };
        let (out, data_size) = (&mut self.out, &mut self.data_size);
        compressor.compress(records, &mut |record| {
            out.write_all(record)?;
            *data_size += record.len() as u64;
            Ok(())
        })
    }

    /// Appends whole records.
    ///
    /// # Errors
    ///
    /// Those of `out`. What was written before stays readable, including whole records of this
    /// call: a partly written record never counts as data.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < records.len() {
            let error = match self.out.write(&records[written..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    written += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.data_size += whole_records(&records[..written]);
            return Err(error);
        }
        self.data_size += records.len() as u64;
        Ok(())
    }

    /// Ends a pass over all of the kernel's buffers: readers put in order of time what came
    /// before, knowing that nothing earlier than the pass before can follow.
    pub fn finish_round(&mut self) -> io::Result<()> {
        self.append(&FINISHED_ROUND)
    }

    /// Updates the data size in the header.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.synced_size == self.data_size {
            return Ok(());
        }
        self.out.seek(SeekFrom::Start(DATA_SIZE_AT))?;
        self.out.write_all(&self.data_size.to_ne_bytes())?;
        self.out.seek(SeekFrom::Start(self.data_end()))?;
        self.synced_size = self.data_size;
        Ok(())
    }

    /// The bytes of records so far.
    pub fn data_size(&self) -> u64 {
        self.data_size
    }

    /// The bytes of the file so far: its head and its records.
    pub fn size(&self) -> u64 {
        self.data_end()
    }

    /// The maximum number of bytes that [`Writer::append_drained`] adds to the file for this number
    /// of bytes.
    pub fn most_appended(&self, bytes: u64) -> u64 {
        match self.compressor {
            Some(_) => Compressor::most_written(bytes),
            None => bytes,
        }
    }

    /// Ends the file with its features, and returns its size in bytes.
    ///
    /// # Errors
    ///
    /// Those of `out`. The records stay readable: the features count only when all are written.
    pub fn finish(&mut self, features: &FeatureSections) -> io::Result<u64> {
        self.sync()?;
        let mut features = features.clone();
        if let Some(compressor) = &self.compressor {
            features.compressed(compressor.level(), compressor.sizes(), Compressor::BLOCK);
        }
        let mut offset = self.data_end() + features.len() as u64 * SECTION_SIZE;
        let mut tail = Vec::new();
        let mut bits = [0u64; 4];
        for (Feature(bit), body) in features.iter() {
            tail.extend(offset.to_ne_bytes());
            tail.extend((body.len() as u64).to_ne_bytes());
            offset += body.len() as u64;
            bits[usize::from(bit / 64)] |= 1 << (bit % 64);
        }
        tail.extend(features.iter().flat_map(|(_, body)| body));
        self.out.write_all(&tail)?;
        // No event types, which ends the mark UNFINISHED, and the feature bits behind them.
        self.out.seek(SeekFrom::Start(EVENT_TYPES_AT))?;
        let end_of_header = [0, 0, bits[0], bits[1], bits[2], bits[3]];
        self.out
            .write_all(&end_of_header.map(u64::to_ne_bytes).concat())?;
        self.out.flush()?;
        Ok(offset)
    }

    /// Returns what was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn data_end(&self) -> u64 {
        self.data_start + self.data_size
    }
}

fn whole_records(bytes: &[u8]) -> u64 {
    let mut at = 0;
    while let Some(size) = split::record_size(&bytes[at..], NATIVE) {
        at += size;
    }
    at as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn u64_at(file: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(file[at..at + 8].try_into().unwrap())
    }

    fn event(ids: &[u64]) -> WriterEvent {
        WriterEvent {
            name: "cpu-clock".into(),
            attr: [7; ATTR_SIZE],
            ids: ids.to_vec(),
        }
    }

    #[test]
    fn ids_are_written_before_the_attrs_that_point_to_them() {
        let writer = Writer::new(Cursor::new(Vec::new()), &[event(&[5, 6]), event(&[9])]).unwrap();
        let file = writer.into_inner().into_inner();
        assert_eq!(u64_at(&file, 24), 104 + 24, "attrs begin after the ids");
        assert_eq!(u64_at(&file, 32), 2 * 144);
        assert_eq!(u64_at(&file, 40), 104 + 24 + 288, "data begins after attrs");
        let second = 104 + 24 + 144 + 128;
        assert_eq!(u64_at(&file, second), 104 + 16);
        assert_eq!(u64_at(&file, second + 8), 8);
        assert_eq!(u64_at(&file, 104 + 16), 9);
    }

    #[test]
    fn the_data_size_is_true_after_sync_and_only_then() {
        let mut writer = Writer::new(Cursor::new(Vec::new()), &[event(&[1])]).unwrap();
        writer.append(&[0; 48]).unwrap();
        assert_eq!(u64_at(writer.out.get_ref(), 48), 0);
        writer.finish_round().unwrap();
        writer.sync().unwrap();
        assert_eq!(u64_at(writer.out.get_ref(), 48), 56);
        writer.append(&[0; 8]).unwrap();
        writer.finish(&FeatureSections::default()).unwrap();
        let file = writer.into_inner().into_inner();
        assert_eq!(u64_at(&file, 48), 64);
        assert_eq!(file.len(), 104 + 8 + 144 + 64);
    }

    #[test]
    fn a_file_is_marked_as_unfinished_until_it_is_finished() {
        let mut writer = Writer::new(Cursor::new(Vec::new()), &[event(&[1])]).unwrap();
        writer.append(&FINISHED_ROUND).unwrap();
        writer.sync().unwrap();
        let unfinished = |file: &[u8]| {
            let reader = crate::perfdata::Reader::from_bytes(file.to_vec()).unwrap();
            let kinds = reader.caveats().iter().map(|it| (it.kind, it.count));
            kinds.collect::<Vec<_>>()
        };
        let killed = unfinished(writer.out.get_ref());
        assert_eq!(killed, [(crate::base::CaveatKind::Unfinished, 1)]);
        writer.finish(&FeatureSections::default()).unwrap();
        assert_eq!(unfinished(writer.out.get_ref()), []);
        let event_types = u64_at(writer.out.get_ref(), EVENT_TYPES_AT as usize);
        assert_eq!(event_types, 0, "as perf writes it");
    }

    #[test]
    fn features_follow_the_data_in_order_of_number() {
        let mut features = FeatureSections::default();
        features.text(Feature::ARCH, "x86_64");
        features.total_memory(1 << 20);
        features.text(Feature::HOSTNAME, "here");
        let mut writer = Writer::new(Cursor::new(Vec::new()), &[]).unwrap();
        let size = writer.finish(&features).unwrap();
        let file = writer.into_inner().into_inner();
        assert_eq!(size as usize, file.len());
        assert_eq!(u64_at(&file, 72), 1 << 3 | 1 << 6 | 1 << 10);
        let (offset, size) = (u64_at(&file, 104) as usize, u64_at(&file, 112) as usize);
        assert_eq!(&file[offset + 4..offset + 9], b"here\0");
        assert_eq!(size, 4 + 64);
        assert_eq!(u64_at(&file, 104 + 32) as usize + 8, file.len());
    }

    /// A device with room for `left` bytes.
    struct Full {
        inner: Cursor<Vec<u8>>,
        left: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Only what makes the file longer takes room.
            let longer = self.inner.position() as usize == self.inner.get_ref().len();
            let room = if longer {
                self.left.min(bytes.len())
            } else {
                bytes.len()
            };
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if longer {
                self.left -= room;
            }
            self.inner.write(&bytes[..room])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.inner.seek(to)
        }
    }

    #[test]
    fn a_record_that_did_not_fit_is_not_counted() {
        let device = Full {
            inner: Cursor::new(Vec::new()),
            left: 104 + 20,
        };
        let mut writer = Writer::new(device, &[]).unwrap();
        writer.append(&[1; 16]).unwrap();
        assert!(writer.append(&[2; 16]).is_err());
        writer.sync().unwrap();
        assert_eq!(writer.data_size(), 16);
        assert_eq!(u64_at(writer.out.inner.get_ref(), 48), 16);
    }

    #[test]
    fn whole_records_before_the_one_that_did_not_fit_are_counted() {
        let device = Full {
            inner: Cursor::new(Vec::new()),
            left: 104 + 20,
        };
        let mut writer = Writer::new(device, &[]).unwrap();
        assert!(writer.append(&FINISHED_ROUND.repeat(4)).is_err());
        writer.sync().unwrap();
        assert_eq!(u64_at(writer.out.inner.get_ref(), 48), 16);
    }
}
