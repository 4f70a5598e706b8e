//! Self weight by source line: where in a function the samples were taken.

use rustc_hash::FxHashMap;

use crate::profile::{FunctionId, LineId, Profile, Selection};

/// The weight of the samples taken on one line of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWeight {
    /// The function, the innermost one where functions are inlined.
    pub function: FunctionId,
    /// The line.
    pub line: LineId,
    /// The weight.
    pub weight: u64,
}

/// The lines of all functions.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    // By function, then by decreasing weight, then by file and line.
    rows: Vec<LineWeight>,
}

impl Lines {
    /// The lines of a function, the hottest first; none where lines are not known.
    pub fn of(&self, function: FunctionId) -> &[LineWeight] {
        let start = self.rows.partition_point(|row| row.function < function);
        let end = self.rows.partition_point(|row| row.function <= function);
        &self.rows[start..end]
    }
}

/// The self weight of each source line of each function.
pub fn by_function(profile: &Profile, selection: &Selection) -> Lines {
    let mut weights: FxHashMap<(FunctionId, LineId), u64> = FxHashMap::default();
    for row in selection.rows() {
        if let Some(line) = row.line {
            let function = profile.paths[row.path].function;
            *weights.entry((function, line)).or_default() += row.weight;
        }
    }
    let mut rows: Vec<LineWeight> = weights
        .into_iter()
        .map(|((function, line), weight)| LineWeight {
            function,
            line,
            weight,
        })
        .collect();
    rows.sort_unstable_by(|a, b| {
        let place = |row: &LineWeight| {
            let line = &profile.lines[row.line];
            (&line.file, line.line, row.line)
        };
        (a.function.cmp(&b.function))
            .then(b.weight.cmp(&a.weight))
            .then_with(|| place(a).cmp(&place(b)))
    });
    Lines { rows }
}
