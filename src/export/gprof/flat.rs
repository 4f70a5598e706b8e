//! The flat profile.
//!
//! ```text
//!     %   cumulative   self              self     total
//!    time   seconds   seconds    calls  ms/call  ms/call  name
//!    48.08      1.00     1.00        5   200.00   200.00  a
//! ```

use std::io::{self, Write};

use super::Options;
use crate::analysis::gprof::{Entry, Figures};
use crate::base::printable;

// The units of times of one call: a letter, and how many of it a second has.
const UNITS: [(char, f64); 11] = [
    ('T', 1e-12),
    ('G', 1e-9),
    ('M', 1e-6),
    ('K', 1e-3),
    (' ', 1.0),
    ('m', 1e3),
    ('u', 1e6),
    ('n', 1e9),
    ('p', 1e12),
    ('f', 1e15),
    ('a', 1e18),
];

/// Writes the flat profile.
pub fn write(out: &mut dyn Write, it: &Figures, options: &Options) -> io::Result<()> {
    let mut rows: Vec<&Entry> = it.functions.iter().filter(|row| !row.excluded).collect();
    rows.sort_by(|left, right| {
        let times = right.time.partial_cmp(&left.time);
        times
            .unwrap_or(std::cmp::Ordering::Equal)
            .then(right.calls.cmp(&left.calls))
            .then_with(|| left.symbol.as_bytes().cmp(right.symbol.as_bytes()))
    });
    let (letter, scale) = unit(&rows, it.rate);
    out.write_all(b"Flat profile:\n")?;
    let tick = significant(1.0 / it.rate);
    writeln!(out, "\nEach sample counts as {tick} seconds.")?;
    // Without time all numerators are 0, so gprof divides by 1 instead of 0.
    let base = if it.flat_base > 0.0 {
        it.flat_base
    } else {
        out.write_all(b" no time accumulated\n\n")?;
        1.0
    };
    let per_call = format!("{letter}s/call");
    writeln!(
        out,
        "{:>5.5} {:>10.10} {:>8.8} {:>8.8} {:>8.8} {:>8.8}  {:<8.8}",
        "%  ", "cumulative", "self  ", "", "self  ", "total ", ""
    )?;
    writeln!(
        out,
        "{:>5.5} {:>9.9}  {:>8.8} {:>8.8} {per_call:>8.8} {per_call:>8.8}  {:<8.8}",
        "time", "seconds", "seconds", "calls", "name"
    )?;
    let mut sum = 0.0;
    for row in rows {
        if !options.zeros && row.calls == 0 && row.time == 0.0 {
            continue;
        }
        sum += row.time;
        write!(
            out,
            "{:6.2} {:9.2} {:8.2}",
            100.0 * row.time / base,
            sum / it.rate,
            row.time / it.rate
        )?;
        if row.calls == 0 {
            write!(out, "{:29}", "")?;
        } else {
            let calls = row.calls as f64;
            write!(
                out,
                " {:8} {:8.2} {:8.2}  ",
                row.calls,
                scale * row.time / it.rate / calls,
                scale * (row.time + row.child_time) / it.rate / calls
            )?;
        }
        writeln!(out, "{}", printable(&row.name))?;
    }
    Ok(())
}

// The unit in which the most expensive call has one to three digits before the point.
fn unit(rows: &[&Entry], rate: f64) -> (char, f64) {
    let called = rows.iter().filter(|row| row.calls != 0);
    let costs = called.map(|row| (row.time + row.child_time) / row.calls as f64);
    let top = costs.fold(0.0, f64::max) / rate;
    let fits = |&&(_, scale): &&(char, f64)| (1.0..1000.0).contains(&(scale * top));
    // Without any cost it is the first one.
    let found = if top > 0.0 {
        UNITS.iter().find(fits)
    } else {
        None
    };
    *found.unwrap_or(&UNITS[0])
}

// Six digits, without zeros at the end; as C's `%g`.
fn significant(number: f64) -> String {
    let text = format!("{number:.5e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return trimmed(&format!("{number:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_are_as_c_prints_them() {
        for (number, text) in [
            (0.01, "0.01"),
            (1.0 / 1024.0, "0.000976562"),
            (1.0, "1"),
            (1e-9, "1e-09"),
            (1.0 / 30000.0, "3.33333e-05"),
        ] {
            assert_eq!(significant(number), text);
        }
    }
}
