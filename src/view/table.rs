//! A table of typed cells.

use crate::names::Label;

/// What a column holds, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A number; aligned right, never shortened. The first ones of a table are always shown, so
    /// what matters most comes first.
    Figure,
    /// A number that repeats a share of the same row in the event's unit, or that a reader misses
    /// least; written as a figure, and left out first where names would have to be shortened.
    Spare,
    /// A share that a reader's eye should find when it is large.
    Heat,
    /// What the figure before it is at most; shown with that figure, or else that figure is marked
    /// as a lower bound.
    Bound,
    /// The names that the table is about; takes what width is left.
    Name,
    /// Lines of code, cut at their ends; takes what width is left, too.
    Code,
    /// A word that answers; never shortened or left out.
    Word,
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
    /// The heading of what stands beside or below that.
    pub second: Option<Second>,
    /// What it holds.
    pub role: Role,
}

/// The heading of the second thing that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Of what stands below it, in a tree.
    Below(&'static str),
    /// Of whom it calls, in the same row.
    Callee(&'static str),
}

impl Column {
    /// A column.
    pub fn new(key: &'static str, title: &'static str, role: Role) -> Column {
        Column {
            key,
            title,
            second: None,
            role,
        }
    }

    /// The same with a second heading.
    pub fn with(self, second: Second) -> Column {
        Column {
            second: Some(second),
            ..self
        }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Nothing,
    /// A text from outside.
    Text(String),
    /// What the row is about.
    Name(Box<Name>),
    /// A weight in the event's unit.
    Weight(u64),
    /// A number of things.
    Count(u64),
    /// The number of an entry in a listing; 0 for none.
    Index(u32),
    /// A part of a whole, shown as a percentage.
    Share {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A part of a whole, shown as a percentage with a question mark: it cannot be more, but
    /// whether it can be as much is not known.
    Limit {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A weight less another, in the event's unit.
    Difference(i64),
    /// The same in percent of the other, which is above 0.
    Growth {
        /// The weight less the other.
        difference: i64,
        /// The other.
        of: u64,
    },
    /// A number in units of another one, above 0: `2.0 ×`.
    Factor {
        /// The number.
        number: u64,
        /// The other.
        of: u64,
    },
    /// A weight in the event's unit, divided by a number of calls.
    PerCall {
        /// The weight of all.
        weight: u64,
        /// The number of calls, above 0.
        calls: u64,
    },
}

/// What a row is about, and its place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// What stands before it.
    pub guide: Guide,
    /// What it is.
    pub what: What,
    /// Whether no sample shows it.
    pub is_faint: bool,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A function, or what stands in its place.
    Label(Label),
    /// A call.
    Call(Call),
    /// A chain of calls as one row.
    Fold {
        /// The number of frames, with the last.
        frames: usize,
        /// Whose they are, those of the most frames first.
        owners: Vec<String>,
        /// The last one.
        to: Label,
    },
    /// A cycle as a whole.
    Cycle {
        /// Its number.
        number: usize,
        /// The number of its entry in a listing; 0 for none.
        index: Option<u32>,
    },
    /// This number of others.
    More(usize),
    /// An instruction.
    Instruction {
        /// Its text.
        text: String,
        /// What it calls, or jumps to.
        callee: Option<String>,
    },
    /// A source line between instructions.
    Source {
        /// The file and the number of the line.
        place: String,
        /// The function that is inlined there.
        inlined: Option<String>,
        /// Its text, where it was found.
        text: Option<String>,
    },
}

/// A caller and whom it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The caller.
    pub from: Label,
    /// The callees.
    pub to: Vec<Label>,
    /// Whether there are more callees.
    pub has_more: bool,
}

impl Call {
    /// A call of one function.
    pub fn new(from: Label, to: Label) -> Call {
        Call {
            from,
            to: vec![to],
            has_more: false,
        }
    }
}

impl Cell {
    /// What a row is about, in a list.
    pub fn name(what: impl Into<What>) -> Cell {
        Cell::beside(Guide::None, what)
    }

    /// What a row is about, in its place among others.
    pub fn beside(guide: Guide, what: impl Into<What>) -> Cell {
        Cell::Name(Box::new(Name {
            guide,
            what: what.into(),
            is_faint: false,
        }))
    }
}

impl From<Label> for What {
    fn from(label: Label) -> What {
        What::Label(label)
    }
}

impl From<Call> for What {
    fn from(call: Call) -> What {
        What::Call(call)
    }
}

impl From<&str> for What {
    fn from(text: &str) -> What {
        What::Label(text.into())
    }
}

impl What {
    /// Whether it was restored from the code.
    pub fn is_restored(&self) -> bool {
        match self {
            What::Label(label) | What::Fold { to: label, .. } => label.is_restored,
            _ => false,
        }
    }
}

/// What stands before a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Guide {
    /// Nothing.
    #[default]
    None,
    /// The name is part of the one above.
    Part,
    /// It calls the function that the rows are about.
    Caller,
    /// It is a member of the cycle that the rows are about.
    Member,
    /// The function that the rows are about calls it.
    Callee,
    /// The lines of a tree.
    Tree {
        /// How deep in the tree it is.
        level: u32,
        /// For each step to the side, whether a line goes on below; no more than one over
        /// [`STEPS`](Guide::STEPS) of the last ones.
        steps: Vec<bool>,
        /// How it hangs on the node above.
        branch: Branch,
    },
    /// Arrows from jumps to where they lead.
    Jumps(Vec<Lines>),
}

/// How a node of a tree hangs on the one above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// It is the only one.
    Only,
    /// Others follow.
    Inner,
    /// It is the last one.
    Last,
}

/// The lines that go from one column of a row to its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// To the row above.
    pub up: bool,
    /// To the row below.
    pub down: bool,
    /// To the column before.
    pub left: bool,
    /// To the column behind.
    pub right: bool,
    /// Whether it is the head of an arrow instead.
    pub is_head: bool,
}

impl Guide {
    /// The maximum number of steps to the side that are drawn.
    pub const STEPS: usize = 14;
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

    /// Takes those of the columns with these keys away in which no row has anything.
    pub fn without_empty(self, keys: &[&str]) -> Table {
        let is_empty = |column: usize| {
            let mut cells = self.rows.iter().map(|row| &row[column]);
            cells.all(|cell| matches!(cell, Cell::Nothing))
        };
        let columns = self.columns.iter().enumerate();
        let empty = columns.filter(|(place, it)| keys.contains(&it.key) && is_empty(*place));
        let empty: Vec<&str> = empty.map(|(_, column)| column.key).collect();
        self.without(&empty)
    }
}
