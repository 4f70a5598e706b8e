//! Which functions are on exactly the same samples?
//!
//! A function that only calls the next one has exactly the same samples: a list by total may show
//! one row for both. Equal totals do not show that. In the second profile below `x` and `y` have
//! equal totals and no sample in common.
//!
//! ```text
//!   main;run;parse 6        main and run: all 10        x;a 5     x: the first 5
//!   main;run;emit  4        parse: 6, emit: 4           y;b 5     y: the last 5
//! ```
//!
//! The walk through the tree of calls passes the stacks that were sampled in one order, so what
//! lies under a path is an interval of them. The samples of a function are the intervals of its
//! outermost paths, with adjacent ones joined. Two functions have the same intervals only if they
//! have the same samples.

use crate::base::IdVec;
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

/// Functions that are on exactly the same samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The functions, the one that is outermost on the first of their stacks first.
    pub members: Vec<Member>,
}

/// A function of a [`Group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The function.
    pub function: FunctionId,
    /// Whether it is on some stack more than once.
    pub recurses: bool,
}

// What the walk has seen of a function that was asked for.
#[derive(Clone, Debug, Default)]
struct Seen {
    // The number of its frames on the way to the path at hand.
    depth: u32,
    recurses: bool,
    // Its samples: intervals of the stacks in the order of the walk, disjoint, rising and with a
    // gap between them.
    intervals: Vec<(u32, u32)>,
    // The number of sampled stacks before its open outermost path.
    begin: u32,
    // The place at which it was seen first, in the order of the walk.
    first: u32,
}

/// Groups these functions; functions without samples, and groups of one, are left out. Linear in
/// paths and rows, apart from sorting.
///
/// ```
/// use proftool::analysis::same_samples;
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // main, run, parse, emit by order of appearance
/// let text = "main;run;parse 5\nmain;run;emit 5\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let functions: Vec<FunctionId> = profile.functions.ids().collect();
/// let groups = same_samples::groups(&profile, &selection, &functions);
/// assert_eq!(groups.len(), 1);
/// let members = groups[0].members.iter().map(|member| member.function.index());
/// assert_eq!(members.collect::<Vec<_>>(), [0, 1]);
/// ```
pub fn groups(profile: &Profile, selection: &Selection, functions: &[FunctionId]) -> Vec<Group> {
    // The place of each function in `seen`.
    let mut places: IdVec<FunctionId, Option<usize>> = IdVec::filled(None, profile.functions.len());
    for (place, &function) in functions.iter().enumerate() {
        places[function] = Some(place);
    }
    let seen = walk(profile, selection, &places, functions.len());
    // A function that is given twice is seen at its last place.
    let mut sampled: Vec<usize> = (0..functions.len()).collect();
    sampled.retain(|&place| !seen[place].intervals.is_empty());
    sampled.sort_unstable_by_key(|&place| (&seen[place].intervals, seen[place].first));
    let same = sampled.chunk_by(|&a, &b| seen[a].intervals == seen[b].intervals);
    let member = |&place: &usize| Member {
        function: functions[place],
        recurses: seen[place].recurses,
    };
    let several = same.filter(|places| places.len() > 1);
    let group = |places: &[usize]| Group {
        members: places.iter().map(member).collect(),
    };
    several.map(group).collect()
}

fn walk(
    profile: &Profile,
    selection: &Selection,
    places: &IdVec<FunctionId, Option<usize>>,
    functions: usize,
) -> Vec<Seen> {
    let paths = &profile.paths;
    let mut is_sampled = IdVec::filled(false, paths.len());
    for row in selection.rows() {
        is_sampled[row.path] = true;
    }
    let mut seen = vec![Seen::default(); functions];
    // There are no more stacks than paths, and these have ids of 32 bits.
    let (mut stacks, mut frames) = (0u32, 0u32);
    let weights = PathWeights::of(profile, selection);
    Links::new(profile, &weights).walk(paths, |step| {
        let (Step::Enter(path) | Step::Leave(path)) = step;
        let row = places[paths[path].function].and_then(|place| seen.get_mut(place));
        match step {
            Step::Enter(_) => {
                frames += 1;
                if let Some(row) = row {
                    if row.depth == 0 {
                        row.begin = stacks;
                    } else {
                        row.recurses = true;
                    }
                    row.depth += 1;
                    if row.first == 0 {
                        row.first = frames;
                    }
                }
                stacks += u32::from(is_sampled[path]);
            }
            Step::Leave(_) => {
                let Some(row) = row else { return };
                row.depth -= 1;
                if row.depth == 0 && row.begin < stacks {
                    match row.intervals.last_mut() {
                        Some(last) if last.1 == row.begin => last.1 = stacks,
                        _ => row.intervals.push((row.begin, stacks)),
                    }
                }
            }
        }
    });
    seen
}
