//! The figures of the report, in one value: where the time goes, and how reliable that is.

use rustc_hash::FxHashMap;

use super::coverage::Coverage;
use super::cut::{self, AtMost};
use super::flat;
use super::forwarders;
use super::inclusive::Basis;
use super::lines::{self, Lines};
use super::owners::{Charged, Owners};
use super::places;
use super::same_samples::{self, Member};
use super::sampling_error::{self, SamplingError};
use super::threads;
use super::tree::{self, Collapse, Degree, HotPaths, Stacks};
use super::waits::{self, Wait};
use crate::base::IdVec;
use crate::callgraph::{CallGraph, Cycles};
use crate::profile::{FunctionId, FunctionKind, ModuleId, Profile, Selection, ThreadId};

/// The figures of a report, for all functions.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The weights of the functions.
    pub flat: flat::Summary,
    /// Where in their source functions spend their own weight.
    pub lines: Lines,
    /// Functions that are on exactly the same samples and whose totals have the same range, the
    /// outermost first. Only groups in which some function has no samples of its own.
    pub alike: Vec<Vec<Member>>,
    /// Commands with their weights, the heaviest first.
    pub commands: Vec<(String, u64)>,
    /// Threads with their weights, the heaviest first.
    pub threads: Vec<(ThreadId, u64)>,
    /// Where threads leave their processor, the heaviest first; nothing for events of running ones.
    pub waits: Vec<(Wait, u64)>,
    /// The heaviest paths of the call tree, in which recursion is collapsed as by default; `None`
    /// where there are no calls.
    pub hot: Option<HotPaths>,
    /// Whether some function is on some stack more than once.
    pub recurses: bool,
    /// Whether the profile has stacks that were cut, whatever is selected.
    pub has_cut_stacks: bool,
    /// How far shares may be off because not every event was recorded.
    pub sampling_error: SamplingError,
    /// The weight by crate, library or directory.
    pub charged: Charged,
    /// Which of the user's own functions hand nearly all to one other: [`forwarders::find`].
    pub forwards: IdVec<FunctionId, bool>,
    /// The self weight by module: [`places::by_self`].
    pub places: Vec<(Option<ModuleId>, u64)>,
    /// The comparison of the samples with the code; `None` where it was not requested, or no code
    /// was read.
    pub in_code: Option<InCode>,
}

/// The comparison of the samples with the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InCode {
    /// How much of the code's call graph the samples touched.
    pub coverage: Coverage,
    /// The number of cycles that calls in the code can form.
    pub possible_cycles: usize,
    /// The number of cycles that samples show.
    pub observed_cycles: usize,
}

impl Summary {
    /// Computes all figures; those of the code if they are asked for by `in_code`. Linear in rows,
    /// paths, functions and calls, apart from sorting.
    ///
    /// ```
    /// use proftool::analysis::owners::Owners;
    /// use proftool::analysis::report::Summary;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// // main and run are on the same samples.
    /// let text = "main;run;parse 6\nmain;run;emit 4\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let owners = Owners::of_profile(&profile, &[]);
    /// let summary = Summary::of(&profile, &selection, owners, false);
    /// assert_eq!(summary.alike.len(), 1);
    /// assert_eq!(summary.alike[0].len(), 2);
    /// assert!(!summary.recurses);
    /// ```
    pub fn of(profile: &Profile, selection: &Selection, owners: Owners, in_code: bool) -> Summary {
        let flat = flat::Summary::of(profile, selection);
        let stacks = Stacks::new(profile, selection);
        // The steps of a path are totals where a function is on it once.
        let options = tree::Options {
            degree: Degree::OfRecursion(Collapse::Full),
            ..tree::Options::default()
        };
        let tree = tree::Summary::of(stacks, &options);
        let (hot, recurses) = (hot(profile, selection, &tree, &owners), tree.recurses);
        drop(tree);
        let commands = threads::by_command(profile, selection)
            .into_iter()
            .map(|(c, w)| (c.to_owned(), w));
        Summary {
            lines: lines::by_function(profile, selection),
            alike: alike(profile, selection, &flat),
            commands: commands.collect(),
            threads: threads::by_thread(profile, selection),
            waits: if selection.event().is_off_processor() {
                waits::by_function(profile, selection)
            } else {
                Vec::new()
            },
            hot,
            forwards: forwarders::find(profile, selection, &flat.weights, &owners),
            recurses,
            has_cut_stacks: cut::is_any(profile),
            sampling_error: sampling_error::of(profile, selection),
            charged: Charged::of(profile, selection, owners),
            places: places::by_self(profile, &flat.weights),
            in_code: (in_code && !profile.code.calls().is_empty())
                .then(|| InCode::of(profile, selection)),
            flat,
        }
    }
}

fn hot(
    profile: &Profile,
    selection: &Selection,
    tree: &tree::Summary,
    owners: &Owners,
) -> Option<HotPaths> {
    // Threads leave their processor in the scheduler: what they wait in is outside of it.
    let is_off = selection.event().is_off_processor();
    let role = |id: FunctionId| {
        let function = &profile.functions[id];
        if function.kind == FunctionKind::Mark {
            tree::Role::Mark
        } else if is_off && profile.modules[function.module].is_kernel() {
            tree::Role::End
        } else if owners.is_own(id) {
            tree::Role::Own
        } else {
            tree::Role::Other
        }
    };
    let paths = tree::hot_paths(tree, selection.total(), role);
    let is_path = paths.tree.calls.nodes.iter().any(|node| node.level > 1);
    is_path.then_some(paths)
}

impl InCode {
    fn of(profile: &Profile, selection: &Selection) -> InCode {
        let graph = CallGraph::of(profile, selection);
        let everywhere = IdVec::filled(true, profile.functions.len());
        let possible = Cycles::find(&graph, |arc| arc.is_call() && !arc.is_interrupt);
        let observed = Cycles::find(&graph, |arc| arc.is_observed() && !arc.is_interrupt);
        InCode {
            coverage: Coverage::of(profile, selection, &graph, &everywhere),
            possible_cycles: possible.members().len(),
            observed_cycles: observed.members().len(),
        }
    }
}

// Groups the functions whose samples and range are the same, where some can stand for others.
fn alike(profile: &Profile, selection: &Selection, flat: &flat::Summary) -> Vec<Vec<Member>> {
    let flat::Summary {
        weights, hidden, ..
    } = flat;
    if weights.basis == Basis::Nothing {
        return Vec::new();
    }
    type Range = (u64, u64, AtMost);
    let range = |id: FunctionId| (weights.total[id], weights.samples[id], hidden.at_most[id]);
    // For each range how many functions have it, and whether one of them has no samples of its own.
    let mut counts: FxHashMap<Range, (u32, bool)> = FxHashMap::default();
    for id in weights.present() {
        let (functions, any) = counts.entry(range(id)).or_default();
        *functions += 1;
        *any |= weights.self_samples[id] == 0;
    }
    let compared: Vec<FunctionId> = weights
        .present()
        .filter(|&id| matches!(counts.get(&range(id)), Some((2.., true))))
        .collect();
    if compared.is_empty() {
        return Vec::new();
    }
    let mut alike = Vec::new();
    for group in same_samples::groups(profile, selection, &compared) {
        // The same samples, but not the same doubt about those that were cut.
        let mut places: FxHashMap<Range, usize> = FxHashMap::default();
        for member in group.members {
            let new = alike.len();
            let place = *places.entry(range(member.function)).or_insert(new);
            if place == new {
                alike.push(Vec::new());
            }
            alike[place].push(member);
        }
    }
    alike.retain(|members| members.len() > 1);
    alike
}
