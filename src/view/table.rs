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
        guide: String,
        /// The text from outside.
        text: String,
    },
    /// The same, of something that nobody saw happen.
    Faint {
        /// The lines.
        guide: String,
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
