//! Errors have fields with names.
//!
//! What a number or text in an error is can only be read from a name, and a field can be added to
//! named ones without breaking who matches on them. So no type that derives `thiserror::Error` is a
//! tuple, and neither is a variant of it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::map::Map;
use super::names::{ident, is_ident, is_punct, tokens};
use super::tree::{Tree, room_of};

/// Adds a line for every tuple among the library's errors.
pub fn check(map: &Map, tree: &Tree, told: &mut Vec<String>) {
    let outside = |file: &str| map.room(room_of(file)).is_some_and(|room| room.outside);
    for (file, text) in tree.sources().filter(|(file, _)| !outside(file)) {
        let Ok(stream) = text.parse::<TokenStream>() else {
            continue;
        };
        let tokens = tokens(stream);
        for at in 0..tokens.len() {
            if is_punct(&tokens, at, '#') && derives_error(&tokens[at + 1..]) {
                for (line, name) in tuples(&tokens[at + 2..]) {
                    told.push(format!(
                        "{file}:{line}: the error `{name}` is a tuple; give its fields names"
                    ));
                }
            }
        }
    }
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
