//! Shortens names: leaves out parameters, template arguments and generics.
//!
//! A name has three forms. Labels take the first one that no other function has:
//!
//! | form | `std::vector<a::Box<int>, std::allocator<a::Box<int>> >::at(int)` | `<a::Item as b::Show>::show` |
//! |---|---|---|
//! | [`Form::Short`] | `std::vector::at` | `a::Item::show` |
//! | [`Form::Arguments`] | `std::vector<Box>::at` | `<Item as Show>::show` |
//! | [`Form::NestedArguments`] | `std::vector<Box<int>>::at` | the same |
//! | [`Form::Parameters`] | `std::vector<Box<int>>::at(int)` | the same |

mod closure;
mod implementation;
mod types;

use std::borrow::Cow;

pub use closure::for_people;

/// The short form of a demangled name.
///
/// ```
/// use proftool::view::name::short_name;
/// let names = [
///     ("main", "main"),
///     // C++
///     ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"),
///     ("void std::sort<int*>(int*, int*)", "std::sort"),
///     ("(anonymous namespace)::f(char) const", "(anonymous namespace)::f"),
///     ("A::operator()(int)", "A::operator()"),
///     ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<<"),
///     ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"),
///     // Rust
///     ("<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "alloc::vec::Vec::drop"),
///     ("<T as core::convert::Into<U>>::into", "core::convert::Into::into"),
///     ("core::slice::<impl [T]>::sort", "core::slice::sort"),
///     ("core::str::<impl core::ops::Index<I> for str>::index", "str::index"),
///     ("<srv::_::<impl serde::Deserialize for srv::Item>::deserialize::__Visitor as serde::Visitor>::visit",
///      "srv::Item::deserialize::__Visitor::visit"),
///     ("<<a::Item as b::Read>::read::Inner as c::Show>::show", "a::Item::read::Inner::show"),
///     ("core::ptr::drop_in_place::<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"),
///     ("app::run::{{closure}}", "app::run::{{closure}}"),
///     ("[unknown] called by f(int)", "[unknown] called by f(int)"),
///     // Go, Python, JavaScript, Java
///     ("net/http.(*conn).serve", "net/http.(*conn).serve"),
///     ("py::<module>:/app/x.py", "py::<module>:/app/x.py"),
///     ("LazyCompile:*fib /app/x.js:3", "LazyCompile:*fib /app/x.js:3"),
///     ("StubRoutines (1)", "StubRoutines (1)"),
/// ];
/// for (name, short) in names {
///     assert_eq!(short_name(name), short);
/// }
/// ```
pub fn short_name(name: &str) -> Cow<'_, str> {
    in_form(name, Form::Short)
}

/// How much of a demangled name is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No arguments and no parameters.
    Short,
    /// The generic and template arguments without their own arguments, and types without their paths.
    Arguments,
    /// The same with the arguments of arguments.
    NestedArguments,
    /// The same with the types of the parameters, where the name has them.
    Parameters,
}

impl Form {
    /// The forms that say more than the short one, from the one that says least.
    pub const FULLER: [Form; 3] = [Form::Arguments, Form::NestedArguments, Form::Parameters];

    /// How deep arguments stand in other ones that are shown.
    fn depth(self) -> usize {
        match self {
            Form::Short | Form::Arguments => 0,
            Form::NestedArguments | Form::Parameters => usize::MAX,
        }
    }
}

/// A demangled name in this form.
///
/// ```
/// use proftool::view::name::{Form, in_form};
/// let names = [
///     ("core::ptr::drop_in_place::<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place::<Vec<u8>>"),
///     ("<a::Item as core::fmt::Debug>::fmt", "<Item as Debug>::fmt"),
///     ("core::str::<impl core::ops::Index<I> for str>::index", "<str as Index<I>>::index"),
///     ("std::vector<long, std::allocator<long> >::push_back(long const&)", "std::vector<long>::push_back"),
///     ("void f<std::map<int, a::B> >(int)", "f<map<int, B>>"),
/// ];
/// for (name, expected) in names {
///     assert_eq!(in_form(name, Form::NestedArguments), expected);
/// }
/// assert_eq!(in_form("void f<a::B<int> >(a::B<int> const&)", Form::Arguments), "f<B>");
/// assert_eq!(in_form("void f<a::B>(a::B const&, int)", Form::Parameters), "f<B>(B const&, int)");
/// ```
pub fn in_form(name: &str, form: Form) -> Cow<'_, str> {
    let of_a_script = name.starts_with("py::") || name.contains(":/");
    // `[unknown] called by f(int)` is no function's name.
    if of_a_script || name.starts_with('[') || !name.contains(['<', '(']) {
        return Cow::Borrowed(name);
    }
    let name_of_type = implementation::named_by_type(name);
    match shortened(&name_of_type, form) {
        Some(short) if !short.is_empty() => Cow::Owned(short),
        _ => Cow::Borrowed(name),
    }
}

/// What may follow the parameters of a function.
const QUALIFIERS: [&str; 5] = [" const", " volatile", " &&", " &", " noexcept"];

/// The name in this form; `None` where brackets do not match.
fn shortened(name: &str, form: Form) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    // Where the name starts behind a return type, which C++ names only of templates.
    let (mut start, mut depth) = (0, 0i32);
    let mut parameters = false;
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if at_word(&out) && operator(rest) > 0 {
            let (head, tail) = rest.split_at(operator(rest));
            out.push_str(head);
            rest = tail
                .strip_prefix(' ')
                .filter(|t| t.starts_with('<'))
                .unwrap_or(tail);
            continue;
        }
        match c {
            '<' => {
                let len = group(rest)?;
                let (inside, tail) = (&rest[1..len - 1], &rest[len..]);
                rest = tail;
                let is_type = out.is_empty() && tail.starts_with("::");
                match form {
                    Form::Short if is_type => out = implementation::implementor(inside),
                    _ if out.is_empty() && !is_type => return None,
                    Form::Short if out.ends_with("::") => out.truncate(out.len() - 2),
                    Form::Short => {}
                    _ if !is_type && are_parameters(inside) && !name.contains('(') => {
                        out.truncate(out.trim_end_matches("::").len());
                    }
                    _ if is_type && implementation::is_of_parameter(inside) => {
                        out = implementation::implementor(inside);
                    }
                    _ => {
                        out.push('<');
                        out.push_str(&types::shortened(inside, form.depth()));
                        out.push('>');
                    }
                }
            }
            '(' => {
                let len = group(rest)?;
                let (inside, tail) = rest.split_at(len);
                let mut after = tail;
                while let Some(qualifier) = QUALIFIERS.iter().find(|q| after.starts_with(**q)) {
                    after = &after[qualifier.len()..];
                }
                let ends = after.is_empty() || after.starts_with(" [") || after.starts_with('.');
                let nested =
                    after.starts_with("::") || after.starts_with('#') || after.starts_with('}');
                let before = ["::", ".", " "];
                if out.is_empty() || before.iter().any(|it| out.ends_with(it)) || !(ends || nested)
                {
                    // `(anonymous namespace)`, `(*T)`, `(a, b)`, `StubRoutines (1)`
                    out.push_str(inside);
                    rest = tail;
                } else {
                    parameters |= ends;
                    if form == Form::Parameters {
                        out.push_str(&types::shortened(inside, form.depth()));
                        out.push_str(&tail[..tail.len() - after.len()]);
                    }
                    rest = after;
                }
            }
            ')' | '>' if !out.ends_with('-') => return None,
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                match c {
                    '{' | '[' => depth += 1,
                    '}' | ']' => depth -= 1,
                    ' ' if depth == 0 && !parameters && !rest.starts_with('[') => start = out.len(),
                    _ => {}
                }
            }
        }
    }
    let has_return_type = parameters && !out.contains("thunk to ") && !out.contains("operator ");
    let name = out[start..].trim_start_matches(['*', '&']);
    if has_return_type && !name.is_empty() {
        return Some(name.to_owned());
    }
    Some(out)
}

/// Whether these are names of a generic's parameters, as in Rust's older names: `K,V,A`.
fn are_parameters(inside: &str) -> bool {
    let mut words = inside.split(',');
    words.all(|word| {
        let is_word = word.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_word && word.starts_with(|c: char| c.is_ascii_uppercase())
    })
}

/// Whether a word can begin after this text.
fn at_word(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The length of the operator's name at the start of `text`, such as `operator<<`; 0 if there is
/// none with brackets in it.
fn operator(text: &str) -> usize {
    const SYMBOLS: [&str; 12] = [
        "()", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "->*", "->", "<", ">",
    ];
    let Some(symbol) = text.strip_prefix("operator") else {
        return 0;
    };
    let found = SYMBOLS.iter().find(|s| symbol.starts_with(**s));
    found.map_or(0, |s| "operator".len() + s.len())
}

/// The length of the bracketed group at the start of `text`. Arrows are no brackets.
fn group(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => open.push(c),
            '>' if before == '-' || before == '=' => {}
            '>' | ')' | ']' | '}' => {
                let matching = match c {
                    '>' => '<',
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop() != Some(matching) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// `text` before and after the first `mark` that is in no bracket.
fn split_outside<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            ' ' if depth == 0 && text[at..].starts_with(mark) => {
                return Some((&text[..at], &text[at + mark.len()..]));
            }
            _ => {}
        }
        before = c;
    }
    None
}
