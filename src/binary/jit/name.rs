//! The names of compiled functions, and which of them are one function.

use std::borrow::Cow;
use std::fmt::Write;

/// The functions that an address may belong to.
///
/// ```
/// use proftool::base::Avma;
/// use proftool::binary::PerfMap;
/// let map = PerfMap::parse(b"1000 20 old\n1000 10 new\n");
/// let names = map.at(Avma(0x1000)).unwrap();
/// assert!(names.is_ambiguous());
/// assert_eq!(names.label(), "old or new (address reused)");
/// assert_eq!(map.at(Avma(0x1010)).unwrap().label(), "old");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitNames<'a> {
    pub(super) first: &'a str,
    pub(super) second: Option<&'a str>,
    // How many there are besides these two.
    pub(super) others: u32,
}

impl<'a> JitNames<'a> {
    /// Whether several functions were at the address, at times that are not known.
    pub fn is_ambiguous(&self) -> bool {
        self.second.is_some()
    }

    /// The name of the function, or of all that it may be.
    pub fn label(&self) -> Cow<'a, str> {
        let Some(second) = self.second else {
            return Cow::Borrowed(self.first);
        };
        let mut label = format!("{} or {second}", self.first);
        if self.others > 0 {
            write!(label, " or {} more", self.others).expect("writing to a String does not fail");
        }
        label.push_str(" (address reused)");
        Cow::Owned(label)
    }
}

// The tags under which V8 lists JavaScript functions. Which of them it uses for a function depends
// on when it compiles it; since version 11 there is only `JS`.
const V8_FUNCTION: [&str; 3] = ["JS", "LazyCompile", "Function"];
// Tags of other JavaScript code, which stay.
const V8_CODE: [&str; 2] = ["Script", "Eval"];
// V8's marks of how code was compiled: by the interpreter, the baseline and two optimizing
// compilers.
const V8_TIERS: [char; 4] = ['~', '^', '+', '*'];

// V8 compiles a hot function several times: `JS:~f a.js:1:2`, then `JS:*f a.js:1:2`. Both are the
// function `JS:f a.js:1:2`.
pub(super) fn function_name(code: &str) -> Cow<'_, str> {
    let Some((tag, rest)) = code.split_once(':') else {
        return Cow::Borrowed(code);
    };
    let is_function = V8_FUNCTION.contains(&tag);
    if !is_function && !V8_CODE.contains(&tag) {
        return Cow::Borrowed(code);
    }
    let Some(name) = rest.strip_prefix(V8_TIERS) else {
        return Cow::Borrowed(code);
    };
    let tag = if is_function { V8_FUNCTION[0] } else { tag };
    Cow::Owned(format!("{tag}:{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_of_a_javascript_function_are_one_function() {
        for code in [
            "JS:~f a.js:1:2",
            "JS:^f a.js:1:2",
            "JS:+f a.js:1:2",
            "JS:*f a.js:1:2",
            "LazyCompile:*f a.js:1:2",
            "Function:~f a.js:1:2",
        ] {
            assert_eq!(function_name(code), "JS:f a.js:1:2", "{code}");
        }
        assert_eq!(function_name("Script:~a.js"), "Script:a.js");
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for code in [
            "Calc.sum",
            "~Destructor",
            "std::vector<int>::~vector",
            "Builtin:ArrayTimSort",
            "LazyCompile:f",
            "JS:",
            "void A.b(int)",
            "",
        ] {
            assert_eq!(function_name(code), code);
        }
    }
}
