//! gmon.out: what a program built with `-pg` leaves behind, samples by address and exact counts
//! of calls, without stacks.
//!
//! ```text
//!   gmon.out ─▶ file ─▶ histogram of addresses ─▶ share ─▶ samples of one function each
//!                  └──▶ arcs of addresses ───────────────▶ counts: caller, callee, calls
//!   program ──▶ functions in gprof's sense ──────┘
//! ```
//!
//! The time of a function is what gprof 2.40 gives it: the ticks of the histogram, shared out
//! between functions, each worth a second divided by the rate; here in nanoseconds. All functions of
//! the program are in the profile, those without time and calls too.

pub(super) mod contents;
mod file;
pub(super) mod join;
mod share;

use std::path::Path;

use self::file::{Gmon, Shape};
use super::{Error, Options};
use crate::base::{CaveatKind, Caveats, Event, Svma, Unit, WeightSum};
use crate::binary::{Binary, Finder, GprofSymbols, demangle};
use crate::profile::{
    Builder, Call, CallKind, Function, FunctionId, FunctionKind, Histogram, Module, Profile, Thread,
};
use crate::symbolize::{self, StaticCalls};

pub(super) use self::file::is_gmon;

/// The largest file that is read, in bytes.
pub(super) const MAX_SIZE: u64 = 256 << 20;

/// A file and how it is called in messages.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Named {
    pub(super) fn new(path: &Path, bytes: Vec<u8>) -> Named {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Named {
            name: name.to_string_lossy().into_owned(),
            bytes,
        }
    }
}

/// The sum of some files and the functions of the program that made them.
struct Counted {
    gmon: Gmon,
    functions: GprofSymbols,
    caveats: Caveats,
}

impl Counted {
    fn read(files: &[Named], program: &Binary) -> Result<Counted, Error> {
        let mut caveats = Caveats::default();
        let mut gmon = Gmon::default();
        let shape = Shape {
            wide: program.is_wide(),
            big_endian: program.is_big_endian(),
        };
        for file in files {
            gmon.add(&file.bytes, shape, &file.name, &mut caveats)?;
        }
        let functions = program.gprof_symbols().map_err(Error::Binary)?;
        Ok(Counted {
            gmon,
            functions,
            caveats,
        })
    }

    /// The calls between functions, by place, in the order of the file's arcs; what lies outside
    /// of functions is left out and told. As in gprof, a call of what is no function is one of
    /// the function before it.
    fn calls(&mut self) -> Vec<(usize, usize, u64)> {
        let mut astray = 0u64;
        let mut calls = Vec::new();
        let mut last = None;
        let rows = self.functions.rows.iter().enumerate();
        let functions: Vec<Option<usize>> = rows
            .map(|(place, row)| {
                last = if row.is_function { Some(place) } else { last };
                last
            })
            .collect();
        for arc in &self.gmon.arcs {
            let place = |address| self.functions.at(Svma(address));
            let function = |place: usize| functions.get(place).copied().flatten();
            match (place(arc.from), place(arc.to).and_then(function)) {
                (Some(from), Some(to)) => calls.push((from, to, arc.count)),
                _ => astray = astray.saturating_add(arc.count),
            }
        }
        if astray > 0 {
            self.caveats.add(CaveatKind::AstrayCounts, astray);
        }
        calls
    }
}

/// The profile of some gmon.out files of a program, added up.
///
/// # Errors
///
/// When a file is no gmon.out of such a program, or the program cannot be read.
pub(super) fn read(files: &[Named], path: &Path, options: &Options) -> Result<Profile, Error> {
    let finder = Finder::new(options.symfs.as_deref());
    let program = finder.open_named(path).map_err(Error::Binary)?;
    let mut counted = Counted::read(files, &program)?;
    let calls = counted.calls();

    let mut builder = Builder::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = builder.module(Module {
        name: name.clone().into_owned(),
        path: path.to_string_lossy().into_owned(),
    });
    let thread = builder.thread(Thread {
        pid: 0,
        tid: 0,
        comm: name.into_owned(),
    });
    let event = builder.event(Event {
        name: "profil".into(),
        unit: Unit::Nanoseconds,
    });
    let rows = counted.functions.rows.iter();
    let ids: Vec<FunctionId> = rows
        .map(|row| builder.function(function(&row.name, module, row.start)))
        .collect();
    if ids.is_empty() {
        counted.caveats.add_detail(
            CaveatKind::NoFunctions,
            1,
            format!("{} has no symbols", path.display()),
        );
    }

    let rate = f64::from(counted.gmon.rate.unwrap_or(1));
    let shares = share::of(&counted.gmon.histograms, &counted.functions);
    let mut sum = 0.0;
    let mut sample = |builder: &mut Builder, function, ticks: f64| {
        // Whole samples, such that they add up to the ticks.
        let before = rounded(sum);
        sum += ticks;
        let (weight, samples) = (rounded(ticks * 1e9 / rate), rounded(sum) - before);
        let path = builder.path(None, function, false);
        if !builder.sample(event, thread, path, None, WeightSum::equal(weight, samples)) {
            builder.caveats().add(CaveatKind::WeightLimit, samples);
        }
    };
    for (&id, &ticks) in ids.iter().zip(&shares.ticks) {
        if ticks > 0.0 {
            sample(&mut builder, id, ticks);
        }
    }
    if shares.outside > 0.0 {
        let outside = builder.function(Function {
            kind: FunctionKind::Mark,
            address: None,
            ..function("[outside of functions]", module, Svma(0))
        });
        sample(&mut builder, outside, shares.outside);
        let ticks = rounded(shares.outside).max(1);
        builder
            .caveats()
            .add_detail(CaveatKind::NoSymbols, ticks, path.display().to_string());
    }
    if sum == 0.0 {
        builder.caveats().add(CaveatKind::NoSamples, 1);
    } else {
        builder.caveats().add(CaveatKind::CountsOnly, 1);
    }

    let mut histogram = Histogram {
        rate: u64::from(counted.gmon.rate.unwrap_or(0)),
        ticks: (counted
            .gmon
            .histograms
            .iter()
            .flat_map(|histogram| &histogram.ticks))
        .fold(0, |sum, &ticks| sum.saturating_add(ticks)),
        bucket: (counted.gmon.histograms.first())
            .map_or(0, |first| (first.scale() as u64).saturating_mul(2)),
        shares: (ids.iter().copied().zip(shares.ticks.iter().copied()))
            .filter(|&(_, ticks)| ticks > 0.0)
            .collect(),
        arcs: Vec::new(),
        files: source_files(&program, &counted.functions, &ids),
    };
    for (from, to, count) in calls {
        builder.count(Some(ids[from]), ids[to], count);
        if count == 0 {
            // Nobody counts what did not happen: gprof -s -c writes what it saw in the code.
            builder.call(ids[from], ids[to], CallKind::Call);
        }
        histogram.arcs.push((ids[from], ids[to]));
    }
    builder.about().histogram = Some(histogram);
    builder.caveats().merge(&counted.caveats);
    let mut profile = builder.finish();
    if options.calls != StaticCalls::Off {
        add_code(&mut profile, program, &counted.functions, &ids, options)?;
    }
    Ok(profile)
}

/// The names of the source files of local functions, as far as debug information has them.
fn source_files(
    program: &Binary,
    functions: &GprofSymbols,
    ids: &[FunctionId],
) -> Vec<(FunctionId, String)> {
    if !program.has_debug_info() {
        return Vec::new();
    }
    let lines = program.lines();
    let mut frames = Vec::new();
    let rows = functions.rows.iter().zip(ids);
    let local = rows.filter(|(row, _)| row.is_local);
    let named = local.filter_map(|(row, &id)| {
        lines.frames(row.start, &mut frames);
        let file = frames.first()?.file?;
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        frames.clear();
        Some((id, name))
    });
    named.collect()
}

/// `ticks` as a whole number.
fn rounded(ticks: f64) -> u64 {
    ticks.round() as u64
}

/// A function of the program by its name in the symbol table.
fn function(name: &str, module: crate::profile::ModuleId, start: Svma) -> Function {
    let shown = demangle(name).into_owned();
    Function {
        linkage_name: (shown != name).then(|| name.to_owned()),
        declared_at: None,
        name: shown,
        module,
        address: Some(start.0),
        kind: FunctionKind::Named,
    }
}

/// Adds the calls in the program's code. They are found in its functions as everybody else sees
/// them, and belong to the functions in gprof's sense that contain these.
fn add_code(
    profile: &mut Profile,
    program: Binary,
    functions: &GprofSymbols,
    ids: &[FunctionId],
    options: &Options,
) -> Result<(), Error> {
    let options = symbolize::Options {
        finder: Finder::new(options.symfs.as_deref()),
        inlines: false,
        ..symbolize::Options::default()
    };
    let code = symbolize::programs(vec![program], &options);
    let code = code.map_err(|(_, error)| Error::Binary(error))?;
    let of = |id: FunctionId| {
        let address = code.functions[id].address?;
        functions
            .at(Svma(address))
            .and_then(|place| ids.get(place))
            .copied()
    };
    let mut calls: Vec<Call> = std::mem::take(&mut profile.code.calls);
    for call in &code.code.calls {
        if let (Some(from), Some(to)) = (of(call.from), of(call.to)) {
            // A jump within one function in gprof's sense is no call.
            if from != to || call.kind == CallKind::Call {
                calls.push(Call { from, to, ..*call });
            }
        }
    }
    calls.sort_unstable();
    calls.dedup_by(|next, sum| {
        let same = (next.from, next.to, next.kind) == (sum.from, sum.to, sum.kind);
        if same {
            sum.sites = sum.sites.saturating_add(next.sites);
        }
        same
    });
    profile.code.calls = calls;
    Ok(())
}
