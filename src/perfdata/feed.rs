//! Records that are read while they are made, without a file.

use crate::base::CaveatKind;

use super::buffers::Buffer;
use super::pass::State;
use super::{Reader, Record};

/// Takes records as a recorder drains them from the kernel's buffers, and hands them out in order
/// of time: those of a round when the next one has ended, since by then nothing earlier can come.
///
/// ```text
///   append append append end_round   append append end_round
///   └──────── round 1 ─────────┘     └────── round 2 ──────┘ ─▶ what is not later than round 1
/// ```
pub struct Feed {
    reader: Reader,
    state: State,
    at: u64,
}

impl Feed {
    /// Makes a feed. `reader` describes the events and the machine; its records are not read, so a
    /// recording without records is enough.
    pub fn new(reader: Reader) -> Feed {
        Feed {
            at: reader.data_size().unwrap_or(0),
            reader,
            state: State::live(),
        }
    }

    /// What is known of the recording.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Takes whole records. Records without a time are handed out at once. `visit` gets several
    /// where they follow one another.
    pub fn append(&mut self, records: Vec<u8>, visit: &mut impl FnMut(&Reader, &[Record<'_>])) {
        let buffer = Buffer::of_file(records, self.at);
        self.at += buffer.bytes().len() as u64;
        // The place where it would go on: all of it was taken, since nothing comes behind.
        let (state, at) = (&mut self.state, self.at);
        let result = self.reader.split_buffer(buffer, state, visit, true, at);
        debug_assert!(result.is_ok(), "nothing is read from a disk");
        self.count_late();
    }

    /// Ends a round, in which all buffers of the kernel were read once: hands out what is complete.
    pub fn end_round(&mut self, visit: &mut impl FnMut(&Reader, &[Record<'_>])) {
        if let Some(limit) = self.state.sorter.end_round() {
            self.hand_out(limit, visit);
        }
    }

    /// Nothing more is to come: hands out what waits.
    pub fn finish(&mut self, visit: &mut impl FnMut(&Reader, &[Record<'_>])) {
        self.hand_out(u64::MAX, visit);
    }

    fn hand_out(&mut self, limit: u64, visit: &mut impl FnMut(&Reader, &[Record<'_>])) {
        let result = self.reader.hand_out(limit, &mut self.state, visit);
        debug_assert!(result.is_ok(), "nothing is read from a disk");
    }

    /// Memory that records were in, to be used for others.
    pub fn spare(&mut self) -> Vec<u8> {
        self.state.buffers.empty()
    }

    /// The time up to which records were handed out, in nanoseconds.
    pub fn handed_out(&self) -> u64 {
        self.state.sorter.handed_out()
    }

    /// Forgets what could not be read so far.
    pub fn forget_caveats(&mut self) {
        self.reader.caveats = self.reader.header_caveats.clone();
    }

    fn count_late(&mut self) {
        let late = std::mem::take(&mut self.state.late);
        if late > 0 {
            self.reader.caveats.add(CaveatKind::Disordered, late);
        }
    }
}

/// A recording without records, of one event with these flags.
#[cfg(test)]
pub(crate) fn empty_recording(sample_type: u64, flags: u64) -> Reader {
    use super::writer::{ATTR_SIZE, FeatureSections, Writer, WriterEvent};
    let mut attr = [0; ATTR_SIZE];
    attr[4..8].copy_from_slice(&(ATTR_SIZE as u32).to_ne_bytes());
    attr[24..32].copy_from_slice(&sample_type.to_ne_bytes());
    attr[40..48].copy_from_slice(&flags.to_ne_bytes());
    let event = WriterEvent {
        name: "cpu-clock".into(),
        attr,
        ids: Vec::new(),
    };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &[event]).unwrap();
    writer.finish_round().unwrap();
    writer.finish(&FeatureSections::default()).unwrap();
    Reader::from_bytes(writer.into_inner().into_inner()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: u32 = 4;

    /// Its events tell time, and nothing else, behind records: PERF_SAMPLE_TIME, sample_id_all.
    fn reader() -> Reader {
        empty_recording(4, 1 << 18)
    }

    /// An EXIT record of this time.
    fn record(time: u64) -> Vec<u8> {
        let mut record = EXIT.to_ne_bytes().to_vec();
        record.extend([0, 0, 40, 0]);
        record.extend([0; 16]);
        record.extend(time.to_ne_bytes());
        record.extend(time.to_ne_bytes());
        record
    }

    #[test]
    fn a_round_is_handed_out_in_order_when_the_next_has_ended() {
        let mut feed = Feed::new(reader());
        let times = std::cell::RefCell::new(Vec::new());
        let mut visit = |_: &Reader, records: &[Record<'_>]| {
            let all = records.iter().filter_map(|record| record.time);
            times.borrow_mut().extend(all);
        };
        feed.append([record(5), record(7)].concat(), &mut visit);
        feed.append(record(6), &mut visit);
        feed.end_round(&mut visit);
        assert!(times.borrow().is_empty());
        feed.append([record(9), record(6)].concat(), &mut visit);
        feed.end_round(&mut visit);
        assert_eq!(times.borrow()[..], [5, 6, 6, 7]);
        assert_eq!(feed.handed_out(), 7);
        // It comes too late, and is counted as such.
        feed.append(record(4), &mut visit);
        assert_eq!(feed.reader().caveats().count(CaveatKind::Disordered), 1);
        feed.finish(&mut visit);
        assert_eq!(times.borrow()[..], [5, 6, 6, 7, 4, 9]);
        feed.forget_caveats();
        assert!(feed.reader().caveats().is_empty());
    }

    #[test]
    fn bytes_that_are_not_a_record_are_skipped() {
        let mut feed = Feed::new(reader());
        let mut met = 0;
        feed.append(vec![0; 100], &mut |_, _| met += 1);
        feed.append(vec![7; 9], &mut |_, _| met += 1);
        feed.end_round(&mut |_, _| met += 1);
        feed.finish(&mut |_, _| met += 1);
        assert_eq!(met, 0);
        assert!(!feed.reader().caveats().is_empty());
    }
}
