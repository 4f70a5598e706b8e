//! The calls that were counted, as calls of the profile's functions.
//!
//! ```text
//!   site: at, caller, callee, calls
//!    │     caller   main, physically; by debug information the site may be in a copy of parse
//!    │     callee   a function of the file, or a name that another file defines
//!    ▼
//!   parse ─ calls ─▶ lex      the sum over its sites; at least, if one of them was not counted
//! ```

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Options;
use super::code::inlined_at;
use super::definitions::{Definition, Definitions};
use super::identity::Identities;
use super::name_source::NameSource;
use crate::base::{IdVec, Svma};
use crate::binary::{Binary, DefinitionId, SymbolSource};
use crate::profile::{Builder, CallCount, FunctionId, SiteCount};
use crate::trace::{CountedCallee, CountedImage, CountedSite, ImageId, Trace};

/// The calls of one function by another.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    is_counted: bool,
    is_least: bool,
}

/// Adds the counted calls of a recording, and the functions that they show.
pub(super) fn add(
    trace: &Trace,
    name_sources: &IdVec<ImageId, NameSource>,
    identities: &mut Identities,
    options: &Options,
    builder: &mut Builder,
) {
    let Some((counts, images)) = &trace.counted else {
        return;
    };
    let binaries = name_sources.enumerate().filter_map(|(image, source)| {
        let NameSource::Binary(binary, _) = source else {
            return None;
        };
        Some((image, binary))
    });
    let (files, binaries): (Vec<ImageId>, Vec<&Arc<Binary>>) = binaries.unzip();
    let definitions = Definitions::new(binaries.clone(), None);
    let mut sums: FxHashMap<(FunctionId, FunctionId), Sum> = FxHashMap::default();
    let (mut complete, mut open) = (FxHashSet::default(), FxHashSet::default());
    for (counted, &image) in counts.images.iter().zip(images) {
        let place = files.iter().position(|&file| file == image);
        let mut file = File {
            counted,
            image,
            place,
            files: &files,
            binaries: &binaries,
            definitions: &definitions,
            is_partly: trace.partly_counted.contains(&image),
            imports: vec![None; counted.imports.len()],
            identities,
            builder,
        };
        file.add(options, &mut sums, &mut open);
        if options.addresses {
            let sites = file.sites();
            builder.count_sites(sites);
        }
    }
    // Calls of one file make functions of another known.
    for (counted, &image) in counts.images.iter().zip(images) {
        let place = files.iter().position(|&file| file == image);
        if let Some(&binary) = place.and_then(|place| binaries.get(place)) {
            let starts = binary.functions().iter().map(|function| function.start.0);
            let known = starts.filter_map(|start| identities.known(image, start));
            if trace.partly_counted.contains(&image) {
                open.extend(known);
            } else {
                complete.extend(known);
            }
        }
        let starts = counted.open.iter();
        open.extend(starts.filter_map(|&start| identities.known(image, start)));
    }
    let is_least = |sum: &Sum| sum.is_least || !sum.is_counted;
    let least = sums.iter().filter(|(_, sum)| is_least(sum));
    open.extend(least.map(|(&(_, to), _)| to));
    // For these no entry means no call: every way to call them was counted.
    let complete = complete.difference(&open).copied().collect();
    let counts = sums
        .into_iter()
        .filter(|(_, sum)| sum.is_counted)
        .map(|((from, to), sum)| CallCount {
            from: Some(from),
            to,
            calls: sum.calls,
            is_least: sum.is_least,
        });
    builder.count_some(counts, complete);
}

/// One file with counted calls.
struct File<'a, 'i> {
    counted: &'a CountedImage,
    image: ImageId,
    /// Its place among the files that could be opened.
    place: Option<usize>,
    files: &'a [ImageId],
    binaries: &'a [&'a Arc<Binary>],
    definitions: &'a Definitions<'a>,
    /// Whether it also ran where calls were not counted.
    is_partly: bool,
    imports: Vec<Option<FunctionId>>,
    identities: &'a mut Identities<'i>,
    builder: &'a mut Builder,
}

impl File<'_, '_> {
    /// Adds the calls of this file. What it may call at sites that were not counted becomes `open`.
    fn add(
        &mut self,
        options: &Options,
        sums: &mut FxHashMap<(FunctionId, FunctionId), Sum>,
        open: &mut FxHashSet<FunctionId>,
    ) {
        let sites = &self.counted.sites;
        let called: Vec<&CountedSite> = { sites.iter() }
            .filter(|site| site.calls.is_some_and(|calls| calls > 0))
            .collect();
        self.learn_clones(&called);
        let callers = self.callers(&called, options);
        for (site, caller) in called.into_iter().zip(callers) {
            let callee = self.callee(site);
            let sum = sums.entry((caller, callee)).or_default();
            sum.calls = sum.calls.saturating_add(site.calls.unwrap_or(0));
            sum.is_counted = true;
            sum.is_least |= self.is_least(site);
        }
        // What was never called makes no function known. Where both are known that is a fact, too.
        for site in sites
            .iter()
            .filter(|site| site.calls.is_none_or(|calls| calls == 0))
        {
            let Some(callee) = self.known_callee(site) else {
                continue;
            };
            let is_least = self.is_least(site) || site.calls.is_none();
            // The caller may have run without a sample, and without a call that was counted.
            if is_least {
                open.insert(callee);
            }
            let Some(caller) = self.identities.known(self.image, site.caller) else {
                continue;
            };
            let sum = sums.entry((caller, callee)).or_default();
            sum.is_counted |= site.calls.is_some();
            sum.is_least |= is_least;
        }
    }

    fn is_least(&self, site: &CountedSite) -> bool {
        site.is_least || site.is_part || self.is_partly
    }

    fn sites(&mut self) -> Vec<SiteCount> {
        let module = self.identities.module(self.image);
        let counted = self.counted;
        let sites = counted.sites.iter().filter_map(|site| {
            let calls = site.calls?;
            let between = (calls > 0).then(|| {
                let caller = self.starting_at(self.image, self.place, site.caller);
                (caller, self.callee(site))
            });
            Some(SiteCount {
                module,
                at: site.at,
                calls,
                is_least: site.is_part || self.is_partly,
                between,
            })
        });
        sites.collect()
    }

    fn learn_clones(&mut self, called: &[&CountedSite]) {
        let Some(&binary) = self.place.and_then(|place| self.binaries.get(place)) else {
            return;
        };
        let mut starts: Vec<u64> = called.iter().map(|site| site.caller).collect();
        starts.extend(called.iter().filter_map(|site| match site.callee {
            CountedCallee::At(start) => Some(start),
            CountedCallee::Import(_) => None,
        }));
        starts.sort_unstable();
        starts.dedup();
        let named = starts.into_iter().filter_map(|start| {
            let symbol = binary.function_at(Svma(start))?;
            Some((start, binary.function_name(symbol)?))
        });
        self.identities.learn_clones(self.image, named);
    }

    /// The functions that the sites are in: the innermost that is inlined there.
    fn callers(&mut self, sites: &[&CountedSite], options: &Options) -> Vec<FunctionId> {
        let physical: Vec<FunctionId> = sites
            .iter()
            .map(|site| self.starting_at(self.image, self.place, site.caller))
            .collect();
        let Some(&binary) = self.place.and_then(|place| self.binaries.get(place)) else {
            return physical;
        };
        if !options.inlines || !binary.has_debug_info() {
            return physical;
        }
        let Some(lines) = self.identities.lines(self.image) else {
            return physical;
        };
        let places: Vec<Svma> = sites.iter().map(|site| Svma(site.at)).collect();
        let innermost: Vec<Vec<DefinitionId>> = inlined_at(lines, &places, options.workers)
            .into_iter()
            .flat_map(|inlined| {
                let mut calls = inlined.calls.into_iter();
                let innermost = inlined.lengths.into_iter().map(move |length| {
                    let here = calls.by_ref().take(length as usize);
                    here.collect::<Vec<DefinitionId>>()
                });
                innermost.collect::<Vec<_>>()
            })
            .collect();
        let callers = physical.into_iter().zip(innermost);
        callers
            .map(|(physical, inlined)| {
                // What has no name ends the chain, as on stacks.
                let mut caller = physical;
                for definition in inlined {
                    match self
                        .identities
                        .inlined(self.builder, self.image, definition)
                    {
                        Some(inner) => caller = inner,
                        None => break,
                    }
                }
                caller
            })
            .collect()
    }

    fn callee(&mut self, site: &CountedSite) -> FunctionId {
        let row = match site.callee {
            CountedCallee::At(start) => return self.starting_at(self.image, self.place, start),
            CountedCallee::Import(row) => row as usize,
        };
        if let Some(known) = self.imports.get(row).copied().flatten() {
            return known;
        }
        let name = self.counted.imports.get(row).map_or("", String::as_str);
        let function = match self.definition(name) {
            Some((file, start)) => {
                let image = self.files.get(file).copied().unwrap_or(self.image);
                self.starting_at(image, Some(file), start)
            }
            None => self.identities.import(self.builder, name, None),
        };
        if let Some(known) = self.imports.get_mut(row) {
            *known = Some(function);
        }
        function
    }

    fn known_callee(&self, site: &CountedSite) -> Option<FunctionId> {
        match site.callee {
            CountedCallee::At(start) => self.identities.known(self.image, start),
            CountedCallee::Import(row) => {
                if let Some(known) = self.imports.get(row as usize).copied().flatten() {
                    return Some(known);
                }
                let name = self.counted.imports.get(row as usize)?;
                let (file, start) = self.definition(name)?;
                self.identities.known(*self.files.get(file)?, start)
            }
        }
    }

    fn definition(&self, name: &str) -> Option<(usize, u64)> {
        match self.definitions.of(self.place?, name)? {
            Definition::Scanned(file, start) => Some((file, start.0)),
            Definition::Elsewhere(..) => None,
        }
    }

    fn starting_at(&mut self, image: ImageId, place: Option<usize>, start: u64) -> FunctionId {
        let binary = place.and_then(|place| self.binaries.get(place));
        let symbol = binary.and_then(|binary| binary.function_at(Svma(start)));
        let symbol = symbol.filter(|symbol| symbol.start.0 == start);
        let name = symbol
            .filter(|symbol| symbol.source != SymbolSource::Unwind)
            .and_then(|symbol| binary?.function_name(symbol));
        let name = name.as_deref().filter(|name| !name.is_empty());
        self.identities
            .starting_at(self.builder, image, start, name)
    }
}
