//! Questions that follow from an answer.

/// A question that follows from a report. Another view answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which calls led to the samples.
    CallTree,
    /// Which calls surround the hottest function, which is selected by this regular expression or
    /// label.
    AroundHottest(String),
    /// What the function with this label calls.
    Below(String),
    /// What surrounds the function with this label, and which of its lines are hot.
    Detail(String),
    /// What each function's callers and callees are.
    CallersAndCallees {
        /// Whether the answer is an estimate from counted calls.
        estimated: bool,
    },
    /// Which functions recurse, and how deep.
    Recursion,
    /// What the total of each function is.
    Totals,
    /// What the stacks look like as a picture.
    FlameGraph,
}

impl Question {
    /// Returns what the answer shows.
    pub fn shows(&self) -> &'static str {
        match self {
            Question::CallTree => "the call tree",
            Question::AroundHottest(_) => "the calls around the hottest function",
            Question::Below(_) => "what it calls",
            Question::Detail(_) => "its callers, callees and lines",
            Question::CallersAndCallees { estimated: false } => {
                "each function with its callers and callees"
            }
            Question::CallersAndCallees { estimated: true } => {
                "each function with its callers and callees, estimated"
            }
            Question::Recursion => "recursion: cycles and depth",
            Question::Totals => "all functions by total",
            Question::FlameGraph => "a flame graph",
        }
    }
}
