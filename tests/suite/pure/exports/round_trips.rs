//! What is written for other tools and can be read again: the same totals, and the same calls that were not recorded
//! as such.

use std::collections::BTreeMap;

use proftool::analysis::tree::{Collapse, Stacks};
use proftool::base::printable;
use proftool::callgraph::CallGraph;
use proftool::export::folded;
use proftool::input::{self, Options};
use proftool::profile::{FunctionId, Profile, Selection, Weighing};
use proptest::prelude::{TestCaseError, prop_assert_eq, proptest};

use crate::support::exports::{build, exported, samples, select, subject};
use crate::support::laws;
use crate::support::readers;
use crate::support::readers::Row;

/// What a call has: its weight, how much of it was restored, how much is across missing frames.
type Marks = (u64, u64, u64);

/// By what a format tells functions apart.
type NameOf = fn(&Profile, FunctionId) -> String;

fn name(profile: &Profile, id: FunctionId) -> String {
    printable(&profile.functions[id].name).into_owned()
}

fn label(profile: &Profile, id: FunctionId) -> String {
    printable(profile.name(id)).into_owned()
}

/// The functions with their weights, in order.
fn rows(profile: &Profile, selection: &Selection, name: NameOf) -> Vec<Row> {
    let weights = proftool::analysis::inclusive::by_function(profile, selection);
    let row = |id| Row {
        name: name(profile, id),
        own: weights.self_weight[id],
        total: weights.total[id],
    };
    let mut rows: Vec<Row> = weights.present().map(row).collect();
    rows.retain(|row| row.total > 0);
    rows.sort();
    rows
}

/// The calls with their weights.
fn calls(
    profile: &Profile,
    selection: &Selection,
    name: NameOf,
) -> BTreeMap<[String; 2], Vec<Marks>> {
    let mut calls: BTreeMap<[String; 2], Vec<Marks>> = BTreeMap::new();
    let graph = CallGraph::of(profile, selection);
    for arc in graph.arcs().iter().filter(|arc| arc.weight > 0) {
        let ends = [arc.from, arc.to].map(|id| name(profile, id));
        let marks = (arc.weight, arc.inferred, arc.across_gaps);
        calls.entry(ends).or_default().push(marks);
    }
    calls.values_mut().for_each(|marks| marks.sort_unstable());
    calls
}

/// The profile that a file is read as, with all of its samples.
fn read(file: &[u8]) -> Result<(Profile, Selection), TestCaseError> {
    let profile = input::read(file.to_vec(), &Options::default());
    let profile = profile.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let selection = select(&profile, Weighing::Weight);
    Ok((profile, selection))
}

proptest! {
    #![proptest_config(laws::cases(96))]

    #[test]
    fn files_that_are_read_again_have_every_total_and_every_mark(samples in samples()) {
        let profile = build(&samples);
        let selection = select(&profile, Weighing::Weight);
        if selection.total() == 0 {
            return Ok(());
        }
        let files = exported(&profile, &selection, Collapse::None);
        for (format, file) in [("pprof", &files[0]), ("speedscope", &files[2])] {
            let (back, all) = read(file)?;
            prop_assert_eq!(all.total(), selection.total(), "{}", format);
            prop_assert_eq!(rows(&back, &all, name), rows(&profile, &selection, name), "{}", format);
            prop_assert_eq!(calls(&back, &all, name), calls(&profile, &selection, name), "{}", format);
        }
        // Functions of one name and module are one there.
        let (back, all) = read(&files[5])?;
        prop_assert_eq!(all.total(), selection.total());
        let [want, got] = [(&profile, &selection), (&back, &all)].map(|(profile, of)| rows(profile, of, name));
        prop_assert_eq!(readers::names(&got), readers::names(&want), "perf-script");
    }

    #[test]
    fn folded_stacks_that_are_read_again_have_every_total_and_where_frames_are_missing(samples in samples()) {
        let profile = build(&samples);
        let selection = select(&profile, Weighing::Weight);
        if selection.total() == 0 {
            return Ok(());
        }
        let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
        let mut file = Vec::new();
        folded::write(&mut file, &subject(&profile, &selection), &tree).unwrap();
        let (back, all) = read(&file)?;
        prop_assert_eq!(all.total(), selection.total());
        prop_assert_eq!(rows(&back, &all, name), rows(&profile, &selection, label));
        let gaps = |profile: &Profile, selection: &Selection, of: NameOf| -> Vec<[String; 2]> {
            let graph = CallGraph::of(profile, selection);
            let gaps = graph.arcs().iter().filter(|arc| arc.weight > 0 && arc.is_gap());
            let mut gaps: Vec<_> = gaps.map(|arc| [arc.from, arc.to].map(|id| of(profile, id))).collect();
            gaps.sort();
            gaps
        };
        prop_assert_eq!(gaps(&back, &all, name), gaps(&profile, &selection, label));
    }
}
