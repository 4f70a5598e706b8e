//! Entries on stacks in place of unknown functions: marks, and placeholders for functions that a
//! profiler could not name.

/// The mark that stands outermost on a stack which was cut: by the kernel's limit of frames, or
/// where its copy ends.
pub const TRUNCATED: &str = "[truncated]";
/// The mark that stands outermost on a stack which led to no code, or to no return address.
pub const BROKEN: &str = "[broken stack]";
/// The mark that replaces the rarest stacks of a live profile, which are dropped to bound memory.
pub const SELDOM: &str = "[seldom]";
/// The mark for off-CPU time that was recorded without a stack.
pub const NO_SWITCH_STACK: &str = "[off-CPU, no stack]";
/// The mark that stands for the stack of a thread that was blocked already when the recording
/// began.
pub const BLOCKED_BEFORE: &str = "[blocked before the recording]";

/// The name of the module that is the kernel itself.
pub const KERNEL: &str = "[kernel]";

/// The mark that stands for a sample without an address.
pub const NO_ADDRESS: &str = "[no address]";

/// The mark that stands for ticks of a histogram at addresses outside of all functions.
pub const OUTSIDE: &str = "[outside of functions]";

/// What a frame is called that has no name at all.
pub const UNKNOWN: &str = "[unknown]";

/// What stands in folded stacks between a function and one that it did not call itself: frames are
/// missing there.
pub const FRAMES_MISSING: &str = "[frames missing]";

/// Whether a frame is one of the marks.
pub fn is_mark(frame: &str) -> bool {
    const MARKS: [&str; 7] = [
        TRUNCATED,
        BROKEN,
        SELDOM,
        NO_SWITCH_STACK,
        BLOCKED_BEFORE,
        NO_ADDRESS,
        OUTSIDE,
    ];
    MARKS.contains(&frame)
}

/// What stands for the function of a frame that a profiler could not name: the module in brackets,
/// or [`UNKNOWN`]. `None` where the frame names a function, a mark, a thread or an address.
///
/// The position of the frame on its stack may follow, in the words of [`Standing`]; it is not
/// returned.
///
/// ```
/// use proftool::base::{UNKNOWN, placeholder};
/// for frame in ["", "??", "unknown", "[unknown]", "[Unknown]_[k]", "[unknown] called by main"] {
///     assert_eq!(placeholder(frame), Some(UNKNOWN), "{frame}");
/// }
/// assert_eq!(placeholder("[libc.so.6]"), Some("[libc.so.6]"));
/// assert_eq!(placeholder("[[vdso]]"), Some("[[vdso]]"));
/// for frame in ["main", "[truncated]", "[unmapped]+0x12", "[libc.so.6 <7f12>]", "[main tid=7]"] {
///     assert_eq!(placeholder(frame), None);
/// }
/// ```
pub fn placeholder(frame: &str) -> Option<&str> {
    const WORDS: [&str; 6] = ["unknown", "<unknown>", "(unknown)", "??", "???", UNKNOWN];
    // What `stackcollapse-perf.pl` and inferno append.
    const ANNOTATIONS: [&str; 5] = ["_[k]", "_[j]", "_[i]", "_[w]", "_[u]"];
    let frame = frame.trim_ascii();
    let first = frame.bytes().next().unwrap_or(b'?');
    if !b"[<(?uU".contains(&first) || is_mark(frame) {
        return None;
    }
    let bare = ANNOTATIONS
        .iter()
        .find_map(|end| frame.strip_suffix(end))
        .unwrap_or(frame);
    let is_word = |text: &str| WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if bare.is_empty() || is_word(bare) {
        return Some(UNKNOWN);
    }
    let mut end = bare.strip_prefix('[')?.find(']')? + 2;
    if bare.starts_with("[[") {
        end += usize::from(bare[end..].starts_with(']'));
    }
    let (head, rest) = bare.split_at(end);
    let has_more = ["tid=", " <", "+0x"].iter().any(|text| head.contains(text));
    if has_more || !(rest.is_empty() || Standing::is_told(rest)) {
        return None;
    }
    Some(if is_word(head) { UNKNOWN } else { head })
}

/// Where a frame that nobody could name stands on its stack, in words that follow a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// This number of calls further in than this function, with no named frame between.
    Below(&'a str, usize),
    /// This number of calls further out than this function, with no named frame between or outside.
    Above(&'a str, usize),
    /// This number of frames from the outermost, on a stack without any name.
    Alone(usize),
}

impl Standing<'_> {
    fn is_told(text: &str) -> bool {
        let is_number = |text: &str| text.parse::<usize>().is_ok();
        let Some(text) = text.strip_prefix(' ') else {
            return false;
        };
        let counted = |text: &str| {
            let (number, rest) = text.split_once(' ').unwrap_or_default();
            is_number(number)
                && (rest.starts_with("calls below ") || rest.starts_with("calls above "))
        };
        text.starts_with("called by ")
            || text.starts_with("that calls ")
            || text.strip_prefix("at depth ").is_some_and(|depth| {
                let (depth, _) = depth.split_once(' ').unwrap_or((depth, ""));
                is_number(depth)
            })
            || counted(text)
    }
}

impl std::fmt::Display for Standing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Standing::Below(name, 1) => write!(f, " called by {name}"),
            Standing::Below(name, calls) => write!(f, " {calls} calls below {name}"),
            Standing::Above(name, 1) => write!(f, " that calls {name}"),
            Standing::Above(name, calls) => write!(f, " {calls} calls above {name}"),
            Standing::Alone(depth) => write!(f, " at depth {depth}"),
        }
    }
}
