//! What functions are called: the language of a name, its shorter forms, labels that no other
//! function has, what is left of one where the width does not suffice, and search by any of these.
//!
//! ```text
//!   name, language ──▶ form ──▶ label ──▶ fitted, width ──▶ page
//!                        └────────┴──▶ search ◀── what a user types
//! ```
//!
//! Names of C++ and Rust consist of a path, arguments and parameters. Only these are taken apart,
//! as brackets mean something else in other languages: Java's constructors are called `<init>`,
//! Go's methods `(*conn).serve`.

mod brackets;
mod closure;
mod excerpt;
mod fitted;
mod form;
mod implementation;
mod label;
mod language;
pub mod search;
mod stem;
mod types;
mod width;

use std::borrow::Cow;

pub use brackets::segments;
pub use fitted::fitted;
pub use form::{Form, in_form, short_name};
pub use label::{Label, Labels, Mark};
pub use language::of_text;
pub use stem::stem;
pub use width::{
    MIN_MARKED, Written, display_width, last_columns, path_breaks, shortened, without_end,
};

use crate::profile::{FunctionId, Profile, RowKind};

/// The mark before the name of a restored function. No name starts with it; names of destructors
/// (`~vector`) and of V8's code start with other marks.
pub const INFERRED: &str = "≈";

/// What stands for what is left out.
pub const GAP: char = '…';

/// In which form functions are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Without parameters, template arguments and generics, as far as names stay distinct.
    #[default]
    Short,
    /// As demangled.
    Full,
    /// As in the symbol table.
    Mangled,
}

/// The functions of a profile in a form.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The form.
    pub names: Names,
}

impl<'a> Naming<'a> {
    /// The name of a function; the full one where short was chosen, as only [`Labels`] can shorten
    /// names and keep them distinct.
    pub fn name(&self, function: FunctionId) -> &'a str {
        let function = &self.profile.functions[function];
        match (self.names, &function.linkage_name) {
            (Names::Mangled, Some(name)) => name,
            _ => &function.name,
        }
    }

    /// The name of a function, which others may have too.
    pub fn plain_name(&self, function: FunctionId) -> Cow<'a, str> {
        match self.names {
            Names::Short => self.name_in(function, Form::Short),
            Names::Full | Names::Mangled => Cow::Borrowed(self.name(function)),
        }
    }

    /// The name of a function in a shorter form: of a row that is a path the end, of one that is an
    /// address that of its function.
    fn name_in(&self, id: FunctionId, form: Form) -> Cow<'a, str> {
        let function = &self.profile.functions[id];
        let name = &*function.name;
        match self.profile.rows {
            RowKind::File | RowKind::Line if !name.starts_with('[') => {
                let start = name.rmatch_indices('/').nth(form.path_parts() - 1);
                // Of an absolute path that is short the whole is shown.
                let start = start.filter(|&(at, _)| at > 0);
                Cow::Borrowed(start.map_or(name, |(at, _)| &name[at + 1..]))
            }
            RowKind::Address => match name.rsplit_once("+0x") {
                Some((name, offset)) => {
                    let name = form::in_form(name, function.language, form);
                    Cow::Owned(format!("{name}+0x{offset}"))
                }
                None => Cow::Borrowed(name),
            },
            rows if rows.replaces_functions() => Cow::Borrowed(name),
            _ => {
                let short = form::in_form(name, function.language, form);
                closure::for_people(short, function, self.profile.source.name(id), form)
            }
        }
    }
}
