//! A table of typed cells.

/// What a column holds, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A number; aligned right, never shortened. The first ones of a table are always shown, so what
    /// matters most comes first.
    Figure,
    /// A number that repeats a share of the same row in the event's unit, or that a reader misses least; written as a
    /// figure, and left out first where names would have to be shortened.
    Spare,
    /// A share that a reader's eye should find when it is large.
    Heat,
    /// What the figure before it is at most; shown with that figure, or else that figure is marked as a lower bound.
    Bound,
    /// The names that the table is about; takes what width is left.
    Name,
    /// Lines of code, cut at their ends; takes what width is left, too.
    Code,
    /// A text that may be shortened, and left out where there is no room.
    Aside,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading for machines.
    pub key: &'static str,
    /// The heading for people.
    pub title: &'static str,
    /// What it holds.
    pub role: Role,
}

impl Column {
    /// A column.
    pub fn new(key: &'static str, title: &'static str, role: Role) -> Column {
        Column { key, title, role }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Nothing,
    /// A text from outside.
    Text(String),
    /// A text with the lines of a tree before it.
    Branch {
        /// The lines.
        guide: Guide,
        /// The text from outside.
        text: String,
    },
    /// The same, for something that no sample shows.
    Faint {
        /// The lines.
        guide: Guide,
        /// The text from outside.
        text: String,
    },
    /// A weight in the event's unit.
    Weight(u64),
    /// A number of things.
    Count(u64),
    /// A part of a whole, shown as a percentage.
    Share {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A part of a whole, shown as a percentage with a question mark: it cannot be more, but whether
    /// it can be as much is not known.
    Limit {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A weight in the event's unit, divided by a number of calls.
    PerCall {
        /// The weight of all.
        weight: u64,
        /// The number of calls, above 0.
        calls: u64,
    },
}

/// What stands before a text: the lines of a tree, an arrow, a mark.
///
/// ```
/// use proftool::view::table::Guide;
/// let guide = Guide::of_level(12, "│ │   │ ", "└ ");
/// assert_eq!(guide.within(80), "│ │   │ └ ");
/// assert_eq!(guide.within(9), "⋯12 │ └ ");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guide {
    /// Two characters for each step to the side.
    steps: String,
    /// What stands directly before the text.
    mark: String,
    /// How deep in the tree, for guides of trees.
    level: Option<u32>,
    /// Whether there are more steps than [`Guide::STEPS`].
    is_deep: bool,
}

impl Guide {
    /// The maximum number of steps to the side that are drawn.
    pub const STEPS: usize = 14;
    /// How many steps are drawn where there are more, or where there is no room for them.
    const LAST_STEPS: usize = 6;

    /// The lines before a node of a tree: two characters for each of its steps to the side, and what leads to its text.
    /// Of more than [`STEPS`](Guide::STEPS) steps only the last ones are shown, after the level.
    pub fn of_level(level: u32, steps: impl Into<String>, mark: impl Into<String>) -> Guide {
        let mut steps = steps.into();
        let is_deep = steps.chars().count() > 2 * Guide::STEPS;
        if is_deep {
            steps = last_steps(&steps, Guide::LAST_STEPS).to_owned();
        }
        Guide {
            steps,
            mark: mark.into(),
            level: Some(level),
            is_deep,
        }
    }

    /// Adds a mark directly before the text.
    pub fn push(&mut self, mark: &str) {
        self.mark.push_str(mark);
    }

    /// Whether [`within`](Guide::within) can shorten it.
    pub fn can_shrink(&self) -> bool {
        self.level.is_some()
    }

    /// The guide in at most `width` characters, each of one column: the first steps of a tree give way to the level,
    /// as in `⋯17 │ ├ `. What leads to the text stays, however narrow it is.
    pub fn within(&self, width: usize) -> String {
        let whole = self.steps.chars().count() + self.mark.chars().count();
        let Some(level) = self.level else {
            return format!("{}{}", self.steps, self.mark);
        };
        if !self.is_deep && whole <= width {
            return format!("{}{}", self.steps, self.mark);
        }
        let start = format!("⋯{level} ");
        let others = start.chars().count() + self.mark.chars().count();
        let steps = (width.saturating_sub(others) / 2).min(Guide::LAST_STEPS);
        format!("{start}{}{}", last_steps(&self.steps, steps), self.mark)
    }
}

impl<S: Into<String>> From<S> for Guide {
    fn from(mark: S) -> Guide {
        Guide {
            mark: mark.into(),
            ..Guide::default()
        }
    }
}

/// The last steps of two characters each.
fn last_steps(steps: &str, number: usize) -> &str {
    let skipped = steps.chars().count().saturating_sub(2 * number);
    let at = steps
        .char_indices()
        .nth(skipped)
        .map_or(steps.len(), |(at, _)| at);
    &steps[at..]
}

/// Rows of cells; every row has a cell for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Table {
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Takes the columns with these keys away.
    pub fn without(mut self, keys: &[&str]) -> Table {
        let kept: Vec<bool> = self
            .columns
            .iter()
            .map(|column| !keys.contains(&column.key))
            .collect();
        let retain = |i: &mut usize| {
            *i += 1;
            kept[*i - 1]
        };
        let mut i = 0;
        self.columns.retain(|_| retain(&mut i));
        for row in &mut self.rows {
            let mut i = 0;
            row.retain(|_| retain(&mut i));
        }
        self
    }
}
