//! Profiles with source lines, and what a listing has of them.

use proftool::analysis::annotate::{Summary, Sums};
use proftool::base::{Event, WeightSum};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, Instruction, Line, Listing, Module, Place,
    Profile, Slices, Thread, TimedSample,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any};

/// A frame: the function, the line at which it is, its address, and whether it is inlined into the frame
/// before, whose address it then has.
pub type Frame = (usize, Option<u32>, Option<u64>, bool);

/// One stack, outermost frame first, and its weight.
pub type Taken = (Vec<Frame>, u64);

/// The frames with the addresses that they share.
pub fn settled(stack: &[Frame]) -> Vec<Frame> {
    let mut settled: Vec<Frame> = Vec::new();
    for &(function, line, address, inlined) in stack {
        let outer = settled.last().copied().filter(|_| inlined);
        let address = outer.map_or(address, |(.., address, _)| address);
        settled.push((function, line, address, outer.is_some()));
    }
    settled
}

/// The profile of stacks that were taken in these slices of time, each a microsecond.
pub fn build_timed(samples: &[Taken], slices: &[u32]) -> Profile {
    let mut builder = Builder::default();
    let slices_of_time = Slices {
        length: 1000,
        ..Slices::default()
    };
    let mut timed = Vec::new();
    let event = builder.event(Event::named("cpu-clock"));
    let module = builder.module(Module {
        name: "app".into(),
        path: "/app".into(),
    });
    let functions: Vec<FunctionId> = (0..4)
        .map(|i| {
            builder.function(Function {
                address: Some(0x1000 * i),
                ..Function::named(format!("f{i}"), module)
            })
        })
        .collect();
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for ((stack, weight), &slice) in samples.iter().zip(slices) {
        let (mut path, mut place, mut from) = (None, None, None);
        for (function, line, address, inlined) in settled(stack) {
            let here = builder.path(path, functions[function], inlined);
            let address = address.map(|address| builder.address(address));
            place = Some(builder.place_at(Place {
                caller: place,
                path: here,
                line: from,
                address,
            }));
            let file = "/src/a.c".to_owned();
            from = line.map(|line| builder.line(Line { file, line }));
            path = Some(here);
        }
        let sum = WeightSum::equal(*weight, 1);
        assert!(builder.sample_at(event, thread, place.unwrap(), from, sum));
        timed.push(TimedSample {
            event,
            thread,
            path: path.unwrap(),
            place,
            line: from,
            slice,
            weight: *weight,
            count: 1,
        });
    }
    builder.times(slices_of_time, timed.into_iter());
    builder.finish()
}

pub fn of(profile: &Profile, function: usize, listing: Option<&Listing>) -> Summary {
    let selection = profile.select(EventId::new(0), &Filter::default());
    Sums::of(profile, &selection).within(FunctionId::new(function), listing)
}

/// Instructions of four bytes from 0 on, up to this address.
pub fn listing(end: u64) -> Listing {
    let instruction = |address| Instruction {
        address,
        length: 4,
        text: "nop".into(),
        position: None,
        jump: None,
        callee: None,
        leaves: false,
        calls: None,
    };
    Listing {
        file: "/app".into(),
        instructions: (0..end).step_by(4).map(instruction).collect(),
        ..Listing::default()
    }
}

pub fn samples() -> impl Strategy<Value = Vec<Taken>> {
    let address = option::of(0..40u64);
    let frame = (0..4usize, option::of(1..4u32), address, any::<bool>());
    vec((vec(frame, 1..10), 1..9u64), 1..16)
}
