//! Names without what the eye has to skip: parameters, template arguments, generics.

use std::borrow::Cow;

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
///     ("core::ptr::drop_in_place::<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"),
///     ("app::run::{{closure}}", "app::run::{{closure}}"),
///     ("[unknown] called by f(int)", "[unknown] called by f(int)"),
///     // Go, Python, JavaScript
///     ("net/http.(*conn).serve", "net/http.(*conn).serve"),
///     ("py::<module>:/app/x.py", "py::<module>:/app/x.py"),
///     ("LazyCompile:*fib /app/x.js:3", "LazyCompile:*fib /app/x.js:3"),
/// ];
/// for (name, short) in names {
///     assert_eq!(short_name(name), short);
/// }
/// ```
pub fn short_name(name: &str) -> Cow<'_, str> {
    let of_a_script = name.starts_with("py::") || name.contains(":/");
    // `[unknown] called by f(int)` is no function's name.
    if of_a_script || name.starts_with('[') || !name.contains(['<', '(']) {
        return Cow::Borrowed(name);
    }
    match shortened(name) {
        Some(short) if !short.is_empty() => Cow::Owned(short),
        _ => Cow::Borrowed(name),
    }
}

/// What may follow the parameters of a function.
const QUALIFIERS: [&str; 5] = [" const", " volatile", " &&", " &", " noexcept"];

/// The short form; `None` where brackets do not match.
fn shortened(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
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
                if let Some((_, target)) = inside
                    .strip_prefix("impl ")
                    .and_then(|inside| split_outside(inside, " for "))
                {
                    out = bare(target);
                } else if out.is_empty() && tail.starts_with("::") {
                    out = implementor(inside);
                } else if out.ends_with("::") {
                    out.truncate(out.len() - 2);
                } else if out.is_empty() {
                    return None;
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
                if out.is_empty() || out.ends_with("::") || out.ends_with('.') || !(ends || nested)
                {
                    // `(anonymous namespace)`, `(*T)`, `(a, b)`
                    out.push_str(inside);
                    rest = tail;
                } else {
                    parameters |= ends;
                    rest = after;
                }
            }
            ')' | '>' if !out.ends_with('-') => return None,
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Some(if parameters {
        without_return_type(out)
    } else {
        out
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

/// The type that stands for `<Type as Trait>`: the type, or the trait where the type is a
/// parameter.
fn implementor(inside: &str) -> String {
    let Some((target, interface)) = split_outside(inside, " as ") else {
        return bare(inside);
    };
    let short = bare(target);
    let word = short.trim_start_matches(['&', '*', ' ']);
    let word = word.strip_prefix("mut ").unwrap_or(word);
    let parameter = word.len() <= 1 && word.chars().all(|c| c.is_ascii_uppercase());
    if parameter { bare(interface) } else { short }
}

/// A Rust type without its generics.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0i32;
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ if depth <= 0 => out.push(c),
            _ => {}
        }
        before = c;
    }
    while out.ends_with("::") {
        out.truncate(out.len() - 2);
    }
    out.trim_start_matches("::").to_owned()
}

/// A function's name without the return type that C++ puts before that of a template.
fn without_return_type(text: String) -> String {
    if text.contains("thunk to ") || text.contains("operator ") {
        return text;
    }
    let mut start = 0;
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ' ' if depth == 0 && !text[at + 1..].starts_with('[') => start = at + 1,
            _ => {}
        }
    }
    let name = text[start..].trim_start_matches(['*', '&']);
    if name.is_empty() {
        return text;
    }
    name.to_owned()
}
