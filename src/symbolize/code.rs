//! The calls in the code of the files, as calls of the profile's functions.
//!
//! ```text
//!   Binary ──▶ scan::calls ──▶ sites: at, caller, callee, kind
//!                                │
//!                                ├── caller   main, physically; by debug information the site may
//!                                │            be in a copy:  main ─inlined─▶ parse ─call─▶ lex
//!                                └── callee   a function of the file; or a name, which a file
//!                                             that is looked at too defines, or none
//! ```
//!
//! Functions are those of the samples: the same [`Identities`] give them. Where only calls between
//! these are wanted, only their code is read. Which nameless code is a part of one takes all code
//! of a file: that is kept for the next start.

mod kept;

use std::num::NonZeroUsize;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::base::{IdVec, Svma, parallel};
use crate::binary::{self, Binary, DefinitionId, Exports, Lines, SymbolSource};
use crate::cache::{Place, decode, encode};
use crate::profile::{Builder, CallKind, FunctionCode, FunctionId};
use crate::scan::{self, CallSite, Callee, Calls, CodeFunctionId, FileTables, ImportId};
use crate::trace::ImageId;

use self::kept::KeptCalls;
use super::address_lookup::inlined_calls;
use super::definitions::{Definition, Definitions};
use super::identity::Identities;
use super::name_source::NameSource;
use super::{Options, StaticCalls};

// The number of call sites that a worker looks up at once.
const CHUNK: usize = 4096;
// The code of smaller files is read as a whole, and nothing of it is kept, in bytes.
const LARGE: u64 = 256 << 10;
// What the parts of a file's functions are kept under.
const KEPT_PARTS: &str = "parts";

/// A file and the calls in it.
pub(super) struct Scanned {
    image: ImageId,
    pub(super) binary: Arc<Binary>,
    pub(super) calls: Calls,
    /// The functions whose calls these are, by start; `None` for all.
    chosen: Option<Vec<Svma>>,
}

/// Finds the calls in the code of all files that `name_sources` has; tells of files that do not
/// allow it. With `chosen`, of each image only those of the functions that start there.
pub(super) fn scan(
    name_sources: &IdVec<ImageId, NameSource>,
    mut chosen: Option<IdVec<ImageId, Vec<Svma>>>,
    workers: NonZeroUsize,
    mut refused: impl FnMut(&Binary, binary::Error),
) -> Vec<Scanned> {
    let mut all = Vec::new();
    for (image, name_source) in name_sources.enumerate() {
        let NameSource::Binary(binary, _) = name_source else {
            continue;
        };
        let chosen = chosen
            .as_mut()
            .map(|chosen| std::mem::take(&mut chosen[image]));
        let calls = match &chosen {
            Some(chosen) => calls_of(binary, chosen, workers),
            None => scan::calls(binary, Some(workers)),
        };
        match calls {
            Ok(calls) => all.push(Scanned {
                image,
                binary: binary.clone(),
                calls,
                chosen,
            }),
            Err(error) => refused(binary, error),
        }
    }
    all
}

// The calls of these functions; those of others may be among them.
fn calls_of(
    binary: &Binary,
    chosen: &[Svma],
    workers: NonZeroUsize,
) -> Result<Calls, binary::Error> {
    let code = binary.code()?;
    let size = code.range().end().saturating_sub(*code.range().start());
    if size < LARGE {
        return scan::calls(binary, Some(workers));
    }
    let kept = KeptCalls::open(binary);
    if let Some(calls) = kept.calls(binary, chosen) {
        return Ok(calls);
    }
    let calls = scan_chosen(binary, chosen, workers)?;
    if calls.problems.is_empty() {
        kept.keep(&calls, chosen);
    }
    Ok(calls)
}

fn scan_chosen(
    binary: &Binary,
    chosen: &[Svma],
    workers: NonZeroUsize,
) -> Result<Calls, binary::Error> {
    let tables = FileTables::read(binary)?;
    let workers = Some(workers);
    let place = binary.place_to_keep(KEPT_PARTS);
    let kept = place.as_ref().and_then(Place::load);
    let parts: Option<Vec<(u64, u64)>> = kept.as_ref().and_then(|it| decode(it.bytes()));
    let stated = |&(part, whole): &(u64, u64)| (Svma(part), Svma(whole));
    let parts: Option<Vec<(Svma, Svma)>> = parts.map(|it| it.iter().map(stated).collect());
    if let Some(calls) = scan::calls_of(&tables, chosen, parts.as_deref(), workers) {
        return Ok(calls);
    }
    let calls = scan::calls_in(&tables, workers);
    if let Some(place) = place.filter(|_| calls.problems.is_empty()) {
        let parts = calls.parts().into_iter();
        let parts: Vec<(u64, u64)> = parts.map(|(part, whole)| (part.0, whole.0)).collect();
        // It does not matter if that fails.
        let _ = encode(&parts).and_then(|parts| place.store(&parts));
    }
    Ok(calls)
}

/// The files in their order.
pub(super) fn binaries(all: &[Scanned]) -> Vec<&Arc<Binary>> {
    all.iter().map(|scanned| &scanned.binary).collect()
}

/// Adds the calls that were found, and those that are `contained`: callees inlined into callers.
pub(super) fn add(
    all: &[Scanned],
    mut contained: FxHashSet<(FunctionId, FunctionId)>,
    definitions: &Definitions,
    identities: &mut Identities,
    options: &Options,
    builder: &mut Builder,
) {
    let wanted = match options.calls {
        StaticCalls::Off => return,
        StaticCalls::Sampled => Wanted::Sampled,
        StaticCalls::All => {
            builder.code_is_whole();
            Wanted::All
        }
    };
    for (place, scanned) in all.iter().enumerate() {
        let mut file = File {
            all,
            place,
            scanned,
            reached: match wanted {
                Wanted::Sampled => Reached::default(),
                Wanted::All => Reached::of(scanned, definitions.exports(place)),
            },
            definitions,
            wanted,
            functions: IdVec::filled(None, scanned.calls.functions.len()),
            imports: IdVec::filled(None, scanned.calls.imports.len()),
            identities,
            builder,
        };
        file.add(options, &mut contained);
    }
    // That a copy is there is one fact, however many calls are in it and however many copies
    // there are.
    for (caller, callee) in contained {
        builder.call(caller, callee, CallKind::Inlined);
    }
}

/// How functions of a file are reached other than by calls and pointers.
#[derive(Default)]
struct Reached {
    entry: Option<Svma>,
    exported: FxHashSet<Svma>,
    /// The functions that pick those which are called under their names.
    choosers: FxHashSet<Svma>,
    /// Whether the file computes addresses of functions from distances.
    has_distances: bool,
}

impl Reached {
    fn of(scanned: &Scanned, exports: &Exports) -> Reached {
        let binary = &scanned.binary;
        let choosers = scanned.calls.choosers.iter().copied();
        Reached {
            entry: binary.entry().filter(|_| binary.is_program()),
            exported: exports.addresses().collect(),
            choosers: choosers.chain(exports.choosers()).collect(),
            has_distances: binary.has_distances(),
        }
    }

    fn can_be_found(&self, start: Svma) -> bool {
        self.has_distances || self.exported.contains(&start)
    }
}

/// Which functions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those that the samples have made known.
    Sampled,
    /// All.
    All,
}

/// One file on its way into the profile.
struct File<'a, 'i> {
    all: &'a [Scanned],
    place: usize,
    scanned: &'a Scanned,
    reached: Reached,
    definitions: &'a Definitions<'a>,
    wanted: Wanted,
    /// What has been found out; `Some(None)` for functions that are not wanted.
    functions: IdVec<CodeFunctionId, Option<Option<FunctionId>>>,
    imports: IdVec<ImportId, Option<Option<FunctionId>>>,
    identities: &'a mut Identities<'i>,
    builder: &'a mut Builder,
}

impl File<'_, '_> {
    fn add(&mut self, options: &Options, contained: &mut FxHashSet<(FunctionId, FunctionId)>) {
        let calls = &self.scanned.calls;
        let with_lines = options.inlines && self.scanned.binary.has_debug_info();
        if with_lines && self.wanted == Wanted::All {
            let binary = &self.scanned.binary;
            let functions = calls.functions.iter().filter_map(|function| {
                let symbol = &function.symbol;
                Some((symbol.start.0, binary.function_name(symbol)?))
            });
            self.identities.learn_clones(self.scanned.image, functions);
        }
        // Functions first, in order of address: so have they their ids.
        let all = || calls.functions.ids().collect();
        let chosen = |starts: &Vec<Svma>| {
            let starts = starts.iter();
            let ids = starts.filter_map(|&start| calls.starting_at(start));
            ids.collect()
        };
        let ids: Vec<CodeFunctionId> = self.scanned.chosen.as_ref().map_or_else(all, chosen);
        for id in ids {
            if calls.functions[id].part_of.is_none() {
                self.function(id);
            }
        }
        let sites: Vec<&CallSite> = calls
            .sites
            .iter()
            .filter(|site| self.functions[site.caller].flatten().is_some())
            .collect();
        if !with_lines {
            for site in sites {
                if let Some(caller) = self.function(site.caller) {
                    self.call(caller, site);
                }
            }
            return;
        }
        let Some(lines) = self.identities.lines(self.scanned.image) else {
            return;
        };
        let places: Vec<Svma> = sites.iter().map(|site| site.at).collect();
        let answers = inlined_at(lines, &places, options.workers);
        for (chunk, inlined) in sites.chunks(CHUNK).zip(answers) {
            let mut calls = inlined.calls.as_slice();
            for (site, &length) in chunk.iter().zip(&inlined.lengths) {
                let (here, rest) = calls.split_at(length as usize);
                calls = rest;
                self.site_in(site, here, contained);
            }
        }
    }

    /// Notes a call in what was inlined at its place, outermost first.
    fn site_in(
        &mut self,
        site: &CallSite,
        inlined: &[DefinitionId],
        contained: &mut FxHashSet<(FunctionId, FunctionId)>,
    ) {
        let Some(mut caller) = self.functions[site.caller].flatten() else {
            return;
        };
        for &definition in inlined {
            let Some(inner) = self.inlined(definition) else {
                return;
            };
            contained.insert((caller, inner));
            caller = inner;
        }
        self.call(caller, site);
    }

    fn call(&mut self, caller: FunctionId, site: &CallSite) {
        let callee = match site.callee {
            Callee::Function(id) => self.function(id),
            Callee::Import(id) => self.import(id),
        };
        if let Some(callee) = callee {
            self.builder.call(caller, callee, kind(site.kind));
        }
    }

    fn inlined(&mut self, definition: DefinitionId) -> Option<FunctionId> {
        let image = self.scanned.image;
        match self.wanted {
            Wanted::Sampled => self.identities.known_inlined(image, definition),
            Wanted::All => self.identities.inlined(self.builder, image, definition),
        }
    }

    fn function(&mut self, id: CodeFunctionId) -> Option<FunctionId> {
        if let Some(known) = self.functions[id] {
            return known;
        }
        let code = &self.scanned.calls.functions[id];
        let symbol = &code.symbol;
        let image = self.scanned.image;
        let found = self.starting_at(image, &self.scanned.binary, symbol.start.0);
        if let Some(function) = found {
            let code = FunctionCode {
                size: symbol.size,
                imported: false,
                indirect_calls: code.indirect_calls,
                indirect_jumps: code.indirect_jumps,
                switch_jumps: code.switch_jumps,
                pointers_in_data: code.pointers_in_data,
                can_be_found: self.reached.can_be_found(symbol.start),
                picks: self.reached.choosers.contains(&symbol.start),
                is_entry: self.reached.entry == Some(symbol.start),
            };
            self.builder.code(function, code);
        }
        self.functions[id] = Some(found);
        found
    }

    fn starting_at(&mut self, image: ImageId, binary: &Binary, start: u64) -> Option<FunctionId> {
        if self.wanted == Wanted::Sampled {
            return self.identities.known(image, start);
        }
        let symbol = binary.function_at(Svma(start))?;
        let name = match symbol.source {
            SymbolSource::Unwind => None,
            _ => binary.function_name(symbol),
        };
        let name = name.as_deref().filter(|name| !name.is_empty());
        let start = symbol.start.0;
        Some(
            self.identities
                .starting_at(self.builder, image, start, name),
        )
    }

    /// The function of this name in a file that is looked at, else one that is only a name.
    fn import(&mut self, id: ImportId) -> Option<FunctionId> {
        if let Some(known) = self.imports[id] {
            return known;
        }
        let name = &self.scanned.calls.imports[id];
        let definition = self.definitions.of(self.place, name);
        let found = match (definition, self.wanted) {
            (Some(Definition::Scanned(file, start)), _) => {
                let file = &self.all[file];
                self.starting_at(file.image, &file.binary, start.0)
            }
            (_, Wanted::Sampled) => None,
            (definition, Wanted::All) => {
                let name_source = match definition {
                    Some(Definition::Elsewhere(path, start)) => Some((path, start)),
                    _ => None,
                };
                let function = self.identities.import(self.builder, name, name_source);
                let code = FunctionCode {
                    imported: true,
                    pointers_in_data: self.scanned.calls.pointers_to_imports[id],
                    ..FunctionCode::default()
                };
                self.builder.code(function, code);
                Some(function)
            }
        };
        self.imports[id] = Some(found);
        found
    }
}

fn kind(kind: scan::CallKind) -> CallKind {
    match kind {
        scan::CallKind::Call => CallKind::Call,
        scan::CallKind::Tail => CallKind::Tail,
        scan::CallKind::Import => CallKind::Import,
        scan::CallKind::Pointer => CallKind::Pointer,
    }
}

/// What was inlined at the call sites of a chunk.
#[derive(Debug, Default)]
pub(super) struct Inlined {
    /// The functions inlined at each site, outermost first, one site's after the other's.
    pub(super) calls: Vec<DefinitionId>,
    /// How many of them are each site's.
    pub(super) lengths: Vec<u32>,
}

pub(super) fn inlined_at(lines: &Lines<'_>, sites: &[Svma], workers: NonZeroUsize) -> Vec<Inlined> {
    let chunks: Vec<&[Svma]> = sites.chunks(CHUNK).collect();
    parallel::map(workers, &chunks, |chunk| {
        let mut frames = Vec::new();
        let mut answer = Inlined::default();
        for &site in *chunk {
            frames.clear();
            lines.frames_without_lines(site, &mut frames);
            let before = answer.calls.len();
            let calls = inlined_calls(&frames).map(|(definition, _)| definition);
            answer.calls.extend(calls);
            answer.lengths.push((answer.calls.len() - before) as u32);
        }
        answer
    })
}
