//! The calls of some functions of a file, for which only their code is read.
//!
//! ```text
//!   f       chosen
//!   f.cold  may be a part of f: shares its name         read, and all others of the name
//!   0x1234  f jumps there, and it has no name           read: it may jump back into f
//! ```
//!
//! A function with a name of its own is no part. Nameless code is a part if nothing else refers to
//! it, and to know that takes all of the code.

use std::num::NonZeroUsize;

use rustc_hash::FxHashSet;

use super::file_tables::FileTables;
use super::part_names;
use super::split_functions::{Parts, Traces};
use super::workers::{self, ChunkCalls, Scan};
use super::{Calls, CodeFunctionId, Pointers, put_together};
use crate::base::Svma;

/// Finds the calls of the functions that start at these addresses, with their parts, as
/// [`calls`](super::calls) finds them; of the calls of others, an unspecified part. Pointers in
/// data are not counted.
///
/// `parts` are all parts of the file, each with the function that it belongs to, by start, where
/// they are known from [`Calls::parts`]. Without them, `None` where only all code of the file can
/// tell what is a part of what.
pub fn calls_of(
    tables: &FileTables,
    chosen: &[Svma],
    parts: Option<&[(Svma, Svma)]>,
    workers: Option<NonZeroUsize>,
) -> Option<Calls> {
    let resolver = tables.resolver();
    let scan = Scan::new(tables, &resolver);
    let chosen = chosen.iter().filter_map(|&start| tables.starting_at(start));
    let chosen: Vec<CodeFunctionId> = chosen.collect();
    let read = |functions: &FxHashSet<CodeFunctionId>| {
        let lots = tables.lots_of_functions(functions);
        workers::scan(&scan, &lots, workers, || ()).1
    };
    let (parts, chunks) = match parts {
        Some(parts) => {
            let parts = Parts::known(tables, parts);
            let chunks = read(&parts.with_parts(&chosen));
            (parts, chunks)
        }
        None => {
            let own = with_names(tables, &chosen);
            let chunks = read(&own);
            let mut traces = Traces::new(tables);
            traces.add(sites(&chunks));
            let asked = traces.asked(&own);
            let more = read(&traces.unread(&asked, &own));
            traces.add(sites(&more));
            (traces.parts_among(&asked)?, chunks)
        }
    };
    let pointers = Pointers::none(&resolver);
    Some(put_together(&resolver, &parts, pointers, chunks))
}

fn sites(chunks: &[ChunkCalls]) -> impl Iterator<Item = &super::resolve::Site> {
    chunks.iter().flat_map(|chunk| &chunk.sites)
}

/// These functions, and those that have the same name as one of them but for what marks a part.
fn with_names(tables: &FileTables, chosen: &[CodeFunctionId]) -> FxHashSet<CodeFunctionId> {
    let mut all: FxHashSet<CodeFunctionId> = chosen.iter().copied().collect();
    let split = tables.split_functions();
    let names = chosen.iter().filter_map(|&id| tables.name(id));
    let wholes = names.filter_map(|name| split.get(part_names::whole(&name)));
    let wholes: FxHashSet<&str> = wholes.map(String::as_str).collect();
    if !wholes.is_empty() {
        all.extend(tables.named(&wholes));
    }
    all
}
