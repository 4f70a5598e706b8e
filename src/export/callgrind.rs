//! Costs and calls for `callgrind_annotate` and KCachegrind, in callgrind's profile format, version
//! 1.
//!
//! ```text
//!   fl=(1) /src/parse.c
//!   fn=(2) parse
//!   31 500                    500 in parse itself, on line 31
//!   cfi=(2) /src/lex.c
//!   cfn=(3) lex
//!   calls=1 12                a call of lex, which begins on line 12
//!   40 700                    from line 40; 700 came into lex by it
//! ```
//!
//! `callgrind_annotate` takes what comes in over calls as the total of a function. So a sample is
//! on a call only where the callee is outermost ([`OutermostCalls`]), and roots are called from
//! `(root)`. How often a function was called is not known from samples; where calls were not
//! counted `calls=` is 1, as the format wants at least 1, and `callgrind_annotate` takes the costs
//! of `calls=0` as the caller's own.
//!
//! Functions are known by file and name. Where two would be the same, the file of each has its
//! module and address as well.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::analysis::call_stacks::{At, CallStacks, OutermostCalls};
use crate::base::{Interner, Unit, printable};
use crate::profile::{FunctionId, LineId};
use crate::view::Subject;

use super::naming::{MERGED, Naming, PRODUCER};

// What stands for a file or module that is not known, as in callgrind.
const UNKNOWN: &str = "???";
// Calls the outermost functions.
const ROOT: &str = "(root)";

// Its line, the callee, the weight that came in by it.
type Call = (Option<LineId>, FunctionId, u64);

/// Writes the costs.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    stacks: &CallStacks,
    calls: &OutermostCalls,
) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    header(out, subject, &naming)?;
    let mut calls_of: BTreeMap<Option<FunctionId>, Vec<Call>> = BTreeMap::new();
    for (&(from, to), &weight) in &calls.calls {
        let (caller, line) = from.map_or((None, None), |(caller, line)| (Some(caller), line));
        calls_of.entry(caller).or_default().push((line, to, weight));
    }
    let mut selves: BTreeMap<FunctionId, Vec<(At, u64)>> = BTreeMap::new();
    for (&at, &weight) in &calls.selves {
        selves.entry(at.0).or_default().push((at, weight));
    }
    let mut functions: Vec<FunctionId> = calls
        .selves
        .keys()
        .map(|&(function, _)| function)
        .chain(calls.calls.keys().map(|&(_, to)| to))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    let mut writer = Writer {
        files: files(&naming, &functions),
        naming,
        objects: Names::default(),
        sources: Names::default(),
        functions: Names::default(),
    };
    writer.root(out)?;
    writer.calls(
        out,
        None,
        calls_of.get(&None).map_or(&[][..], Vec::as_slice),
    )?;
    for function in functions {
        writer.function(out, function)?;
        let own = selves.get(&function).map_or(&[][..], Vec::as_slice);
        for &((_, line), weight) in own {
            writeln!(out, "{} {weight}", writer.line(function, line))?;
        }
        if own.is_empty() {
            writeln!(out, "0 0")?;
        }
        let called = calls_of.get(&Some(function)).map_or(&[][..], Vec::as_slice);
        writer.calls(out, Some(function), called)?;
    }
    Ok(())
}

fn header(out: &mut dyn Write, subject: &Subject, naming: &Naming) -> io::Result<()> {
    let (name, version) = PRODUCER;
    let event = subject.selection.event();
    let unit = match &event.unit {
        Unit::Nanoseconds => "ns",
        Unit::Samples => "samples",
        Unit::Count(what) => what,
    };
    // Events are separated by blanks.
    let unit: String = unit
        .chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '_' })
        .collect();
    writeln!(
        out,
        "# callgrind format\nversion: 1\ncreator: {name} {version}"
    )?;
    if let Some(command) = &subject.profile.about.command {
        writeln!(out, "cmd: {}", printable(command))?;
    }
    let facts = [
        format!("Event: {} in {unit}", printable(&event.name)),
        format!("Note: {MERGED}"),
        match &subject.profile.counts {
            Some(_) => "Calls: as counted; where they were not, calls= is 1",
            None => "Calls: not counted; each calls= is 1",
        }
        .to_owned(),
        "Totals: a sample is on a call only where the callee is outermost on its stack, so what \
         comes into a function adds up to its total, as callgrind_annotate computes it"
            .to_owned(),
        "KCachegrind: within cycles it takes a function's own cost and the calls that go out as \
         its total, which may be more or less than the samples have"
            .to_owned(),
    ];
    for fact in facts {
        writeln!(out, "desc: {fact}")?;
    }
    for caveat in naming.caveats() {
        writeln!(out, "desc: Unknown: {caveat}")?;
    }
    writeln!(out, "positions: line\nevents: {unit}")?;
    writeln!(out, "summary: {}\n", subject.selection.total())
}

fn files(naming: &Naming, functions: &[FunctionId]) -> HashMap<FunctionId, String> {
    let plain = |id: FunctionId| {
        let declared = naming.declaration(id).map(|line| &*line.file);
        // callgrind_annotate removes the working directory from files, but not from those of
        // callees, and takes the two for different functions; a second slash does not let it.
        match declared.or(naming.module(id)) {
            Some(path) if path.starts_with('/') => format!("/{}", printable(path)),
            Some(path) => printable(path).into_owned(),
            None => UNKNOWN.to_owned(),
        }
    };
    naming.apart(
        functions.to_vec(),
        |id| (plain(id), naming.printable(id)),
        plain,
        |id, number| {
            let module = printable(naming.module(id).unwrap_or(UNKNOWN));
            let address = naming.profile.functions[id].address.unwrap_or(0);
            format!("{} [{module} {address:#x} #{number}]", plain(id))
        },
    )
}

struct Writer<'a> {
    naming: Naming<'a>,
    files: HashMap<FunctionId, String>,
    objects: Names,
    sources: Names,
    functions: Names,
}

impl Writer<'_> {
    fn root(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "ob={}", self.objects.of(UNKNOWN))?;
        writeln!(out, "fl={}", self.sources.of(UNKNOWN))?;
        writeln!(out, "fn={}\n0 0", self.functions.of(ROOT))
    }

    fn function(&mut self, out: &mut dyn Write, id: FunctionId) -> io::Result<()> {
        writeln!(out, "\nob={}", self.object(id))?;
        writeln!(out, "fl={}", self.sources.of(&self.files[&id]))?;
        let name = self.naming.printable(id);
        writeln!(out, "fn={}", self.functions.of(&name))
    }

    // callgrind_annotate prints the module of a function in brackets, so it has none of its own, as
    // `[kernel]` would.
    fn object(&mut self, id: FunctionId) -> String {
        let module = self.naming.module(id).unwrap_or(UNKNOWN);
        let bare = module
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        self.objects.of(&printable(bare.unwrap_or(module)))
    }

    fn calls(
        &mut self,
        out: &mut dyn Write,
        from: Option<FunctionId>,
        calls: &[Call],
    ) -> io::Result<()> {
        let mut counts = self.counts_of(from, calls);
        for &(line, to, weight) in calls {
            writeln!(out, "cob={}", self.object(to))?;
            writeln!(out, "cfi={}", self.sources.of(&self.files[&to]))?;
            let name = self.naming.printable(to);
            writeln!(out, "cfn={}", self.functions.of(&name))?;
            let begins = self.naming.declaration(to).map_or(0, |line| line.line);
            let count = counts.remove(&to).unwrap_or(1);
            writeln!(out, "calls={count} {begins}")?;
            let line = from.map_or(0, |from| self.line(from, line));
            writeln!(out, "{line} {weight}")?;
        }
        Ok(())
    }

    // The number for the first line of each callee. The other lines of a callee have 1, and all of
    // them together the number of calls, where it was counted.
    fn counts_of(&self, from: Option<FunctionId>, calls: &[Call]) -> FxHashMap<FunctionId, u64> {
        let mut counts: FxHashMap<FunctionId, u64> = FxHashMap::default();
        let Some(counted) = self.naming.profile.counts.as_ref() else {
            return counts;
        };
        let mut lines: FxHashMap<FunctionId, u64> = FxHashMap::default();
        for &(_, to, _) in calls {
            *lines.entry(to).or_default() += 1;
        }
        for (to, lines) in lines {
            let row = counted.between(from, to);
            let others = lines.saturating_sub(1);
            counts.insert(
                to,
                row.map_or(1, |row| row.calls.saturating_sub(others).max(1)),
            );
        }
        counts
    }

    fn line(&self, function: FunctionId, line: Option<LineId>) -> u32 {
        self.naming.line_in(function, line).unwrap_or(0)
    }
}

// Written once, and later by their number. A name that looks like a number is then never taken for
// one.
#[derive(Default)]
struct Names {
    known: Interner,
    written: usize,
}

impl Names {
    fn of(&mut self, name: &str) -> String {
        let index = self.known.intern(name).index();
        if index < self.written {
            return format!("({})", index + 1);
        }
        self.written = index + 1;
        format!("({}) {name}", index + 1)
    }
}
