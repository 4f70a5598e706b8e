//! Shortens names: leaves out parameters, template arguments and generics.
//!
//! A name has three forms. Labels take the first one that no other function has:
//!
//! | form | `std::vector<a::Box<int>, std::allocator<…>>::at(int)` | `<a::Item as b::Show>::show` |
//! |---|---|---|
//! | [`Form::Short`] | `std::vector::at` | `a::Item::show` |
//! | [`Form::Arguments`] | `std::vector<Box>::at` | `<Item as Show>::show` |
//! | [`Form::NestedArguments`] | `std::vector<Box<int>>::at` | the same |
//! | [`Form::Parameters`] | `std::vector<Box<int>>::at(int)` | the same |

use std::borrow::Cow;

use super::brackets::group;
use super::{implementation, types};
use crate::base::Language;
use crate::profile::Function;

/// The short form of a function's name. Others may have it too.
///
/// ```
/// use proftool::base::{Id, Language};
/// use proftool::names::short_name;
/// use proftool::profile::{Function, ModuleId};
/// let short = |language, name| {
///     let function = Function::named(name, ModuleId::new(0));
///     short_name(&Function { language, ..function }).into_owned()
/// };
/// assert_eq!(short(Language::Cpp, "std::vector<int>::at(int) const"), "std::vector::at");
/// assert_eq!(short(Language::Rust, "<a::Vec<T> as Drop>::drop"), "a::Vec::drop");
/// assert_eq!(short(Language::Java, "A$P.<init>(int)"), "A$P.<init>(int)");
/// ```
pub fn short_name(function: &Function) -> Cow<'_, str> {
    in_form(&function.name, function.language, Form::Short)
}

/// How much of a demangled name is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No arguments and no parameters.
    Short,
    /// The generic and template arguments without their own arguments, and types without their
    /// paths.
    Arguments,
    /// The same with the arguments of arguments.
    NestedArguments,
    /// The same with the types of the parameters, where the name has them.
    Parameters,
}

impl Form {
    /// The forms that say more than the short one, from the one that says least.
    pub const FULLER: [Form; 3] = [Form::Arguments, Form::NestedArguments, Form::Parameters];

    /// How many parts a path in this form has.
    pub(super) fn path_parts(self) -> usize {
        match self {
            Form::Short => 2,
            Form::Arguments => 3,
            Form::NestedArguments => 4,
            Form::Parameters => 6,
        }
    }

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
/// use proftool::base::Language::Cpp;
/// use proftool::names::{Form, in_form};
/// let name = "void f<std::map<int, a::B> >(a::B const&)";
/// assert_eq!(in_form(name, Cpp, Form::Short), "f");
/// assert_eq!(in_form(name, Cpp, Form::Arguments), "f<map>");
/// assert_eq!(in_form(name, Cpp, Form::NestedArguments), "f<map<int, B>>");
/// assert_eq!(in_form(name, Cpp, Form::Parameters), "f<map<int, B>>(B const&)");
/// ```
pub fn in_form(name: &str, language: Language, form: Form) -> Cow<'_, str> {
    if !language.has_arguments() || !name.contains(['<', '(']) {
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
                let before = ["::", " "];
                if out.is_empty() || before.iter().any(|it| out.ends_with(it)) || !(ends || nested)
                {
                    // `(anonymous namespace)`, `(a, b)`
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
