//! Functions of implementations, named by the type that they are of.
//!
//! Rust's older names put a path before the implementation,
//! `a::_::<impl b::Show for a::Item>::show`, the newer ones do not: `<a::Item as b::Show>::show`.
//! The latter is what is read here.

use std::borrow::Cow;

use super::brackets::{group, split_outside};

/// How many implementations stand in one another in a name that is read.
const NESTED: usize = 32;

/// The name with every `path::<impl Trait for Type>` as `<Type as Trait>`.
pub(super) fn named_by_type(name: &str) -> Cow<'_, str> {
    if !name.contains("<impl ") {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    let (mut open, mut found) = (Vec::new(), 0);
    let mut before = ' ';
    for c in name.chars() {
        let closes = c == '>' && before != '-' && before != '=';
        before = c;
        if c == '<' {
            open.push(out.len());
        }
        let start = if closes { open.pop() } else { None };
        let Some(start) = start.filter(|_| found < NESTED) else {
            out.push(c);
            continue;
        };
        let inside = out[start + 1..].strip_prefix("impl ");
        let Some((interface, target)) = inside.and_then(|inside| split_outside(inside, " for "))
        else {
            out.push(c);
            continue;
        };
        found += 1;
        let named = format!("<{target} as {interface}>");
        let is_path = |c: char| c.is_alphanumeric() || "_:{}#$.".contains(c);
        let path = out[..start].trim_end_matches(is_path).len();
        out.truncate(path);
        out.push_str(&named);
    }
    Cow::Owned(out)
}

/// The type that stands for `Type as Trait`: the type, or the trait where the type is a parameter.
pub(super) fn implementor(inside: &str) -> String {
    let name = bare(chosen(inside));
    let mut own = name.as_str();
    for mark in ["&", "*const ", "*mut ", "mut "] {
        own = own.strip_prefix(mark).unwrap_or(own);
    }
    own.to_owned()
}

fn chosen(inside: &str) -> &str {
    match split_outside(inside, " as ") {
        Some((target, interface)) if is_parameter(target) => interface,
        Some((target, _)) => target,
        None => inside,
    }
}

/// Whether the type of `Type as Trait` is a parameter of the implementation.
pub(super) fn is_of_parameter(inside: &str) -> bool {
    split_outside(inside, " as ").is_some_and(|(target, _)| is_parameter(target))
}

fn is_parameter(target: &str) -> bool {
    let word = target.trim_start_matches(['&', '*', ' ']);
    let word = word.strip_prefix("mut ").unwrap_or(word);
    word.len() <= 1 && word.chars().all(|c| c.is_ascii_uppercase())
}

/// A Rust type without its generics; `<A as B>::C` is `A::C`.
fn bare(text: &str) -> String {
    let mut tails = Vec::new();
    let mut rest = text;
    while tails.len() < NESTED
        && rest.starts_with('<')
        && let Some(len) = group(rest)
        && rest[len..].starts_with("::")
    {
        tails.push(&rest[len..]);
        rest = chosen(&rest[1..len - 1]);
    }
    let mut out = without_arguments(rest);
    for tail in tails.into_iter().rev() {
        out.push_str(&without_arguments(tail));
    }
    let out = out.trim_end_matches("::");
    out.trim_start_matches("::").to_owned()
}

fn without_arguments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0i32;
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '<' => {
                if depth == 0 && out.ends_with("::") {
                    out.truncate(out.len() - 2);
                }
                depth += 1;
            }
            '>' if before != '-' => depth -= 1,
            _ if depth <= 0 => out.push(c),
            _ => {}
        }
        before = c;
    }
    out
}
