//! The call graph: an entry for each function and each cycle, and an index of names.
//!
//! ```text
//!   index % time    self  children    called     name
//!                   0.06    0.00       1/5           main [1]          callers
//!                   0.24    0.00       4/5           c <cycle 1> [6]
//!   [7]     14.4    0.30    0.00       5         util [7]              the function
//!                                                                      callees
//! ```

use std::cmp::Ordering;
use std::io::{self, Write};

use super::Options;
use crate::analysis::gprof::{Entry, Figures, GprofArc};
use crate::base::printable;

// The width of a column of the index.
const COLUMN: usize = 26;

/// Writes the call graph.
pub fn write(out: &mut dyn Write, it: &Figures, options: &Options) -> io::Result<()> {
    out.write_all(b"\t\t\tCall graph\n\n")?;
    write!(
        out,
        "\ngranularity: each sample hit covers {} byte(s)",
        it.bucket
    )?;
    // What is divided by the base is 0 where there is none.
    let base = if it.base > 0.0 { it.base } else { 1.0 };
    if it.base > 0.0 {
        let (tick, seconds) = (100.0 / it.base, it.base / it.rate);
        write!(out, " for {tick:.2}% of {seconds:.2} seconds\n\n")?;
    } else {
        out.write_all(b" no time propagated\n\n")?;
    }
    out.write_all(b"index % time    self  children    called     name\n")?;
    let functions = it.functions.iter().enumerate();
    let cycles = it.cycles.iter().enumerate();
    let mut entries: Vec<(usize, Result<usize, usize>)> = functions
        .map(|(at, function)| (function.index, Ok(at)))
        .chain(cycles.map(|(at, cycle)| (cycle.index, Err(at))))
        .collect();
    entries.sort_unstable();
    for (_, entry) in entries {
        let of = match entry {
            Ok(function) => &it.functions[function],
            Err(cycle) => &it.cycles[cycle],
        };
        let empty = of.calls == 0 && of.recursive == 0 && of.shown() == 0.0;
        if !of.is_printed || empty && !options.zeros {
            continue;
        }
        match entry {
            Ok(function) => write_function(out, it, function, base)?,
            Err(cycle) => write_cycle(out, it, cycle, base)?,
        }
        out.write_all(b"-----------------------------------------------\n")?;
    }
    write_index(out, it, options)
}

fn write_function(out: &mut dyn Write, it: &Figures, at: usize, base: f64) -> io::Result<()> {
    let function = &it.functions[at];
    if it.callers[at].is_empty() {
        writeln!(out, "{:49}<spontaneous>", "")?;
    }
    for arc in sorted(it, &it.callers[at], true) {
        write_arc(out, it, arc, arc.from)?;
    }
    write_figures(out, it, function, base)?;
    match (function.calls, function.recursive) {
        (0, 0) => write!(out, "{:17}", "")?,
        (calls, 0) => write!(out, " {calls:7} {:8}", "")?,
        (calls, recursive) => write!(out, " {calls:7}+{recursive:<7} ")?,
    }
    writeln!(out, "{}", name(function))?;
    for arc in sorted(it, &it.callees[at], false) {
        write_arc(out, it, arc, arc.to)?;
    }
    Ok(())
}

fn write_cycle(out: &mut dyn Write, it: &Figures, at: usize, base: f64) -> io::Result<()> {
    let cycle = &it.cycles[at];
    write_figures(out, it, cycle, base)?;
    write_calls(out, cycle)?;
    writeln!(out, " <cycle {} as a whole> [{}]", at + 1, cycle.index)?;
    let mut members = it.members[at].clone();
    members.sort_by(|&left, &right| {
        let (left, right) = (&it.functions[left], &it.functions[right]);
        let calls = |function: &Entry| function.calls.saturating_add(function.recursive);
        compare(right.shown(), left.shown()).then(calls(right).cmp(&calls(left)))
    });
    for member in members {
        let member = &it.functions[member];
        write!(
            out,
            "{:13}{:7.2} {:7.2}",
            "",
            member.shown_self / it.rate,
            member.shown_child / it.rate
        )?;
        write_calls(out, member)?;
        writeln!(out, "     {}", name(member))?;
    }
    Ok(())
}

fn write_figures(out: &mut dyn Write, it: &Figures, of: &Entry, base: f64) -> io::Result<()> {
    let index = format!("[{}]", of.index);
    // Longer ones are cut, as by gprof.
    let index = &index[..index.len().min(6)];
    write!(
        out,
        "{index:<6} {:5.1} {:7.2} {:7.2}",
        100.0 * of.shown() / base,
        of.shown_self / it.rate,
        of.shown_child / it.rate
    )
}

fn write_calls(out: &mut dyn Write, of: &Entry) -> io::Result<()> {
    match of.recursive {
        0 => write!(out, " {:7} {:7}", of.calls, ""),
        recursive => write!(out, " {:7}+{recursive:<7}", of.calls),
    }
}

fn write_arc(out: &mut dyn Write, it: &Figures, arc: &GprofArc, end: usize) -> io::Result<()> {
    if it.is_within(arc) {
        write!(out, "{:29}{:7} {:7}     ", "", arc.count, "")?;
    } else {
        let callee = &it.functions[arc.to];
        let callee = callee.cycle.map_or(callee, |cycle| &it.cycles[cycle]);
        write!(
            out,
            "{:13}{:7.2} {:7.2} {:7}/{:<7}     ",
            "",
            arc.time / it.rate,
            arc.child_time / it.rate,
            arc.count,
            callee.calls
        )?;
    }
    writeln!(out, "{}", name(&it.functions[end]))
}

// The name of a function with its cycle and its index.
fn name(of: &Entry) -> String {
    let mut text = printable(&of.name).into_owned();
    if let Some(cycle) = of.cycle {
        text.push_str(&format!(" <cycle {}>", cycle + 1));
    }
    text.push_str(&index(of));
    text
}

fn index(of: &Entry) -> String {
    if of.is_printed {
        format!(" [{}]", of.index)
    } else {
        format!(" ({})", of.index)
    }
}

// Arcs in the order of their lines: to a function the least first, from it the greatest. Of equals
// that which was added first.
fn sorted<'a>(it: &'a Figures, arcs: &[usize], ascending: bool) -> Vec<&'a GprofArc> {
    let mut arcs: Vec<&GprofArc> = arcs.iter().map(|&arc| &it.arcs[arc]).collect();
    arcs.sort_by(|&left, &right| {
        let order = weigh(it, left, right);
        if ascending { order } else { order.reverse() }
    });
    arcs
}

// A call of itself is less than one within a cycle, and that than any other.
fn weigh(it: &Figures, left: &GprofArc, right: &GprofArc) -> Ordering {
    let kind = |arc: &GprofArc| match (arc.from == arc.to, it.is_within(arc)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    };
    let times = match kind(left) {
        2 => compare(left.time + left.child_time, right.time + right.child_time),
        _ => Ordering::Equal,
    };
    let kinds = kind(left).cmp(&kind(right));
    kinds.then(times).then(left.count.cmp(&right.count))
}

fn compare(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

// The names in three columns, read from top to bottom, then the cycles.
fn write_index(out: &mut dyn Write, it: &Figures, options: &Options) -> io::Result<()> {
    out.write_all(b"\x0c\nIndex by function name\n\n")?;
    let shown = |function: &&Entry| options.zeros || function.calls != 0 || function.time != 0.0;
    let mut rows: Vec<&Entry> = it.functions.iter().filter(shown).collect();
    rows.sort_by(|left, right| left.symbol.as_bytes().cmp(right.symbol.as_bytes()));
    let cycles = it.cycles.iter().zip(1..);
    let cycles = cycles.map(|(cycle, number)| (cycle, format!("<cycle {number}>")));
    let rows: Vec<(&Entry, String)> = rows
        .into_iter()
        .map(|function| {
            let name = printable(&function.name);
            let shown = match &function.file {
                Some(file) => format!("{name} ({})", printable(file)),
                None => name.into_owned(),
            };
            (function, shown)
        })
        .chain(cycles)
        .collect();
    let lines = rows.len().div_ceil(3);
    for line in 0..lines {
        let mut column = 0;
        for (place, (function, name)) in rows.iter().skip(line).step_by(lines).enumerate() {
            let index = index(function);
            let index = index.trim_start();
            column += index.len();
            let padding = (place * COLUMN + 5).saturating_sub(column);
            column += padding;
            write!(out, "{:padding$} {index} {name}", "")?;
            column += name.len();
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
