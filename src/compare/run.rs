//! The figures of one run, by function.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Side;
use super::identity::Identities;
use crate::base::IdVec;
use crate::profile::{
    About, Counts, FunctionId, Links, PathId, PathWeights, Profile, SelectedRow, Selection, Step,
    TimedRows,
};

/// The number of parts into which the time of a single run is divided, at most twice as many.
const BLOCKS: u32 = 32;

/// What is known of one function in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// The weight of the samples taken in it.
    pub own: f64,
    /// The weight of the samples with it on the stack, each counted once.
    pub total: f64,
    /// How many calls of it were made, if all were counted.
    pub calls: Option<u64>,
    /// The variance of its own weight between blocks of time, as of the whole run.
    pub variance: f64,
}

/// What is known of a call of one function by another in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ArcFigures {
    /// The part of the callee's own weight for which this function called it.
    pub own: f64,
    /// The weight of the samples that show the call, once for each time.
    pub through: f64,
    /// How many calls were made, if all were counted.
    pub calls: Option<u64>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// Where and when it was recorded.
    pub about: About,
    /// The weight of all samples.
    pub total: f64,
    /// The variance of it within the run.
    pub variance: f64,
    /// The weight of one sample, on average.
    pub weight: f64,
    /// The number of samples.
    pub samples: u64,
    /// By the number of the function.
    pub functions: FxHashMap<u32, Figures>,
    /// By the numbers of caller and callee.
    pub arcs: FxHashMap<(u32, u32), ArcFigures>,
    /// The own weight of functions by line, counted from the declaration, which moves with what is
    /// above the function.
    pub lines: FxHashMap<(u32, i64), f64>,
}

impl Run {
    /// The figures of a selection. Linear in rows, paths and functions.
    pub fn of(
        profile: &Profile,
        selection: &Selection,
        times: Option<&TimedRows>,
        (side, identities): (Side, &mut Identities),
    ) -> Run {
        let total = selection.total() as f64;
        let weight = selection.squares() as f64 / total.max(1.0);
        let mut numbers: IdVec<FunctionId, Option<u32>> =
            IdVec::filled(None, profile.functions.len());
        // Functions that are known from code only have neither weight nor calls.
        let mut ran = profile.functions_on_stacks();
        for count in profile.counts.iter().flat_map(Counts::calls) {
            ran[count.to] = true;
            count.from.into_iter().for_each(|from| ran[from] = true);
        }
        for (id, function) in profile.functions.enumerate().filter(|(id, _)| ran[*id]) {
            numbers[id] = identities.number(side, profile, function);
        }
        let mut run = Run {
            about: profile.about.clone(),
            total,
            variance: selection.squares() as f64,
            weight,
            samples: selection.samples(),
            ..Run::default()
        };
        run.add_weights(profile, selection, &numbers, identities.len());
        run.add_counts(profile, &numbers);
        for figures in run.functions.values_mut() {
            figures.variance = figures.own * weight;
        }
        if let Some(times) = times {
            run.add_blocks(profile, times, &numbers);
        }
        run
    }

    /// Multiplies all weights.
    pub fn scale(&mut self, factor: f64) {
        self.total *= factor;
        self.weight *= factor;
        self.variance *= factor * factor;
        for figures in self.functions.values_mut() {
            figures.own *= factor;
            figures.total *= factor;
            figures.variance *= factor * factor;
        }
        for arc in self.arcs.values_mut() {
            arc.own *= factor;
            arc.through *= factor;
        }
        self.lines.values_mut().for_each(|weight| *weight *= factor);
    }

    fn add_weights(
        &mut self,
        profile: &Profile,
        selection: &Selection,
        numbers: &IdVec<FunctionId, Option<u32>>,
        functions: usize,
    ) {
        let number = |path: PathId| numbers[profile.paths[path].function];
        // The nearest caller that is another function.
        let caller = |path: PathId| {
            let own = number(path);
            let outwards = profile.paths.outwards(path);
            let mut others = outwards.map(|path| numbers[path.function]);
            others.find(|other| *other != own).flatten()
        };
        for row in selection.rows() {
            let Some(function) = number(row.path) else {
                continue;
            };
            let weight = row.weight as f64;
            self.functions.entry(function).or_default().own += weight;
            if let Some(line) = self::line(profile, row) {
                *self.lines.entry((function, line)).or_default() += weight;
            }
            if let Some(caller) = caller(row.path) {
                self.arcs.entry((caller, function)).or_default().own += weight;
            }
        }
        let of_path = PathWeights::of(profile, selection);
        let mut depth: Vec<u32> = vec![0; functions];
        let links = Links::new(profile, &of_path);
        links.walk(&profile.paths, |step| match step {
            Step::Enter(path) => {
                let Some(function) = number(path) else {
                    return;
                };
                let depth = &mut depth[function as usize];
                if *depth == 0 {
                    let figures = self.functions.entry(function).or_default();
                    figures.total += of_path.total(path) as f64;
                }
                *depth += 1;
                let from = profile.paths[path].caller.and_then(number);
                if let Some(from) = from.filter(|from| *from != function) {
                    let arc = self.arcs.entry((from, function)).or_default();
                    arc.through += of_path.total(path) as f64;
                }
            }
            Step::Leave(path) => {
                if let Some(function) = number(path) {
                    depth[function as usize] -= 1;
                }
            }
        });
    }

    fn add_counts(&mut self, profile: &Profile, numbers: &IdVec<FunctionId, Option<u32>>) {
        let Some(counts) = &profile.counts else {
            return;
        };
        // What is one function here may be several of the profile, and a call that was not counted
        // may have been made through a pointer.
        let mut partial: FxHashSet<u32> = FxHashSet::default();
        for (id, number) in numbers.enumerate() {
            if let Some(number) = *number
                && !counts.has_all_of(id)
            {
                partial.insert(number);
            }
        }
        let sites = counts
            .calls()
            .iter()
            .filter_map(|it| Some((numbers[it.to]?, it)));
        partial.extend(
            sites
                .clone()
                .filter(|(_, it)| it.is_least)
                .map(|(to, _)| to),
        );
        for number in numbers.iter().flatten().filter(|it| !partial.contains(it)) {
            self.functions.entry(*number).or_default().calls = Some(0);
        }
        for (to, count) in sites {
            if let Some(calls) = &mut self.functions.entry(to).or_default().calls {
                *calls += count.calls;
            }
            if let Some(from) = count.from.and_then(|from| numbers[from])
                && !partial.contains(&to)
            {
                let arc = self.arcs.entry((from, to)).or_default();
                arc.calls = Some(arc.calls.unwrap_or(0) + count.calls);
            }
        }
    }

    // Samples that follow each other are of one phase or one request: blocks of time vary more than
    // independent samples would.
    fn add_blocks(
        &mut self,
        profile: &Profile,
        times: &TimedRows,
        numbers: &IdVec<FunctionId, Option<u32>>,
    ) {
        let mut blocks = 0.0;
        // By function the sum of the squares of its blocks; the whole run at `None`.
        let mut squares: FxHashMap<Option<u32>, f64> = FxHashMap::default();
        for rows in times.blocks(BLOCKS) {
            blocks += 1.0;
            let mut weights: FxHashMap<Option<u32>, f64> = FxHashMap::default();
            for row in rows {
                let weight = row.weight as f64;
                *weights.entry(None).or_default() += weight;
                if let Some(number) = numbers[profile.paths[row.path].function] {
                    *weights.entry(Some(number)).or_default() += weight;
                }
            }
            for (function, weight) in weights {
                *squares.entry(function).or_default() += weight * weight;
            }
        }
        // Blocks of the same length that are drawn independently add up to a sum of this variance.
        let variance = |squares: f64, sum: f64| {
            let between = (squares - sum * sum / blocks) / f64::max(blocks - 1.0, 1.0);
            blocks * between
        };
        for (function, squares) in squares {
            match function {
                None => self.variance = self.variance.max(variance(squares, self.total)),
                Some(function) => {
                    if let Some(figures) = self.functions.get_mut(&function) {
                        figures.variance = figures.variance.max(variance(squares, figures.own));
                    }
                }
            }
        }
    }
}

// Where in its function a sample was taken: the number of lines after the declaration.
fn line(profile: &Profile, row: &SelectedRow) -> Option<i64> {
    let function = &profile.functions[profile.paths[row.path].function];
    let declared = function.declared_at.as_ref()?;
    let line = &profile.lines[row.line?];
    (line.file == declared.file).then(|| i64::from(line.line) - i64::from(declared.line))
}
