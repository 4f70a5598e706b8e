//! Sums by time are those of the samples of that time, whatever recurses.

use std::collections::BTreeMap;

use proftool::analysis::detail::pairs;
use proftool::analysis::threads::timeline::{Asked, CallSum, Timeline};
use proftool::analysis::{inclusive, measured};
use proftool::base::{Event, IdVec, WeightSum};
use proftool::callgraph::{CallGraph, Cycles};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, Module, Profile, Slices, Thread, TimedSample,
};
use proptest::collection::vec;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

/// A stack of functions, outermost first, the weight of its samples and their slice.
type Taken = (Vec<u8>, u32, u32);

/// The profile of those that pass. All have the same functions and paths.
fn profile_of(taken: &[Taken], passes: impl Fn(&Taken) -> bool) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cycles"));
    let module = builder.module(Module {
        name: "app".into(),
        path: "/bin/app".into(),
    });
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let functions: Vec<FunctionId> = (0..5)
        .map(|number| builder.function(Function::named(format!("f{number}"), module)))
        .collect();
    let slices = Slices {
        length: 1000,
        ..Slices::default()
    };
    let mut timed = Vec::new();
    for one in taken {
        let (stack, weight, slice) = one;
        let path = stack.iter().fold(None, |caller, &number| {
            Some(builder.path(caller, functions[usize::from(number)], false))
        });
        let path = path.unwrap();
        if passes(one) {
            let sum = WeightSum::of(u64::from(*weight));
            builder.sample(event, thread, path, None, sum);
            timed.push(TimedSample {
                event,
                thread,
                path,
                place: None,
                line: None,
                slice: *slice,
                weight: u64::from(*weight),
                count: 1,
            });
        }
    }
    builder.times(slices, timed.into_iter());
    builder.finish()
}

/// What calls have in a range: the sums of those that a closure picks, by caller and callee.
fn of_calls(
    timeline: &Timeline,
    (first, last): (u32, u32),
    figures: impl Fn(&CallSum) -> [u64; 2],
) -> BTreeMap<(Option<FunctionId>, FunctionId), [u64; 2]> {
    let mut found = BTreeMap::new();
    for sum in &timeline.of_calls {
        if (first..=last).contains(&sum.bucket) {
            let call: &mut [u64; 2] = found.entry(timeline.calls[sum.call]).or_default();
            let figures = figures(sum);
            call[0] += figures[0];
            call[1] += figures[1];
        }
    }
    found
}

proptest! {
    #[test]
    fn sums_by_time_are_those_of_the_samples_of_that_time(
        taken in vec((vec(0..5u8, 1..9), 1..50u32, 0..9u32), 1..14),
        range in (0..9u32, 0..9u32),
    ) {
        let whole = profile_of(&taken, |_| true);
        let filter = Filter::default();
        let event = EventId::new(0);
        let selection = whole.select(event, &filter);
        let graph = CallGraph::of(&whole, &selection);
        let cycles = Cycles::find(&graph, |_| true);
        let ends: Vec<Option<u32>> = whole.paths.ids().map(|id| Some(id.index() as u32)).collect();
        let ends: IdVec<_, _> = ends.into();
        let rows = whole.select_times(event, &filter).unwrap();
        let timeline = Timeline::of(&whole, &rows, &cycles, &Asked { ends: &ends, functions: &[] });
        prop_assert_eq!(timeline.bucket, 1000);

        // In longer buckets there is the same weight.
        let mut halved = timeline.clone();
        halved.halve_buckets();
        prop_assert_eq!(halved.bucket, 2000);
        for (number, &weight) in halved.weights.iter().enumerate() {
            let pair = timeline.weights.iter().skip(2 * number).take(2);
            prop_assert_eq!(weight, pair.sum::<u64>());
        }
        let all = |timeline: &Timeline| {
            let calls = timeline.of_calls.iter().map(|sum| sum.weight).sum::<u64>();
            let functions = timeline.of_functions.iter().map(|sum| sum.total).sum::<u64>();
            (calls, functions, timeline.ends.iter().map(|sum| sum.weight).sum::<u64>())
        };
        prop_assert_eq!(all(&halved), all(&timeline));
        prop_assert!(halved.sums() <= timeline.sums());

        let (first, last) = (range.0.min(range.1), range.0.max(range.1));
        let in_range = |bucket: u32| (first..=last).contains(&bucket);
        let part = profile_of(&taken, |one| in_range(one.2));
        let selection = part.select(event, &filter);

        // Callers and callees of every function, and the arcs.
        let wanted: BTreeMap<_, _> = pairs::of_all(&part, &selection)
            .iter()
            .map(|pair| {
                let arcs = CallGraph::of(&part, &selection);
                let arc = arcs.arc_between(pair.caller, pair.callee).unwrap();
                ((Some(pair.caller), pair.callee), [arcs.arcs()[arc].weight, pair.weight])
            })
            .collect();
        let mut found = of_calls(&timeline, (first, last), |sum| [sum.weight, sum.contributed]);
        found.retain(|call, _| call.0.is_some());
        prop_assert_eq!(found, wanted);

        // What is on whose account, by the cycles of the whole.
        let measured = measured::attribute(&part, &selection, &graph, &cycles);
        let found = of_calls(&timeline, (first, last), |sum| [sum.self_weight, sum.total]);
        let figures = |self_weight: f64, children: f64| {
            [self_weight as u64, (self_weight + children) as u64]
        };
        for (id, arc) in graph.arcs().enumerate() {
            if let Some(portion) = measured.arcs[id] {
                let wanted = figures(portion.self_weight, portion.children);
                let found = found.get(&(Some(arc.from), arc.to)).copied();
                prop_assert_eq!(found.unwrap_or_default(), wanted);
            }
        }
        for (id, root) in measured.roots.enumerate() {
            let found = found.get(&(None, id)).copied();
            prop_assert_eq!(found.unwrap_or_default(), figures(root.self_weight, root.children));
        }
        let totals = inclusive::by_function(&part, &selection);
        for id in part.functions.ids() {
            let sums = timeline.of_functions.iter();
            let sums = sums.filter(|sum| sum.function == id && in_range(sum.bucket));
            let mut found = [0; 3];
            sums.for_each(|sum| {
                found[0] += sum.self_weight;
                found[1] += sum.total;
                found[2] += sum.innermost;
            });
            let portion = measured.functions[id];
            let [own, passed] = figures(portion.self_weight, portion.children);
            prop_assert_eq!(found, [own, totals.total[id], passed]);
        }
        for id in cycles.members().ids() {
            let sums = timeline.of_cycles.iter();
            let sums = sums.filter(|sum| sum.cycle == id && in_range(sum.bucket));
            let found: u64 = sums.map(|sum| sum.total).sum();
            prop_assert_eq!(found as f64, measured.cycles[id].portion.total());
        }
        let ends = timeline.ends.iter().filter(|sum| in_range(sum.bucket));
        prop_assert_eq!(ends.map(|sum| sum.weight).sum::<u64>(), selection.total());
    }

    #[test]
    fn blocks_of_time_have_each_row_once(
        taken in vec((vec(0..5u8, 1..3), 1..50u32, 0..300u32), 1..14),
        least in 1..40u32,
    ) {
        let profile = profile_of(&taken, |_| true);
        let rows = profile.select_times(EventId::new(0), &Filter::default()).unwrap();
        let of_blocks: Vec<_> = rows.blocks(least).flatten().collect();
        prop_assert_eq!(of_blocks, rows.rows().collect::<Vec<_>>());
    }
}
