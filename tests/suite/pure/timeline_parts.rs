//! What source lines and instructions have by time is what `annotate` says of the samples of that time.

use std::collections::BTreeMap;

use proftool::analysis::threads::timeline::{Asked, AskedFunction, Part, Timeline};
use proftool::base::IdVec;
use proftool::callgraph::{CallGraph, Cycles};
use proftool::profile::{EventId, Filter, FunctionId, Profile};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::support::annotate::{Taken, build_timed, listing, of, samples};

/// All parts of all functions.
fn all_parts(profile: &Profile, end: u64) -> Vec<AskedFunction> {
    let listing = listing(end);
    let instructions: Vec<_> = (listing.instructions.iter())
        .map(|it| it.address..it.address + u64::from(it.length))
        .collect();
    let lines = profile.lines.ids().map(Some).chain([None]).map(Part::Line);
    let others = [Part::Code, Part::Outside, Part::Elsewhere].into_iter();
    let parts: Vec<Part> = lines
        .chain(others)
        .chain((0..instructions.len()).map(Part::Instruction))
        .collect();
    let function = |function| AskedFunction {
        function,
        parts: parts.clone(),
        instructions: instructions.clone(),
    };
    profile.functions.ids().map(function).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_and_instructions_by_time_are_those_of_annotate_for_that_time(
        samples in samples(),
        slices in vec(0..9u32, 24),
        range in (0..9u32, 0..9u32),
        // Of some code the last instructions are not known.
        end in 0..12u64,
    ) {
        let end = 4 * end;
        let slices = &slices[..samples.len()];
        let whole = build_timed(&samples, slices);
        let filter = Filter::default();
        let event = EventId::new(0);
        let graph = CallGraph::of(&whole, &whole.select(event, &filter));
        let cycles = Cycles::find(&graph, |_| true);
        let ends = IdVec::filled(None, whole.paths.len());
        let functions = all_parts(&whole, end);
        let asked = Asked { ends: &ends, functions: &functions };
        let rows = whole.select_times(event, &filter).unwrap();
        let timeline = Timeline::of(&whole, &rows, &cycles, &asked);

        let (first, last) = (range.0.min(range.1), range.0.max(range.1));
        let inside = samples.iter().zip(slices);
        let inside = inside.filter(|(_, slice)| (first..=last).contains(slice));
        let inside: Vec<Taken> = inside.map(|(taken, _)| taken.clone()).collect();
        let part = build_timed(&inside, &vec![0; inside.len()]);

        for (number, asked) in functions.iter().enumerate() {
            let found = |part: Part| {
                let place = asked.parts.iter().position(|&it| it == part).unwrap();
                let id = number * asked.parts.len() + place;
                let sums = timeline.of_parts.iter();
                sums.filter(|sum| sum.part.index() == id && (first..=last).contains(&sum.bucket))
                    .fold((0, 0), |all, sum| (all.0 + sum.self_weight, all.1 + sum.total))
            };
            let known = FunctionId::new(asked.function.index());
            let summary = of(&part, known.index(), Some(&listing(end)));
            let mut wanted: BTreeMap<Option<u32>, (u64, u64)> = (summary.lines.iter())
                .map(|row| {
                    let line = row.line.map(|line| part.lines[line].line);
                    (line, (row.self_weight, row.total.unwrap()))
                })
                .collect();
            for line in whole.lines.ids().map(Some).chain([None]) {
                let number = line.map(|line| whole.lines[line].line);
                let wanted = wanted.remove(&number).unwrap_or_default();
                prop_assert_eq!(found(Part::Line(line)), wanted, "line {:?}", number);
            }
            let code = summary.code.unwrap_or_default();
            prop_assert_eq!(found(Part::Code), (code.self_weight, code.total));
            prop_assert_eq!(found(Part::Elsewhere).0, code.inlined_elsewhere);
            let mut outside = 0;
            let mut wanted: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for at in &code.addresses {
                if at.address < end {
                    wanted.insert(at.address, (at.self_weight, at.total));
                } else {
                    outside += at.self_weight;
                }
            }
            prop_assert_eq!(found(Part::Outside).0, outside);
            for (place, range) in asked.instructions.iter().enumerate() {
                let wanted = wanted.remove(&range.start).unwrap_or_default();
                prop_assert_eq!(found(Part::Instruction(place)), wanted);
            }
            prop_assert_eq!(wanted.len(), 0);
        }
    }
}
