//! Stacks that were cut, or lack frames within: whatever programs do, truth is within the ranges.

use std::collections::BTreeMap;

use proftool::analysis::cut::{self, AtMost, Hidden, Unknown};
use proftool::analysis::graph::{self, Entry, Summary};
use proftool::analysis::inclusive;
use proftool::analysis::tree::{self, CallTree, Collapse, Direction, NodeId, Reach, Stacks};
use proftool::base::{Event, Language, TRUNCATED, WeightSum};
use proftool::callgraph::Cycles;
use proftool::profile::{
    Builder, CallKind, CallPath, EventId, Filter, Followed, FollowedFunction, Function,
    FunctionCode, FunctionId, FunctionKind, Module, Profile, Selection, Thread,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use crate::support::laws;

/// Functions 0 to 7; stacks begin in 0, or where a thread does: in a function whose address is
/// taken.
const FUNCTIONS: usize = 8;

/// What the code of a function is.
#[derive(Clone, Copy, Debug, Default)]
struct Code {
    /// Whether it makes an indirect call.
    indirect: bool,
    /// Whether something takes its address.
    taken: bool,
    /// Whether it was read.
    read: bool,
}

/// A program and what was recorded of it.
#[derive(Clone, Debug)]
struct Run {
    code: Vec<Code>,
    /// The direct calls.
    calls: Vec<(usize, usize)>,
    stacks: Vec<Recorded>,
}

/// A stack and what of it was recorded.
#[derive(Clone, Debug)]
struct Recorded {
    stack: Vec<usize>,
    weight: u64,
    /// How many of the outermost frames were cut.
    cut: Option<usize>,
    /// Frames that are missing within, by their places; neither the outermost nor the innermost that
    /// were recorded.
    missing: Vec<usize>,
    /// Functions that may be missing by the code, besides those that are, where the code tells which
    /// may be.
    others: Option<Vec<usize>>,
}

/// Frames that are missing.
#[derive(Clone, Debug)]
struct Gap {
    /// The functions of which they are, where that is known.
    candidates: Option<Vec<usize>>,
}

impl Recorded {
    /// The functions of which some are missing between two that were recorded, where that is known.
    fn candidates(&self, outer: usize, inner: usize) -> Option<Vec<usize>> {
        let others = self.others.as_ref()?.iter();
        Some(
            self.stack[outer + 1..inner]
                .iter()
                .chain(others)
                .copied()
                .collect(),
        )
    }

    /// The places of the frames that were recorded.
    fn places(&self) -> impl Iterator<Item = usize> {
        (self.cut.unwrap_or(0)..self.stack.len()).filter(|place| !self.missing.contains(place))
    }

    /// The functions that were recorded, and what is known of the frames that are missing outside of
    /// each, if some are.
    fn frames(&self) -> Vec<(usize, Option<Gap>)> {
        let mut last = None;
        let frames = self.places().map(|place| {
            let gap = last.filter(|last| last + 1 < place);
            let gap = gap.map(|last| Gap {
                candidates: self.candidates(last, place),
            });
            last = Some(place);
            (self.stack[place], gap)
        });
        frames.collect()
    }

    fn shows(&self, function: usize) -> bool {
        self.places().any(|place| self.stack[place] == function)
    }
}

fn runs() -> impl Strategy<Value = Run> {
    let code = (0..4u8, 0..3u8, 0..6u8);
    let code = code.prop_map(|(indirect, taken, read)| Code {
        indirect: indirect == 0,
        taken: taken == 0,
        read: read > 0,
    });
    let code = vec(code, FUNCTIONS);
    let calls = vec((0..FUNCTIONS, 0..FUNCTIONS), 0..12);
    let steps = vec(proptest::prelude::any::<Index>(), 1..12);
    let missing = vec(1..8usize, 0..3);
    let others = option::of(vec(0..FUNCTIONS, 0..2));
    let stacks = vec(
        (steps, 1..50u64, option::of(1..10usize), missing, others),
        1..12,
    );
    (code, calls, stacks, Just(())).prop_map(|(code, calls, stacks, ())| {
        let stacks = stacks
            .into_iter()
            .map(|(steps, weight, cut, mut missing, others)| {
                let stack = walk(&code, &calls, &steps);
                let cut = cut.filter(|&cut| cut < stack.len());
                let outermost = cut.unwrap_or(0);
                missing.retain(|&place| place > outermost && place + 1 < stack.len());
                Recorded {
                    stack,
                    weight,
                    cut,
                    missing,
                    others,
                }
            });
        Run {
            stacks: stacks.collect(),
            code,
            calls,
        }
    })
}

/// Where the program can go from a function. What was not read can call whatever it likes.
fn callees(code: &[Code], calls: &[(usize, usize)], from: usize) -> Vec<usize> {
    let at = |to: usize| {
        calls.contains(&(from, to))
            || !code[from].read
            || code[from].indirect && (code[to].taken || !code[to].read)
    };
    (0..FUNCTIONS).filter(|&to| at(to)).collect()
}

fn walk(code: &[Code], calls: &[(usize, usize)], steps: &[Index]) -> Vec<usize> {
    let starts: Vec<usize> = (0..FUNCTIONS)
        .filter(|&f| f == 0 || code[f].taken)
        .collect();
    let mut stack = vec![starts[steps[0].index(starts.len())]];
    for step in &steps[1..] {
        let next = callees(code, calls, stack[stack.len() - 1]);
        if next.is_empty() {
            break;
        }
        stack.push(next[step.index(next.len())]);
    }
    stack
}

/// How much of the code is in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// All that was read.
    All,
    /// Only calls between functions, as where few stacks are cut.
    Some,
    /// What following the code from these functions tells.
    Followed,
    Nothing,
}

fn profile(run: &Run, is_cut: bool, known: Known) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("samples"));
    let module = |name: &str| Module {
        name: name.into(),
        path: name.into(),
    };
    let app = builder.module(module("app"));
    let marks = builder.module(module(TRUNCATED));
    let function = |name: String, module, kind| Function {
        name,
        linkage_name: None,
        declared_at: None,
        module,
        address: None,
        kind,
        language: Language::Unknown,
    };
    let functions: Vec<FunctionId> = (0..FUNCTIONS)
        .map(|i| builder.function(function(format!("f{i}"), app, FunctionKind::Named)))
        .collect();
    let mark = builder.function(function(TRUNCATED.into(), marks, FunctionKind::Mark));
    let is_in_code = matches!(known, Known::All | Known::Some);
    for (&id, code) in functions.iter().zip(&run.code) {
        if code.read && is_in_code {
            let code = FunctionCode {
                indirect_calls: u64::from(code.indirect),
                pointers_in_data: u64::from(code.taken),
                ..FunctionCode::default()
            };
            builder.code(id, code);
        }
    }
    for &(from, to) in &run.calls {
        if run.code[from].read && is_in_code {
            builder.call(functions[from], functions[to], CallKind::Call);
        }
    }
    if known == Known::Followed {
        builder.followed(followed(run, &functions));
    }
    if known == Known::All {
        builder.code_is_whole();
    }
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for recorded in &run.stacks {
        let cut = recorded.cut.filter(|_| is_cut);
        let mut path = cut.map(|_| builder.path(None, mark, false));
        let frames = match is_cut {
            true => recorded.frames(),
            false => recorded.stack.iter().map(|&f| (f, None)).collect(),
        };
        for (frame, gap) in frames {
            let across_gap = gap.is_some();
            let candidates = gap.and_then(|gap| gap.candidates).map(|candidates| {
                let ids = candidates.iter().map(|&candidate| functions[candidate]);
                builder.function_set(ids.collect())
            });
            path = Some(builder.path_of(CallPath {
                across_gap,
                candidates,
                ..CallPath::of(path, functions[frame])
            }));
        }
        let weight = WeightSum::of(recorded.weight);
        builder.sample(event, thread, path.unwrap(), None, weight);
    }
    builder.finish()
}

/// The code as it is followed: every call goes by a function of its own that no sample shows.
fn followed(run: &Run, functions: &[FunctionId]) -> Followed {
    let own = functions.iter().zip(&run.code);
    let own = own.map(|(&id, code)| FollowedFunction {
        function: Some(id),
        calls_unknown: code.read && code.indirect,
        is_unread: !code.read,
    });
    let mut followed = Followed {
        functions: own.collect(),
        ..Followed::default()
    };
    let calls = run.calls.iter().filter(|(from, _)| run.code[*from].read);
    for &(from, to) in calls {
        let between = followed.functions.len() as u32;
        followed.functions.push(FollowedFunction::default());
        followed.calls.push((from as u32, between));
        followed.calls.push((between, to as u32));
    }
    followed
}

fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

/// Which functions reach which, by the calls that are known (S. Warshall, 1962).
fn reaches(run: &Run, known: Known, possible: bool) -> [[bool; FUNCTIONS]; FUNCTIONS] {
    let mut reaches = [[false; FUNCTIONS]; FUNCTIONS];
    let is_read = matches!(known, Known::All | Known::Followed);
    let unread = |f: usize| !run.code[f].read || !is_read;
    for (from, reaches) in reaches.iter_mut().enumerate() {
        for (to, reaches) in reaches.iter_mut().enumerate() {
            let in_code = run.calls.contains(&(from, to));
            *reaches |= in_code && run.code[from].read && known != Known::Nothing;
            let is_target = run.code[to].taken || unread(to) || known == Known::Followed;
            let is_indirect = unread(from) || run.code[from].indirect && is_target;
            *reaches |= possible && is_indirect;
        }
    }
    for recorded in &run.stacks {
        for pair in recorded.frames().windows(2) {
            reaches[pair[0].0][pair[1].0] = true;
        }
    }
    for via in 0..FUNCTIONS {
        for from in 0..FUNCTIONS {
            for to in 0..FUNCTIONS {
                reaches[from][to] |= reaches[from][via] && reaches[via][to];
            }
        }
    }
    reaches
}

/// The weight of the incomplete samples that may hide a function.
fn expected(run: &Run, reaches: &[[bool; FUNCTIONS]; FUNCTIONS], function: usize) -> u64 {
    let hides = |recorded: &&Recorded| {
        let frames = recorded.frames();
        let outside = recorded.cut.is_some() && reaches[function][frames[0].0];
        let within = frames.windows(2).any(|pair| {
            let (outer, (inner, gap)) = (pair[0].0, &pair[1]);
            gap.as_ref().is_some_and(|gap| match &gap.candidates {
                Some(candidates) => candidates.contains(&function),
                None => reaches[outer][function] && reaches[function][*inner],
            })
        });
        (outside || within) && !recorded.shows(function)
    };
    let hiding = run.stacks.iter().filter(hides);
    hiding.map(|recorded| recorded.weight).sum()
}

/// The weight of the incomplete samples that show a function.
fn shown(run: &Run, function: usize) -> u64 {
    let is_incomplete = |recorded: &Recorded| {
        let frames = recorded.frames();
        recorded.cut.is_some() || frames.iter().any(|(_, gap)| gap.is_some())
    };
    let stacks = run.stacks.iter();
    let showing = stacks.filter(|recorded| is_incomplete(recorded) && recorded.shows(function));
    showing.map(|recorded| recorded.weight).sum()
}

/// The functions on the way to each node, and what its weight is.
fn nodes(profile: &Profile, tree: &CallTree) -> Vec<(Vec<FunctionId>, NodeId, u64)> {
    let mut nodes: Vec<(Vec<FunctionId>, NodeId, u64)> = Vec::new();
    let mut place: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (id, node) in tree.nodes.enumerate() {
        if node.stub.is_some() {
            continue;
        }
        let above = node.parent.map(|parent| nodes[place[&parent]].0.clone());
        let mut way: Vec<FunctionId> = above.unwrap_or_default();
        way.push(node.function);
        place.insert(id, nodes.len());
        nodes.push((way, id, node.weight()));
    }
    let is_mark = |id: FunctionId| profile.functions[id].kind == FunctionKind::Mark;
    nodes.retain(|(way, ..)| !way.iter().any(|&id| is_mark(id)));
    nodes
}

fn trees(stacks: &Stacks) -> Vec<(CallTree, Direction)> {
    let degrees = Collapse::ALL.into_iter();
    let trees = degrees.flat_map(|degree| {
        let up = stacks.bottom_up(degree, Reach::default());
        [
            (stacks.top_down(degree), Direction::TopDown),
            (up, Direction::BottomUp),
        ]
    });
    trees.collect()
}

/// The outermost nodes of each function under which it has others, mark and all.
fn outermost(tree: &CallTree, function: FunctionId) -> Vec<NodeId> {
    let is_inside = |id: NodeId| {
        let parent = |id: NodeId| tree.nodes.at(id).parent;
        std::iter::successors(parent(id), |&id| parent(id))
            .any(|above| tree.nodes.at(above).function == function)
    };
    let nodes = tree.nodes.enumerate();
    let nodes = nodes.filter(|(_, node)| node.stub.is_none() && node.function == function);
    nodes
        .map(|(id, _)| id)
        .filter(|&id| !is_inside(id))
        .collect()
}

proptest! {
    #![proptest_config(laws::cases(1500))]

    #[test]
    fn a_true_total_is_in_its_range(run in runs()) {
        let truth = profile(&run, false, Known::Nothing);
        let truth = inclusive::by_function(&truth, &all(&truth));
        for known in [Known::All, Known::Some, Known::Followed, Known::Nothing] {
            let profile = profile(&run, true, known);
            let selection = all(&profile);
            let seen = inclusive::by_function(&profile, &selection);
            let hidden: Hidden = cut::by_function(&profile, &selection);
            let (sure, maybe) = (reaches(&run, known, false), reaches(&run, known, true));
            for function in 0..FUNCTIONS {
                let id = FunctionId::new(function);
                let (total, most) = (seen.total[id], hidden.at_most[id]);
                let range = total..=total + most.weight;
                prop_assert!(range.contains(&truth.total[id]), "{known:?} f{function}: {} in {range:?}", truth.total[id]);
                // And it is no larger than what is known asks for.
                let expected = [&sure, &maybe].map(|reaches| expected(&run, reaches, function));
                prop_assert_eq!(most.weight, expected[1], "{:?} f{}", known, function);
                prop_assert_eq!(most.unknown.is_none(), expected[0] == expected[1], "{:?} f{}", known, function);
                if known == Known::Nothing && most.unknown.is_some() {
                    prop_assert_eq!(most.unknown, Some(Unknown::Code));
                }
            }
            let mark = FunctionId::new(FUNCTIONS);
            prop_assert_eq!(hidden.at_most[mark], AtMost::default());
        }
    }

    #[test]
    fn a_true_node_is_in_its_range(run in runs()) {
        let truth = profile(&run, false, Known::Nothing);
        let was = all(&truth);
        let truths = trees(&Stacks::new(&truth, &was));
        for known in [Known::All, Known::Followed, Known::Nothing] {
            let profile = profile(&run, true, known);
            let selection = all(&profile);
            let hidden = cut::by_function(&profile, &selection);
            let seen = inclusive::by_function(&profile, &selection);
            let (sure, maybe) = (reaches(&run, known, false), reaches(&run, known, true));
            for ((was, _), (tree, direction)) in truths.iter().zip(trees(&Stacks::new(&profile, &selection))) {
                let at_most = tree::at_most(&profile, &selection, &tree, direction);
                let was = nodes(&truth, was);
                let was: BTreeMap<_, u64> = was.into_iter().map(|(way, _, weight)| (way, weight)).collect();
                for (way, id, weight) in nodes(&profile, &tree) {
                    let most = at_most[id].weight;
                    prop_assert!(weight <= most && most <= selection.total());
                    // Collapsed, a node may be merged into another one that cut stacks do not show.
                    let truth = was.get(&way).copied().unwrap_or(0);
                    prop_assert!(truth <= most, "{direction:?} {:?} {way:?}: {truth} of {most}", tree.collapse);
                    // A bound is known to be reached only as far as calls that are known allow it, for each
                    // function on the way.
                    let most = at_most[id];
                    let own = way[way.len() - 1];
                    let is_covered = direction == Direction::TopDown
                        && most.weight - weight == hidden.at_most[own].weight
                        && outermost(&tree, own).contains(&id);
                    let limits = if is_covered { &way[way.len() - 1..] } else { &way[..] };
                    let hidden_in = |of: &FunctionId, reaches| expected(&run, reaches, of.index());
                    let is_less = |of: &FunctionId| {
                        let hidden = hidden_in(of, &sure);
                        let below = weight + hidden + shown(&run, of.index());
                        seen.total[*of] + hidden < most.weight || *of == own && below < most.weight
                    };
                    let is_doubtful = |of: &FunctionId| hidden_in(of, &sure) < hidden_in(of, &maybe);
                    if most.unknown.is_none() {
                        let more = most.weight > weight;
                        let less = more.then(|| limits.iter().find(|of| is_less(of))).flatten();
                        prop_assert!(less.is_none(), "{known:?} {direction:?} {way:?}: {most:?}, not {less:?}");
                    } else {
                        prop_assert!(way.iter().any(is_doubtful), "{known:?} {direction:?} {way:?}: {most:?}");
                    }
                }
                if direction == Direction::BottomUp {
                    continue;
                }
                for (function, more) in hidden.at_most.enumerate().take(FUNCTIONS) {
                    let nodes = outermost(&tree, function);
                    if nodes.is_empty() {
                        continue;
                    }
                    let seen = seen.total[function];
                    let weight = |id: NodeId| tree.nodes.at(id).weight();
                    let low: u64 = nodes.iter().map(|&id| weight(id)).sum();
                    let high: u64 = nodes.iter().map(|&id| at_most[id].weight).sum();
                    // Collapsed, a sample can pass two of them.
                    prop_assert!(low == seen || low > seen && tree.collapse != Collapse::None);
                    prop_assert!(high >= seen + more.weight, "{:?}: {} of {}", function, high, seen + more.weight);
                }
            }
        }
    }

    #[test]
    fn a_true_cycle_is_in_its_range(run in runs()) {
        let profile = profile(&run, true, Known::All);
        let selection = all(&profile);
        let view = Summary::of(&profile, &selection, &graph::Options::default());
        let cycles: &Cycles = &view.cycles;
        for (cycle, members) in cycles.members().enumerate() {
            let is_in = |stack: &[usize]| stack.iter().any(|&f| members.contains(&FunctionId::new(f)));
            let on = run.stacks.iter().filter(|recorded| is_in(&recorded.stack));
            let truth: u64 = on.map(|recorded| recorded.weight).sum();
            let most = view.total_max(Entry::Cycle(cycle)).unwrap();
            let total = view.total(Entry::Cycle(cycle)) as u64;
            prop_assert!(total <= truth && truth <= most.weight, "{members:?}: {truth} of {total} to {most:?}");
        }
    }
}
