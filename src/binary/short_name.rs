//! Names as people say them: without parameters, type arguments and return types.

use std::borrow::Cow;

/// The operators of C++ that contain brackets, longest first.
const OPERATORS: [&str; 14] = [
    "->*", "<=>", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "<", ">", ",",
];

/// What a C++ thunk is called before the name of its target.
const THUNKS: [&str; 2] = ["non-virtual thunk to ", "virtual thunk to "];

/// The short form of a demangled name. Paths stay, since two functions of one name are easily
/// confused.
///
/// ```
/// use proftool::binary::short_name;
/// assert_eq!(short_name("<alloc::vec::Vec<T> as core::ops::Drop>::drop"), "Vec::drop");
/// assert_eq!(short_name("core::ptr::drop_in_place::<[u8; 4]>"), "core::ptr::drop_in_place");
/// assert_eq!(short_name("void std::sort<int*>(int*, int*)"), "std::sort");
/// assert_eq!(short_name("main"), "main");
/// ```
pub fn short_name(full: &str) -> Cow<'_, str> {
    if full.starts_with('[') || !full.contains(['<', '(', ' ']) {
        return Cow::Borrowed(full);
    }
    let thunk = THUNKS.iter().find(|thunk| full.starts_with(**thunk));
    let (prefix, name) = full.split_at(thunk.map_or(0, |thunk| thunk.len()));
    let mut short = Short {
        out: String::with_capacity(name.len()),
        operator: false,
    };
    short.path(name);
    let out = short.out;
    if out.is_empty() || out.starts_with("::") {
        return Cow::Borrowed(full);
    }
    Cow::Owned(format!("{prefix}{out}"))
}

struct Short {
    out: String,
    /// Whether the last part is the name of an operator, in which a space is part of the name.
    operator: bool,
}

impl Short {
    fn path(&mut self, name: &str) {
        let mut rest = name;
        while let Some(c) = rest.chars().next() {
            let behind = rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                'o' if self.at_boundary() && is_operator(rest) => {
                    rest = self.operator(rest);
                    continue;
                }
                '<' => {
                    let (inner, after) = split_group(rest, '<', '>');
                    self.arguments(inner);
                    rest = after;
                    continue;
                }
                '(' => match self.parameters(rest) {
                    Some(after) => {
                        rest = after;
                        continue;
                    }
                    None => return,
                },
                '{' => {
                    let (_, after) = split_group(rest, '{', '}');
                    let length = rest.len().saturating_sub(after.len());
                    self.out.push_str(rest.get(..length).unwrap_or_default());
                    rest = after;
                    continue;
                }
                ' ' if behind.starts_with("[clone ") => {
                    self.out.push_str(rest);
                    return;
                }
                // What stood before is a return type or `const`.
                ' ' if !self.operator => self.out.clear(),
                c => self.out.push(c),
            }
            rest = behind;
        }
    }

    fn at_boundary(&self) -> bool {
        let last = self.out.chars().next_back();
        !last.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
    }

    fn operator<'s>(&mut self, rest: &'s str) -> &'s str {
        self.operator = true;
        self.out.push_str("operator");
        let behind = rest.strip_prefix("operator").unwrap_or_default();
        match OPERATORS.iter().find(|sign| behind.starts_with(**sign)) {
            Some(sign) => {
                self.out.push_str(sign);
                behind.strip_prefix(*sign).unwrap_or_default()
            }
            None => behind,
        }
    }

    /// Type arguments are dropped. A type in brackets that stands for a part of the path is cut
    /// to its last part: `<T as Trait>::f`, `str::<impl str>::len`.
    fn arguments(&mut self, inner: &str) {
        let is_impl = inner.starts_with("impl ");
        let of_path = self.out.is_empty() || self.out.ends_with("::");
        let type_name = if is_impl && of_path {
            let inner = inner.strip_prefix("impl ").unwrap_or(inner);
            Some(split_top(inner, " for ").map_or(inner, |(_, of)| of))
        } else if self.out.is_empty() {
            Some(split_top(inner, " as ").map_or(inner, |(of, _)| of))
        } else {
            None
        };
        match type_name {
            Some(type_name) => {
                self.out.clear();
                self.out.push_str(&last_part(type_name));
            }
            // `f::<T>`
            None if self.out.ends_with("::") => {
                self.out.truncate(self.out.len().saturating_sub(2));
            }
            // `operator< <int>`
            None => self.out.truncate(self.out.trim_end().len()),
        }
    }

    /// Drops a list of parameters; `None` when the name ends with it.
    fn parameters<'s>(&mut self, rest: &'s str) -> Option<&'s str> {
        let (inner, after) = split_group(rest, '(', ')');
        // `(anonymous namespace)::f`, and in Go `main.(*T).f`.
        if inner == "anonymous namespace" || self.out.ends_with('.') {
            self.out.push('(');
            self.out.push_str(inner);
            self.out.push(')');
            return Some(after);
        }
        let inside = after.strip_prefix(" const").unwrap_or(after);
        if inside.starts_with("::") {
            self.operator = false;
            return Some(inside);
        }
        if let Some(at) = after.find(" [clone ") {
            self.out.push_str(after.get(at..).unwrap_or_default());
        } else if let Some(at) = after.find('@') {
            self.out.push_str(after.get(at..).unwrap_or_default());
        }
        None
    }
}

fn is_operator(rest: &str) -> bool {
    let behind = rest.strip_prefix("operator");
    behind.is_some_and(|b| !b.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
}

/// Splits `text`, which starts with `open`, into what is inside the group and what is behind it.
fn split_group(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth: usize = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == open {
            depth = depth.saturating_add(1);
        } else if c == close && !(c == '>' && before == '-') {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                let inside = text.get(open.len_utf8()..at).unwrap_or_default();
                let behind = text.get(at.saturating_add(c.len_utf8())..);
                return (inside, behind.unwrap_or_default());
            }
        }
        before = c;
    }
    (text.get(open.len_utf8()..).unwrap_or_default(), "")
}

/// Splits at the first `mark` outside all brackets.
fn split_top<'s>(text: &'s str, mark: &str) -> Option<(&'s str, &'s str)> {
    let mut depth: usize = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth = depth.saturating_add(1),
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {
                let here = text.get(at..).unwrap_or_default();
                if depth == 0
                    && let Some(behind) = here.strip_prefix(mark)
                {
                    return Some((text.get(..at).unwrap_or_default(), behind));
                }
            }
        }
        before = c;
    }
    None
}

/// The last part of a type's path, without references and arguments: `&mut a::B<C>` is `B`.
fn last_part(type_name: &str) -> String {
    let mut name = type_name.trim_start();
    for mark in ["&", "mut ", "*const ", "*mut ", "dyn "] {
        name = name.strip_prefix(mark).unwrap_or(name);
    }
    if name.starts_with(['[', '(']) {
        return name.to_owned();
    }
    let mut out = String::new();
    let mut depth: usize = 0;
    let mut before = ' ';
    for c in name.chars() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' if before == '-' => {}
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            // A function type: what it takes is not part of its name.
            '(' | ' ' => break,
            c => out.push(c),
        }
        before = c;
    }
    let trimmed = out.trim_end_matches("::");
    let last = trimmed.rsplit("::").next().unwrap_or_default();
    last.to_owned()
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn names_are_cut_to_what_people_say() {
        for (full, short) in [
            ("<alloc::vec::Vec<T> as Drop>::drop", "Vec::drop"),
            (
                "<&mut F as core::ops::FnOnce<A>>::call_once",
                "F::call_once",
            ),
            ("<<T as Iterator>::Item as Debug>::fmt", "Item::fmt"),
            ("<rg::Args>::parse::<u8>", "Args::parse"),
            ("core::str::<impl str>::len", "str::len"),
            (
                "core::fmt::num::<impl core::fmt::Debug for u32>::fmt",
                "u32::fmt",
            ),
            (
                "core::ptr::drop_in_place<alloc::string::String>",
                "core::ptr::drop_in_place",
            ),
            ("rg::main::{{closure}}", "rg::main::{{closure}}"),
            (
                "std::rt::lang_start::<()>::{closure#0}",
                "std::rt::lang_start::{closure#0}",
            ),
            (
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
                "std::vector::push_back",
            ),
            ("void std::sort<int*>(int*, int*)", "std::sort"),
            (
                "(anonymous namespace)::parse(char const*)",
                "(anonymous namespace)::parse",
            ),
            ("Foo::operator()(int) const", "Foo::operator()"),
            ("bool operator< <int>(A const&, A const&)", "operator<"),
            (
                "std::ostream& std::operator<< <char>(int)",
                "std::operator<<",
            ),
            ("Foo::operator bool() const", "Foo::operator bool"),
            ("operator new(unsigned long)", "operator new"),
            (
                "run(int)::{lambda(int)#1}::operator()(int) const",
                "run::{lambda(int)#1}::operator()",
            ),
            ("f(int) [clone .cold]", "f [clone .cold]"),
            ("f(int)@plt", "f@plt"),
            ("virtual thunk to A::f()", "virtual thunk to A::f"),
            ("runtime.(*mcache).refill", "runtime.(*mcache).refill"),
            (
                "std::function<void ()>::operator()() const",
                "std::function::operator()",
            ),
            ("[truncated]", "[truncated]"),
            ("operators::run(int)", "operators::run"),
        ] {
            assert_eq!(short_name(full), short, "of {full}");
        }
    }

    #[test]
    fn any_text_has_a_short_name() {
        for text in [
            "<",
            ">",
            "(",
            "a<",
            "<a",
            "<<",
            "operator",
            "operator<",
            " ",
            "<>",
            "a )(",
            "é<ü>(ö",
        ] {
            assert!(!short_name(text).is_empty(), "of {text:?}");
        }
    }
}
