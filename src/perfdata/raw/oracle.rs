//! Records built from known values, and the two parsers that say what is in them: that of
//! `linux-perf-event-reader`, and the reader's own for what that crate reads wrongly (the counters
//! of groups).

use linux_perf_event_reader::{
    CommonData, Endianness, PerfEventAttr, RawData, RecordParseInfo, SampleFormat,
};
use proptest::prelude::{Strategy, any};

use super::{Counter, Field, NATIVE, Offsets, RawRecord, change_counters};
use crate::perfdata::Attr;
use crate::perfdata::layout::Layout;
use crate::perfdata::sample::Sample;

const SAMPLE: u32 = 9;
const EXIT: u32 = 4;

/// What is in a record, whether or not its event asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// Different words, for the fields of one word in order of their bits.
    words: Vec<u64>,
    /// Value and id of each counter of a group.
    counters: Vec<(u64, u64)>,
    chain: Vec<u64>,
    raw: Vec<u8>,
    /// A multiple of 8, as the kernel has it.
    stack: Vec<u8>,
}

pub(crate) fn values() -> impl Strategy<Value = Values> {
    use proptest::collection::vec;
    let bytes = |most| vec(any::<u8>(), 0..most);
    let counters = vec((any::<u64>(), any::<u64>()), 0..5);
    let chain = vec(any::<u64>(), 0..5);
    let all = (vec(any::<u64>(), 24), counters, chain, bytes(20), bytes(40));
    all.prop_map(|(words, counters, chain, raw, mut stack)| {
        stack.resize(stack.len().next_multiple_of(8), 0);
        Values {
            words,
            counters,
            chain,
            raw,
            stack,
        }
    })
}

pub(crate) fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend(misc.to_ne_bytes());
    record.extend((8 + body.len() as u16).to_ne_bytes());
    record.extend(body);
    record
}

fn put(body: &mut Vec<u8>, words: impl IntoIterator<Item = u64>) {
    body.extend(words.into_iter().flat_map(u64::to_ne_bytes));
}

impl Values {
    pub(crate) fn word(&self, field: SampleFormat) -> u64 {
        self.words[field.bits().trailing_zeros() as usize]
    }

    /// A sample as the kernel writes it for an event with this attr, field by field.
    pub(crate) fn sample(&self, attr: &Attr) -> Vec<u8> {
        use SampleFormat as F;
        let has = |field| attr.sample_format().contains(field);
        let mut body = Vec::new();
        // In this order, which is not that of the bits.
        for field in [
            F::IDENTIFIER,
            F::IP,
            F::TID,
            F::TIME,
            F::ADDR,
            F::ID,
            F::STREAM_ID,
            F::CPU,
            F::PERIOD,
        ] {
            put(&mut body, has(field).then(|| self.word(field)));
        }
        if has(F::READ) {
            let asked = |bit: u32| attr.read_format >> bit & 1 != 0;
            // PERF_FORMAT_: TOTAL_TIME_ENABLED 0, TOTAL_TIME_RUNNING 1, ID 2, GROUP 3, LOST 4.
            let is_group = asked(3);
            let one = [(1, 2)];
            let counters = if is_group { &self.counters[..] } else { &one };
            let nr = is_group.then_some(counters.len() as u64);
            let times = [asked(0).then_some(11), asked(1).then_some(12)];
            put(&mut body, nr);
            let after_value = if is_group { None } else { Some(times) };
            if is_group {
                put(&mut body, times.into_iter().flatten());
            }
            for &(value, id) in counters {
                put(&mut body, [value]);
                put(&mut body, after_value.into_iter().flatten().flatten());
                put(&mut body, asked(2).then_some(id));
                put(&mut body, asked(4).then_some(13));
            }
        }
        if has(F::CALLCHAIN) {
            put(&mut body, [self.chain.len() as u64]);
            put(&mut body, self.chain.iter().copied());
        }
        if has(F::RAW) {
            // Its size makes the next field begin at a whole word.
            let size = (4 + self.raw.len()).next_multiple_of(8) - 4;
            body.extend((size as u32).to_ne_bytes());
            body.extend(&self.raw);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        if has(F::REGS_USER) {
            put(&mut body, [2]);
            let registers = attr.sample_regs_user.count_ones();
            put(&mut body, (0..registers).map(u64::from));
        }
        if has(F::STACK_USER) {
            put(&mut body, [self.stack.len() as u64]);
            body.extend(&self.stack);
            let dynamic = (!self.stack.is_empty()).then_some(self.stack.len() as u64);
            put(&mut body, dynamic);
        }
        record(SAMPLE, 2, &body)
    }

    /// A record that is not a sample: EXIT, with the trailer that the attr asks for.
    fn other(&self, attr: &Attr) -> Vec<u8> {
        use SampleFormat as F;
        let mut body = vec![7; 24];
        if Offsets::new(attr).has_trailer() {
            for field in [F::TID, F::TIME, F::ID, F::STREAM_ID, F::CPU, F::IDENTIFIER] {
                let is_there = attr.sample_format().contains(field);
                put(&mut body, is_there.then(|| self.word(field)));
            }
        }
        record(EXIT, 2, &body)
    }
}

fn halves(word: u64) -> (u32, u32) {
    let (first, second) = match NATIVE {
        Endianness::LittleEndian => (word, word >> 32),
        Endianness::BigEndian => (word >> 32, word),
    };
    (first as u32, second as u32)
}

/// Holds what the raw view reads and changes in records of an event with this attr against what
/// the parsers read.
#[track_caller]
pub(crate) fn check(attr_bytes: &[u8], values: &Values) {
    let attr = Attr::parse(attr_bytes, NATIVE).unwrap();
    let offsets = Offsets::new(&attr);
    let native = |bytes| match NATIVE {
        Endianness::LittleEndian => PerfEventAttr::parse::<_, byteorder::LittleEndian>(bytes),
        Endianness::BigEndian => PerfEventAttr::parse::<_, byteorder::BigEndian>(bytes),
    };
    let info = RecordParseInfo::new(&native(attr_bytes).unwrap().0, NATIVE);
    let layout = Layout::new(&attr, NATIVE);

    for (mut bytes, is_sample) in [(values.sample(&attr), true), (values.other(&attr), false)] {
        let record = RawRecord::first(&bytes).unwrap();
        let body = RawData::Single(&bytes[8..]);
        let common = if is_sample {
            CommonData::parse_sample(body, &info)
        } else {
            CommonData::parse_nonsample(body, &info)
        };
        let common = common.unwrap();
        let seen = |field| record.field(field, &offsets);
        let task = seen(Field::Task)
            .map(halves)
            .map(|(pid, tid)| (pid as i32, tid as i32));
        assert_eq!(task, common.pid.zip(common.tid));
        assert_eq!(record.tid(&offsets), common.tid);
        assert_eq!(record.time(&offsets), common.timestamp);
        assert_eq!(seen(Field::Id), common.id);
        assert_eq!(seen(Field::Cpu).map(|word| halves(word).0), common.cpu);
        if is_sample {
            check_sample(&mut bytes, &offsets, &layout);
        } else {
            assert_eq!(seen(Field::Period), None);
            assert!(record.says(&offsets).is_some());
            change_counters(&mut bytes, &offsets, |_, _| panic!("not a sample"));
        }
    }
}

fn check_sample(bytes: &mut [u8], offsets: &Offsets, layout: &Layout) {
    let counters_of = |bytes: &[u8]| -> Vec<Counter> {
        let sample = Sample::parse(&bytes[8..], 0, layout).unwrap();
        let read = sample.read.filter(|read| read.group);
        let counters = read.iter().flat_map(|read| read.counters());
        // Without ids nobody can tell them apart.
        let told = counters.filter_map(|(id, value)| Some(Counter { id: id?, value }));
        told.collect()
    };
    let record = RawRecord::first(bytes).unwrap();
    let sample = Sample::parse(&bytes[8..], 0, layout).unwrap();
    assert_eq!(record.field(Field::Period, offsets), sample.period);
    let before = counters_of(bytes);
    assert_eq!(record.counters(offsets).collect::<Vec<_>>(), before);

    // Of the bytes nothing changes but the values.
    let new = |id: u64, value: u64| value.wrapping_mul(3) ^ id;
    let old = bytes.to_vec();
    change_counters(bytes, offsets, new);
    let expected = before.iter().map(|counter| Counter {
        value: new(counter.id, counter.value),
        ..*counter
    });
    assert_eq!(counters_of(bytes), expected.collect::<Vec<_>>());
    let mut at = 0;
    change_counters(bytes, offsets, |_, _| {
        at += 1;
        before[at - 1].value
    });
    assert_eq!(bytes, old);

    // A cut sample has a part of its fields, and does no harm.
    for size in (8..bytes.len()).step_by(4) {
        let mut cut = bytes[..size].to_vec();
        cut[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
        let record = RawRecord::first(&cut).unwrap();
        assert!(
            before
                .iter()
                .zip(record.counters(offsets))
                .all(|(one, other)| *one == other)
        );
        change_counters(&mut cut, offsets, |_, value| value);
        assert_eq!(cut[8..], bytes[8..size]);
    }
}
