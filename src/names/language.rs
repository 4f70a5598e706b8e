//! The language of a name of which only the text is known.

use super::brackets::group;
use crate::base::Language;

/// What stands between the names of an address that several functions had.
pub(super) const ALTERNATIVE: &str = " or ";

/// The language of a demangled name, where nothing but the text is known, as of folded stacks: C++
/// or Rust if no other language writes such names, and unknown in doubt. A path without arguments
/// may be of either, and is shortened alike.
///
/// ```
/// use proftool::base::Language;
/// use proftool::names::of_text;
/// assert_eq!(of_text("std::vector<int>::at(int)"), Language::Cpp);
/// assert_eq!(of_text("<a::Item as b::Show>::show"), Language::Rust);
/// for name in [
///     "A$P.<init>(int)", "Socket.<anonymous>", "net/http.(*conn).serve", "<module>", "main",
///     "block in Foo::Bar#each", "LazyCompile:*fib /app/x.js:3", "System.Foo::Bar(int32)",
/// ] {
///     assert_eq!(of_text(name), Language::Unknown, "{name}");
/// }
/// ```
pub fn of_text(name: &str) -> Language {
    if name.contains(ALTERNATIVE) {
        return Language::Several;
    }
    if !has_structure(name) {
        return Language::Unknown;
    }
    let of_rust = ["::<", "<impl ", "{closure", "{async"];
    if name.starts_with('<') || of_rust.iter().any(|mark| name.contains(mark)) {
        Language::Rust
    } else {
        Language::Cpp
    }
}

/// Whether a name is a path, up to its first arguments or parameters if it has some. What stands in
/// other brackets says nothing: `[libc.so.6]`, `{closure a.rs:1}`.
fn has_structure(name: &str) -> bool {
    if name.starts_with("py::") {
        return false;
    }
    let (mut depth, mut before, mut is_path) = (0usize, None, false);
    let mut characters = name.char_indices();
    while let Some((at, c)) = characters.next() {
        let rest = &name[at + c.len_utf8()..];
        match c {
            '{' | '[' if at > 0 => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            '[' => return false,
            '<' | '(' if name[..at].contains("operator") => return true,
            '<' if at == 0 => {
                return group(name).is_some_and(|length| name[length..].starts_with("::"));
            }
            '(' if at == 0 => return rest.starts_with("anonymous namespace)"),
            '<' | '(' => return before != Some(' '),
            ':' if rest.starts_with(':') => {
                is_path = true;
                characters.next();
            }
            // Clang's lambdas are called `$_0`.
            '$' if rest.starts_with('_') => {}
            '/' if name[..at].ends_with("operator") => {}
            // `step #2`, which tells functions apart.
            '#' if before == Some(' ') => {}
            '.' | '/' | '$' | '#' | ':' | ';' | '@' | '\\' => return false,
            _ => {}
        }
        before = Some(c);
    }
    is_path
}
