//! Errors have fields with names.
//!
//! What a number or text in an error is can only be read from a name, and a field can be added to
//! named ones without breaking who matches on them. So no type that derives `thiserror::Error` is a
//! tuple, and neither is a variant of it.

use proc_macro2::{Delimiter, TokenTree};

use super::map::Map;
use super::names::{ident, is_ident, is_punct, tokens};
use super::source::Sources;
use super::tree::room_of;

/// Adds a line for every tuple among the library's errors.
pub fn check(map: &Map, sources: &Sources, told: &mut Vec<String>) {
    let outside = |file: &str| map.room(room_of(file)).is_some_and(|room| room.outside);
    for (file, source) in sources.iter().filter(|(file, _)| !outside(file)) {
        for (line, name) in &source.tuples {
            told.push(format!(
                "{file}:{line}: the error `{name}` is a tuple; give its fields names"
            ));
        }
    }
}

/// The tuples among the errors of a file, with their lines.
pub fn in_tokens(tokens: &[TokenTree]) -> Vec<(usize, String)> {
    let is_error = |&at: &usize| is_punct(tokens, at, '#') && derives_error(&tokens[at + 1..]);
    let errors = (0..tokens.len()).filter(is_error);
    errors.flat_map(|at| tuples(&tokens[at + 2..])).collect()
}

/// Whether an attribute is a `derive` with `Error` in it.
fn derives_error(tokens: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(attribute)) = tokens.first() else {
        return false;
    };
    let attribute = self::tokens(attribute.stream());
    let is_derive = attribute
        .first()
        .is_some_and(|word| is_ident(word, "derive"));
    let Some(TokenTree::Group(traits)) = attribute.get(1).filter(|_| is_derive) else {
        return false;
    };
    let traits = self::tokens(traits.stream());
    traits.iter().any(|name| is_ident(name, "Error"))
}

/// The tuples of the type that comes first: itself, or its variants.
fn tuples(tokens: &[TokenTree]) -> Vec<(usize, String)> {
    let is_type = |token: &TokenTree| is_ident(token, "struct") || is_ident(token, "enum");
    let Some(start) = tokens.iter().position(is_type) else {
        return Vec::new();
    };
    let name = ident(tokens, start + 1).unwrap_or_default();
    let line = tokens[start].span().start().line;
    let group = tokens[start..].iter().find_map(|token| match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    });
    match group {
        Some(fields) if fields.delimiter() == Delimiter::Parenthesis => vec![(line, name)],
        Some(body) if is_ident(&tokens[start], "enum") => {
            let body = self::tokens(body.stream());
            let pairs = body.windows(2).filter_map(|pair| match pair {
                [TokenTree::Ident(variant), TokenTree::Group(fields)]
                    if fields.delimiter() == Delimiter::Parenthesis =>
                {
                    let line = variant.span().start().line;
                    Some((line, format!("{name}::{variant}")))
                }
                _ => None,
            });
            pairs.collect()
        }
        _ => Vec::new(),
    }
}
