//! gmon.out: what a program built with `-pg` leaves behind, samples by address and exact counts
//! of calls, without stacks.
//!
//! ```text
//!   gmon.out ─▶ file ─▶ histogram of addresses ─▶ share ─▶ samples of one function each
//!                  └──▶ arcs of addresses ─────▶ callers ─▶ counts: caller, callee, calls
//!   program ──▶ its symbols and code ────────────┘
//! ```
//!
//! The ticks of the histogram are divided among functions. A tick is a second divided by the rate,
//! here in nanoseconds. Functions are the program's symbols; for gprof's own text they are those of
//! gprof 2.40, with its times and callers (`classic`). All functions of the program are in the
//! profile, those without time and calls too.

mod callers;
mod classic;
pub(super) mod contents;
mod entry;
mod file;
mod function_at;
pub(super) mod join;
mod share;
mod symbols;

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use self::file::{Gmon, Shape};
use self::share::Shares;
use super::{AsGprof, Error, Options};
use crate::base::{CaveatKind, Caveats, Event, Language, Svma, Unit, WeightSum, utf8};
use crate::binary::{self, Binary, Finder, demangled};
use crate::profile::{
    Builder, Call, CallKind, EventId, Function, FunctionId, FunctionKind, Histogram, Module,
    ModuleId, Profile, Thread, ThreadId,
};
use crate::symbolize::{self, StaticCalls};

pub(super) use self::file::is_gmon;

pub(super) const MAX_SIZE: u64 = 256 << 20;

pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Named {
    pub(super) fn new(path: &Path, bytes: Vec<u8>) -> Named {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Named {
            path: path.to_owned(),
            name: name.to_string_lossy().into_owned(),
            bytes,
        }
    }
}

struct Symbol {
    start: Svma,
    // Its name as it stands in the file; `None` where only its bounds are known.
    name: Option<String>,
}

struct Counted {
    symbols: Vec<Symbol>,
    shares: Shares,
    // Caller and callee by place, and the number of calls, in the order of the files' arcs.
    calls: Vec<(usize, usize, u64)>,
}

fn sum(files: &[Named], program: &Binary, caveats: &mut Caveats) -> Result<Gmon, Error> {
    let mut gmon = Gmon::default();
    let shape = Shape {
        wide: program.is_wide(),
        big_endian: program.is_big_endian(),
    };
    for file in files {
        gmon.add(&file.bytes, shape, &file.name, caveats)
            .map_err(Error::of(&file.path))?;
    }
    Ok(gmon)
}

pub(super) fn read(files: &[Named], path: &Path, options: &Options) -> Result<Profile, Error> {
    let (profile, _) = read_by(Reading::Symbols, files, path, options)?;
    Ok(profile)
}

// As gprof 2.40 reads the files.
pub(super) fn read_as_gprof(
    files: &[Named],
    path: &Path,
    options: &Options,
) -> Result<AsGprof, Error> {
    let (profile, histogram) = read_by(Reading::Gprof, files, path, options)?;
    Ok(AsGprof {
        profile,
        histogram: histogram.unwrap_or_default(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    // The functions are the program's symbols.
    Symbols,
    // The functions, times and callers are those of gprof.
    Gprof,
}

fn read_by(
    reading: Reading,
    files: &[Named],
    path: &Path,
    options: &Options,
) -> Result<(Profile, Option<Histogram>), Error> {
    let finder = Finder::new(options.symfs.as_deref());
    let program = finder.open_named(path).map_err(Error::of(path))?;
    let mut caveats = Caveats::default();
    let gmon = sum(files, &program, &mut caveats)?;
    let of_gprof = (reading == Reading::Gprof)
        .then(|| program.gprof_symbols())
        .transpose()
        .map_err(Error::of(path))?;
    let counted = match &of_gprof {
        Some(functions) => classic::count(&gmon, functions, &mut caveats),
        None => symbols::count(&gmon, &program, &mut caveats),
    };

    let mut builder = Builder::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = builder.module(Module {
        name: name.clone().into_owned(),
        path: path.to_string_lossy().into_owned(),
    });
    let thread = builder.thread(Thread::new(0, 0, name));
    let event = builder.event(Event {
        name: "profil".into(),
        unit: Unit::Nanoseconds,
    });
    let functions = counted.symbols.iter();
    let ids: Vec<FunctionId> = functions
        .map(|symbol| builder.function(function(symbol, module)))
        .collect();
    if ids.is_empty() {
        let detail = format!("{} has no symbols", path.display());
        caveats.add_detail(CaveatKind::NoFunctions, 1, detail);
    }

    let shares = &counted.shares;
    let ticks = ids.iter().copied().zip(shares.ticks.iter().copied());
    let mut sampled: Vec<(FunctionId, f64)> = ticks.filter(|&(_, ticks)| ticks > 0.0).collect();
    if shares.outside > 0.0 {
        let outside = builder.function(Function {
            name: "[outside of functions]".into(),
            linkage_name: None,
            declared_at: None,
            module,
            address: None,
            kind: FunctionKind::Mark,
            language: Language::Unknown,
        });
        sampled.push((outside, shares.outside));
        let ticks = rounded(shares.outside).max(1);
        caveats.add_detail(CaveatKind::NoSymbols, ticks, path.display().to_string());
    }
    let rate = f64::from(gmon.rate.unwrap_or(1));
    add_samples(&mut builder, event, thread, rate, &sampled);
    if sampled.is_empty() {
        caveats.add(CaveatKind::EmptyHistogram, 1);
    } else {
        let any = counted.calls.iter().any(|&(_, _, count)| count > 0);
        caveats.add(
            if any {
                CaveatKind::CountsOnly
            } else {
                CaveatKind::NothingCounted
            },
            1,
        );
    }
    for library in program.needed().libraries {
        caveats.add_detail(CaveatKind::NoLibraryTime, 1, utf8(&library));
    }
    for &(from, to, count) in &counted.calls {
        builder.count(Some(ids[from]), ids[to], count);
        if count == 0 {
            // Nobody counts what did not happen: gprof -s -c writes what it saw in the code.
            builder.call(ids[from], ids[to], CallKind::Call);
        }
    }
    let histogram = of_gprof
        .as_ref()
        .map(|functions| classic::histogram(&gmon, &counted, functions, &program, &ids));
    if reading == Reading::Symbols
        && let Some(main) = entry::of_cycle(&counted.symbols, &counted.calls)
    {
        builder.count(None, ids[main], 1);
        caveats.add(CaveatKind::AssumedEntry, 1);
    }
    builder.caveats().merge(&caveats);
    let mut profile = builder.finish();
    // None that were counted is known, too: there were arcs for them.
    profile.counts.get_or_insert_default();
    mark_uncounted(&mut profile);
    if options.calls != StaticCalls::Off {
        let place = |address: Svma| match &of_gprof {
            Some(functions) => functions.at(address),
            None => counted.place(address),
        };
        let of = |address| place(address).and_then(|place| ids.get(place)).copied();
        add_code(&mut profile, program, of, options).map_err(Error::of(path))?;
    }
    Ok((profile, histogram))
}

// Adds ticks as whole samples, such that they add up to the ticks; `rate` is their number per
// second.
fn add_samples(
    builder: &mut Builder,
    event: EventId,
    thread: ThreadId,
    rate: f64,
    sampled: &[(FunctionId, f64)],
) {
    let mut sum = 0.0;
    for &(function, ticks) in sampled {
        let before = rounded(sum);
        sum += ticks;
        let (weight, samples) = (rounded(ticks * 1e9 / rate), rounded(sum) - before);
        let path = builder.path(None, function, false);
        if !builder.sample(event, thread, path, None, WeightSum::equal(weight, samples)) {
            builder.caveats().add(CaveatKind::WeightLimit, samples);
        }
    }
}

// Functions that ran although no call of them was counted.
fn mark_uncounted(profile: &mut Profile) {
    let Some(counts) = profile.counts.take() else {
        return;
    };
    let calls = || counts.calls().iter().filter(|count| count.calls > 0);
    let called: FxHashSet<FunctionId> = calls().map(|count| count.to).collect();
    let sampled = profile
        .samples
        .iter()
        .map(|it| profile.paths[it.path].function);
    let ran = sampled.chain(calls().filter_map(|count| count.from));
    let is_function = |id: &FunctionId| profile.functions[*id].kind != FunctionKind::Mark;
    let uncounted = ran
        .filter(|id| !called.contains(id) && is_function(id))
        .collect();
    profile.counts = Some(counts.with_uncounted(uncounted));
}

impl Counted {
    fn place(&self, start: Svma) -> Option<usize> {
        let places = self.symbols.binary_search_by_key(&start, |row| row.start);
        places.ok()
    }
}

fn rounded(ticks: f64) -> u64 {
    ticks.round() as u64
}

fn function(symbol: &Symbol, module: ModuleId) -> Function {
    let linkage_name = symbol.name.as_deref().unwrap_or_default();
    let (name, language) = match &symbol.name {
        Some(name) => demangled(name),
        None => (
            format!("sub_{:x}", symbol.start.0).into(),
            Language::Unknown,
        ),
    };
    Function {
        linkage_name: (!linkage_name.is_empty() && linkage_name != name)
            .then(|| linkage_name.into()),
        declared_at: None,
        name: name.into_owned(),
        language,
        module,
        address: Some(symbol.start.0),
        kind: match symbol.name {
            Some(_) => FunctionKind::Named,
            None => FunctionKind::Unknown,
        },
    }
}

// `at` tells which function the code that starts at an address belongs to.
fn add_code(
    profile: &mut Profile,
    program: Binary,
    at: impl Fn(Svma) -> Option<FunctionId>,
    options: &Options,
) -> Result<(), binary::Error> {
    let options = symbolize::Options {
        finder: Finder::new(options.symfs.as_deref()),
        inlines: false,
        ..symbolize::Options::default()
    };
    let code = symbolize::programs(vec![program], &options).map_err(|error| error.reason)?;
    let of = |id: FunctionId| at(Svma(code.functions[id].address?));
    let calls = code.code.calls().iter().filter_map(|call| {
        let (from, to) = (of(call.from)?, of(call.to)?);
        // A jump within one function is no call.
        let is_call = from != to || call.kind == CallKind::Call;
        is_call.then_some(Call { from, to, ..*call })
    });
    profile.code.add_calls(calls);
    Ok(())
}
