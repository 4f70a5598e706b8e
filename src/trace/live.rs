//! A trace that grows while others look at it.

#[cfg(feature = "record")]
pub mod unwound;

use std::path::Path;

use crate::base::workers::Workers;
use crate::perfdata::{Feed, Reader, Record};

use super::compact::Limits;
use super::fading::Fading;
use super::jit::Dumps;
use super::samples::Samples;
use super::stack_copies::StackCopies;
use super::time_range::Scope;
use super::tracer::Tracer;
use super::unwinders::Unwinders;
use super::{Image, JitSource, Trace, Unwinding};

/// Takes records as they are made, and returns a trace of all records so far on request.
///
/// However long it runs, its memory is bounded: processes that have ended are forgotten, and where
/// there are very many stacks, the rarest are merged into one, which is called
/// `[seldom]`. No sample is forgotten.
pub struct LiveTrace<'o, 'scope, 'env> {
    feed: Feed,
    tracer: Tracer<'o, 'scope, 'env>,
    fading: Fading,
    fading_off_cpu: Fading,
    limits: Limits,
    /// Whether there is a thread of a number now.
    is_there: fn(i32) -> bool,
    scope: Workers<'scope, 'env>,
    unwinding: Unwinding<'env>,
    seldom: u64,
}

/// The state of a [`LiveTrace`] at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    pub trace: Trace,
    /// The time of the last record in it, in nanoseconds of the recorder's clock.
    pub until: u64,
    /// How many samples came since the beginning or the last reset, faded or not.
    pub samples: u64,
    /// How many of them stand under `[seldom]`.
    pub seldom: u64,
}

impl<'o, 'scope, 'env> LiveTrace<'o, 'scope, 'env> {
    /// Begins a trace. `head` describes the events and the machine; its records are not read.
    /// Copied stacks are unwound by workers that live in `scope`. `on_hit` is called with each
    /// image at the first address in it.
    pub fn new(
        head: Reader,
        scope: Workers<'scope, 'env>,
        unwinding: Unwinding<'env>,
        jit: Option<&'env dyn JitSource>,
        on_hit: &'o mut dyn FnMut(&Image),
    ) -> Self {
        let copies = StackCopies::new(Unwinders::new(scope, unwinding));
        let mut tracer = Tracer::new(Scope::default(), Some(copies), Dumps::growing(jit), on_hit);
        tracer.ended = Some(Vec::new());
        LiveTrace {
            feed: Feed::new(head),
            tracer,
            fading: Fading::default(),
            fading_off_cpu: Fading::default(),
            limits: Limits::default(),
            is_there: |tid| Path::new(&format!("/proc/{tid}")).exists(),
            scope,
            unwinding,
            seldom: 0,
        }
    }

    /// Takes whole records.
    pub fn append(&mut self, records: Vec<u8>) {
        let tracer = &mut self.tracer;
        let visit = &mut |reader: &Reader, records: &[Record<'_>]| tracer.records(reader, records);
        self.feed.append(records, visit);
    }

    /// Ends a round, in which all buffers of the kernel were read once.
    pub fn end_round(&mut self) {
        let tracer = &mut self.tracer;
        let visit = &mut |reader: &Reader, records: &[Record<'_>]| tracer.records(reader, records);
        self.feed.end_round(visit);
    }

    /// Nothing more is to come.
    pub fn finish(&mut self) {
        let tracer = &mut self.tracer;
        let visit = &mut |reader: &Reader, records: &[Record<'_>]| tracer.records(reader, records);
        self.feed.finish(visit);
    }

    /// Forgets what was sampled so far. Returns the time up to which that is, in nanoseconds of the
    /// recorder's clock.
    pub fn reset(&mut self) -> u64 {
        self.feed.forget_caveats();
        self.tracer.reset(self.feed.reader());
        self.fading = Fading::default();
        self.fading_off_cpu = Fading::default();
        self.seldom = 0;
        self.feed.handed_out()
    }

    /// Lets samples fade: those up to the last call keep this share of the weight that they had
    /// then, and later ones count whole.
    pub fn fade(&mut self, share: f64) {
        self.tracer.count_chains();
        self.fading.fade(&self.tracer.samples, share);
        if let Some(off_cpu) = &self.tracer.off_cpu {
            self.fading_off_cpu.fade(off_cpu.samples(), share);
        }
    }

    /// Returns the trace of all records so far, faded or not.
    pub fn look(&mut self, faded: bool) -> Moment {
        self.tracer.settle(self.feed.reader());
        // As a file of this moment ends: the last record may be one that is of no interval.
        self.tracer.goes_on_until(self.feed.handed_out());
        // What came with the last copies.
        self.fade(1.0);
        self.bound();
        let (fading, fading_off_cpu) = (&self.fading, &self.fading_off_cpu);
        let reader = self.feed.reader();
        let trace = self.tracer.snapshot(reader, |samples, off_cpu| {
            let rows = |fading: &Fading, samples: &Samples| {
                if faded {
                    fading.rows(samples)
                } else {
                    samples.rows()
                }
            };
            let off_cpu = off_cpu.map(|off_cpu| rows(fading_off_cpu, off_cpu));
            (rows(fading, samples), off_cpu.unwrap_or_default())
        });
        Moment {
            trace,
            until: self.feed.handed_out(),
            samples: self.tracer.taken,
            seldom: self.seldom,
        }
    }

    /// Drops what is no longer needed, and the rarest stacks if there are too many.
    fn bound(&mut self) {
        self.tracer
            .forget_ended(self.feed.handed_out(), &self.is_there);
        if let Some(off_cpu) = &mut self.tracer.off_cpu {
            off_cpu.prune();
        }
        if !self.tracer.passes(&self.limits) {
            return;
        }
        let reader = self.feed.reader();
        let copies = StackCopies::new(Unwinders::new(self.scope, self.unwinding));
        let compacted = self.tracer.compact(reader, copies, &self.limits);
        let tracer = &self.tracer;
        self.fading = self.fading.moved(&tracer.samples, &compacted.samples);
        if let Some(off_cpu) = &tracer.off_cpu {
            let moved = &compacted.off_cpu;
            self.fading_off_cpu = self.fading_off_cpu.moved(off_cpu.samples(), moved);
        }
        self.seldom = compacted.seldom;
        self.limits = self.limits.raised_to(&self.tracer);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use super::super::{ImageKind, RuleSource};
    use super::*;
    use crate::base::{SELDOM, workers};
    use crate::perfdata::empty_recording;
    use crate::perfdata::writer::{UserMapping, comm_record};
    use crate::unwind::Rules;

    struct NoRules;

    impl RuleSource for NoRules {
        fn rules(&self, _: &Image, _: Option<&str>) -> Option<Arc<Rules>> {
            None
        }
    }

    /// IP, TID, TIME, PERIOD and CALLCHAIN.
    const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 8;

    /// A process with a mapping at 0x1000.
    fn process(pid: i32) -> Vec<u8> {
        let mapping = UserMapping {
            start: 0x1000,
            len: 0x100_0000,
            page_offset: 0,
            device: (8, 1),
            inode: 1,
            build_id: None,
            protection: 5,
            flags: 2,
            data: false,
            name: b"/bin/some".to_vec(),
        };
        [comm_record(pid, pid, b"some"), mapping.record(pid)].concat()
    }

    /// A sample of weight 10 in user space, with addresses from the leaf on.
    fn sample(pid: i32, time: u64, addresses: &[u64]) -> Vec<u8> {
        let mut words = vec![
            addresses[0],
            u64::from(pid as u32) | u64::from(pid as u32) << 32,
            time,
            10,
            addresses.len() as u64 + 1,
            -512i64 as u64,
        ];
        words.extend(addresses);
        let mut record = 9u32.to_ne_bytes().to_vec();
        record.extend(2u16.to_ne_bytes());
        record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }

    fn with_live(test: impl FnOnce(&mut LiveTrace<'_, '_, '_>)) {
        let unwinding = Unwinding {
            rules: &NoRules,
            workers: NonZeroUsize::MIN,
        };
        let mut on_hit = |_: &Image| ();
        workers::scope(|scope| {
            test(&mut LiveTrace::new(
                empty_recording(SAMPLE_TYPE, 0),
                scope,
                unwinding,
                None,
                &mut on_hit,
            ));
        });
    }

    fn sums(moment: &Moment) -> (u64, u64) {
        let samples = &moment.trace.samples;
        let weight = samples.iter().map(|sample| sample.weight).sum();
        (weight, samples.iter().map(|sample| sample.count).sum())
    }

    /// The number of samples whose leaf is at an address of the file, or a mark.
    fn at(moment: &Moment, place: Result<u64, &str>) -> u64 {
        let trace = &moment.trace;
        let is_there = |sample: &&super::super::TraceSample| {
            let frame = trace.frames[trace.paths[sample.path].frame];
            match place {
                Ok(address) => frame.address.lookup() == address,
                Err(mark) => *trace.images[frame.image].path == *mark,
            }
        };
        let found = trace.samples.iter().filter(is_there);
        found.map(|sample| sample.count).sum()
    }

    #[test]
    fn tables_are_bounded_and_no_sample_is_forgotten() {
        with_live(|live| {
            live.limits = Limits {
                samples: 100,
                paths: 400,
                images: 100,
                threads: 20,
                chains: 50,
            };
            live.is_there = |tid| tid == 70;
            let me = 70;
            let mut time = 0;
            for round in 0..50u64 {
                // One process that stays, and one that comes and goes.
                let other = 1 << 22 | round as i32;
                if round == 0 {
                    live.append(process(me));
                }
                live.append(process(other));
                for n in 0..40u64 {
                    time += 1_000;
                    live.append(sample(me, time, &[0x2000, 0x3000, 0x4000]));
                    let odd = 0x5000 + (round * 40 + n) * 16;
                    live.append(sample(other, time + 1, &[odd, odd + 0x20_0000, 0x4000]));
                }
                live.end_round();
                let moment = live.look(false);
                let (weight, count) = sums(&moment);
                assert_eq!((weight, count), (10 * moment.samples, moment.samples));
                assert!(moment.trace.samples.len() <= 100 + 81, "round {round}");
                assert!(moment.trace.paths.len() <= 400 + 3 * 81);
                assert_eq!(at(&moment, Err(SELDOM)), moment.seldom);
            }
            live.finish();
            let moment = live.look(false);
            assert_eq!(sums(&moment), (40_000, 4_000));
            assert!(moment.seldom > 1_000, "{} under [seldom]", moment.seldom);
            // Frequent stacks stay whole.
            assert_eq!(at(&moment, Ok(0x1000)), 2_000);
            let trace = &moment.trace;
            let kinds = trace.images.iter().map(|image| image.kind);
            assert!(kinds.filter(|kind| *kind == ImageKind::File).count() == 1);
            assert_eq!(trace.caveats.count(crate::base::CaveatKind::Unmapped), 0);
        });
    }

    #[test]
    fn chains_that_lead_astray_are_equal_up_to_there() {
        with_live(|live| {
            live.append(process(70));
            for time in 1..=20u64 {
                // The second return address is in no mapping; what follows it may be in one.
                let astray = [0x2000, 0x3000, 0xdead_0000 + time * 16, 0x4000 + time * 16];
                live.append(sample(70, time, &astray));
                // A chain that ends with the first one.
                live.append(sample(70, time, &[0x2000, 0xbeef_0000 + time * 16]));
            }
            live.append(sample(70, 30, &[0x2000, 0x3000]));
            live.finish();
            let Moment { trace, samples, .. } = live.look(false);
            let counts = trace.samples.iter().map(|row| row.count);
            assert_eq!((samples, counts.collect::<Vec<_>>()), (41, vec![20, 20, 1]));
            let caveats = &trace.caveats;
            assert_eq!(caveats.count(crate::base::CaveatKind::BrokenStack), 40);
            // Two addresses and a mark; the leaf has a frame of its own where it calls.
            assert_eq!(trace.frames.len(), 3);
            // Two of them are shallow: these are half of the samples at most.
            let shallow = caveats.count(crate::base::CaveatKind::NoFramePointers);
            assert_eq!(shallow, 21);
        });
    }

    #[test]
    fn faded_samples_keep_their_places_when_tables_are_rebuilt() {
        with_live(|live| {
            live.limits.samples = 10;
            live.is_there = |tid| tid == 70;
            let me = 70;
            live.append(process(me));
            for time in 1..=16 {
                live.append(sample(me, time, &[0x2000, 0x3000]));
            }
            live.end_round();
            live.append(sample(me, 20, &[0x2000, 0x3000]));
            live.end_round();
            live.fade(1.0);
            assert_eq!(sums(&live.look(true)), (160, 16));
            live.fade(0.5);
            let moment = live.look(true);
            assert_eq!(sums(&moment), (80, 8));
            // Each of the 16 samples has a weight of 5 now.
            let squares = moment.trace.samples.iter().map(|sample| sample.squares);
            assert_eq!(squares.sum::<u128>(), 16 * 5 * 5);
            for time in 30..60 {
                live.append(sample(me, time, &[0x2000 + 16 * time]));
            }
            live.finish();
            live.fade(0.5);
            let moment = live.look(true);
            // 16 faded twice; the one at 20 and thirty others whole, all but five under one name.
            assert_eq!(at(&moment, Ok(0x1000)), 4 + 1);
            assert_eq!(sums(&moment), (10 * (4 + 31), 4 + 31));
            let moment = live.look(false);
            assert_eq!(sums(&moment), (470, 47));
            assert_eq!(at(&moment, Ok(0x1000)), 17);
            assert!(moment.seldom >= 25);
            assert!(
                moment
                    .trace
                    .samples
                    .first()
                    .is_some_and(|row| row.event.index() == 0)
            );
        });
    }
}
