//! The functions of a page: one table for all events, and the rows of each event.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use crate::analysis::owners::{OwnerId, OwnerKind, Owners};
use crate::base::{printable, shell_quoted};
use crate::export::shown::written;
use crate::names::path_breaks;
use crate::profile::{Function, FunctionId};
use crate::view::flat::{Flat, Row};
use crate::view::label;
use crate::view::report::place_name;
use crate::view::{Names, Subject};

// All functions of a page, in order of first appearance; columns of the same length, except for
// what few functions have, which is pairs of a place and a value.
#[derive(Clone, Serialize)]
pub(super) struct Functions<'a> {
    names: Vec<Cow<'a, str>>,
    modules: Vec<usize>,
    module_names: Vec<&'a str>,
    // What a module is shown as, where that is not its name.
    module_labels: Vec<(usize, String)>,
    // Whose code a function is: a place among the owners.
    owners: Vec<usize>,
    owner_names: Vec<String>,
    owner_kinds: Vec<&'static str>,
    // Where the start of what a function is shown as may be left out, in UTF-16 units.
    breaks: Vec<(usize, Vec<usize>)>,
    // What a function is shown as, where that is not its name.
    labels: Vec<(usize, String)>,
    // Short labels, for where a long one would be cut off: no other function has them.
    short: Vec<(usize, String)>,
    // What stands in a command as its label between quotes.
    in_quotes: Vec<usize>,
    // How it is given to a command, where that is neither its label nor that between quotes.
    quoted: Vec<(usize, String)>,
    // How commands about a part of time find functions whose names depend on which others there
    // are.
    symbols: Vec<(usize, &'a str)>,
    // The marks where stacks are cut.
    cut_marks: Vec<usize>,
    // No command finds these by what is shown.
    shortened: Vec<usize>,
    #[serde(skip)]
    places: HashMap<FunctionId, u64>,
}

impl<'a> Functions<'a> {
    pub fn of(
        subject: &Subject<'a>,
        owners: &Owners,
        functions: impl IntoIterator<Item = FunctionId>,
    ) -> Functions<'a> {
        let mut table = Functions {
            names: Vec::new(),
            modules: Vec::new(),
            module_names: Vec::new(),
            module_labels: Vec::new(),
            owners: Vec::new(),
            owner_names: Vec::new(),
            owner_kinds: Vec::new(),
            breaks: Vec::new(),
            labels: Vec::new(),
            short: Vec::new(),
            in_quotes: Vec::new(),
            quoted: Vec::new(),
            symbols: Vec::new(),
            cut_marks: Vec::new(),
            shortened: Vec::new(),
            places: HashMap::new(),
        };
        let mut order = Vec::new();
        for id in functions {
            let new = table.places.len() as u64;
            if *table.places.entry(id).or_insert(new) == new {
                order.push(id);
            }
        }
        let labels = subject.labels(order.iter().copied());
        let short = short_labels(subject, &order);
        let mut modules: HashMap<&str, usize> = HashMap::new();
        let mut places_of_owners: HashMap<OwnerId, usize> = HashMap::new();
        for (place, id) in order.into_iter().enumerate() {
            let name = subject.plain_name(id);
            let label = labels.of(id);
            let shown = printable(label);
            // Commands find a function by its label as it is printed, too.
            let quoted = shell_quoted(&shown);
            if quoted == format!("'{shown}'") {
                table.in_quotes.push(place);
            } else if quoted != shown {
                table.quoted.push((place, quoted));
            }
            let brief = short.get(&id).map_or(&*shown, |short| short);
            let breaks = path_breaks(brief);
            if !breaks.is_empty() {
                let units = |at: usize| brief[..at].encode_utf16().count();
                table
                    .breaks
                    .push((place, breaks.into_iter().map(units).collect()));
            }
            let new = table.owner_names.len();
            let owner = *places_of_owners.entry(owners.id_of(id)).or_insert(new);
            if owner == new {
                let owner = owners.of(id);
                let name = match owner.kind {
                    OwnerKind::Mark => "no code",
                    _ => place_name(&owner.name),
                };
                table.owner_names.push(printable(name).into_owned());
                table.owner_kinds.push(owner.kind.name());
            }
            table.owners.push(owner);
            if let Some(short) = short.get(&id).filter(|short| **short != shown) {
                table.short.push((place, short.clone()));
            }
            if shown != name {
                table.labels.push((place, shown.into_owned()));
            }
            let function = &subject.profile.functions[id];
            let symbol = without_arguments(function).filter(|_| subject.profile.times.is_some());
            table.symbols.extend(symbol.map(|symbol| (place, symbol)));
            if function.is_cut_mark() {
                table.cut_marks.push(place);
            }
            let module = subject.module(id);
            let new = table.module_names.len();
            let module_place = *modules.entry(module).or_insert(new);
            if module_place == new {
                if printable(module) != module {
                    table
                        .module_labels
                        .push((new, printable(module).into_owned()));
                }
                table.module_names.push(module);
            }
            table.modules.push(module_place);
            table.names.push(name);
        }
        table
    }

    // The middle of names of more than this number of bytes is left out, and their places are
    // added, so that no two are the same.
    pub fn shorten(&mut self, most: usize) {
        for (place, name) in self.names.iter_mut().enumerate() {
            let label = self.labels.binary_search_by_key(&place, |it| it.0);
            let longest = label.map_or(0, |at| self.labels[at].1.len());
            if name.len().max(longest) > most {
                *name = format!("{} #{place}", shortened(name, most)).into();
                self.shortened.push(place);
            }
        }
        let is_whole = |place: usize| self.shortened.binary_search(&place).is_err();
        self.labels.retain(|it| is_whole(it.0));
        self.short.retain(|it| is_whole(it.0));
        self.breaks.retain(|it| is_whole(it.0));
        self.in_quotes.retain(|&place| is_whole(place));
        self.quoted.retain(|it| is_whole(it.0));
        self.symbols.retain(|it| is_whole(it.0));
        for name in &mut self.owner_names {
            *name = shortened(name, most);
        }
        for name in &mut self.module_names {
            *name = name.get(..most).unwrap_or(name);
        }
        self.module_labels
            .iter_mut()
            .for_each(|it| it.1 = shortened(&it.1, most));
    }

    // About how many bytes that saves, at least.
    pub fn saved(&self, most: usize) -> usize {
        let names = self.names.iter();
        names.map(|name| name.len().saturating_sub(most + 8)).sum()
    }

    pub fn has(&self, function: FunctionId) -> bool {
        self.places.contains_key(&function)
    }

    pub fn place(&self, function: FunctionId) -> u64 {
        self.places.get(&function).copied().unwrap_or(0)
    }
}

// The number of columns that the page has for a name at most, about.
const COLUMNS: usize = 72;

// The labels that pages in the terminal have, if those of the subject are full names: as a column
// of this width has them, where no two functions are the same then.
fn short_labels(subject: &Subject, functions: &[FunctionId]) -> HashMap<FunctionId, String> {
    if subject.names != Names::Full {
        return HashMap::new();
    }
    let names = Names::Short;
    let labels = Subject { names, ..*subject }.labels(functions.iter().copied());
    let label = |id: FunctionId| printable(labels.of(id)).into_owned();
    let cut = |&id: &FunctionId| {
        let label = labels.label(id);
        written(&label).shortened(COLUMNS).into_owned()
    };
    let all_cut: Vec<String> = functions.iter().map(cut).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for cut in &all_cut {
        *count.entry(cut).or_default() += 1;
    }
    let of = |(&id, cut): (&FunctionId, &String)| {
        let is_one = count[&**cut] == 1;
        (id, if is_one { cut.clone() } else { label(id) })
    };
    functions.iter().zip(&all_cut).map(of).collect()
}

// A text as it is printed, with at most this number of bytes: the middle of a longer one is left
// out.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let text = printable(text);
    if text.len() <= most {
        return text.into_owned();
    }
    // The end tells names of templates apart better than the beginning.
    let (head, tail) = (most / 3, text.len() - most * 2 / 3);
    let head = (0..=head).rev().find(|&at| text.is_char_boundary(at));
    let tail = (tail..=text.len()).find(|&at| text.is_char_boundary(at));
    let (head, tail) = (head.unwrap_or(0), tail.unwrap_or(text.len()));
    format!("{}…{}", &text[..head], &text[tail..])
}

// The symbol of a Rust function whose name has type arguments that the symbol, of the older kind
// with a hash, does not have: they are a part of the name only where there are several of that
// symbol's name.
fn without_arguments(function: &Function) -> Option<&str> {
    let symbol = function.linkage_name.as_deref()?;
    let hash = symbol.len().checked_sub("17h0123456789abcdefE".len())?;
    let is_such = symbol.starts_with("_ZN") && symbol.get(hash..)?.starts_with("17h");
    (is_such && function.name.ends_with('>')).then_some(symbol)
}

// Row, calls by others and by itself, and whether there may have been more.
#[derive(Serialize)]
struct Calls(usize, Option<u64>, Option<u64>, bool);

// The rows of an event, by decreasing self weight.
#[derive(Serialize)]
pub(super) struct FlatRows {
    functions: Vec<u64>,
    self_weights: Vec<u64>,
    totals: Vec<u64>,
    // Rows that are restored from the code in most samples.
    inferred: Vec<usize>,
    // None where no calls were counted.
    calls: Option<Vec<Calls>>,
    // The rows in order of names, by which ties are broken.
    by_name: Vec<usize>,
    // The number of functions that the page leaves out, and the largest total among them.
    left_out: usize,
    left_out_most: u64,
}

impl FlatRows {
    pub fn of(subject: &Subject, flat: &Flat, functions: &Functions) -> FlatRows {
        let (rows, others): (Vec<&Row>, Vec<&Row>) =
            (flat.rows.iter()).partition(|row| functions.has(row.function));
        let mut by_name: Vec<usize> = (0..rows.len()).collect();
        by_name.sort_unstable_by(|&a, &b| {
            let (a, b) = (rows[a].function, rows[b].function);
            subject.profile.compare_names(a, b)
        });
        let is_inferred = |row: &Row| label::is_inferred(row.inferred, row.total);
        let is_counted = rows.iter().any(|row| row.called.is_some());
        let calls = |(place, row): (usize, &&Row)| {
            let called = row.called.as_ref()?;
            let is_known = called.by_others.is_some() || called.recursive.is_some();
            is_known.then_some(Calls(
                place,
                called.by_others,
                called.recursive,
                called.is_least,
            ))
        };
        let place = |row: &&Row| functions.place(row.function);
        FlatRows {
            functions: rows.iter().map(place).collect(),
            self_weights: rows.iter().map(|row| row.self_weight).collect(),
            totals: rows.iter().map(|row| row.total).collect(),
            inferred: (rows.iter().enumerate())
                .filter(|(_, row)| is_inferred(row))
                .map(|(place, _)| place)
                .collect(),
            calls: is_counted.then(|| rows.iter().enumerate().filter_map(calls).collect()),
            by_name,
            left_out: others.len(),
            left_out_most: others.iter().map(|row| row.total).max().unwrap_or(0),
        }
    }

    // The largest total of a function that the page leaves out, if it does.
    pub fn left_out_most(&self) -> Option<u64> {
        (self.left_out > 0).then_some(self.left_out_most)
    }
}
