//! `record --counts`: in which files calls are counted, and what of them was not.

use proftool::patch::{CallCounter, Images, Reason};
use regex::Regex;

use super::super::failure::tell;

// The most files that are named.
const FILES: usize = 6;

// The files in which calls are counted.
#[derive(Clone, Debug)]
pub enum Files {
    // The program and its own libraries.
    Own,
    Program,
    All,
    Matching(Regex),
}

pub fn images(text: &str) -> Result<Files, String> {
    Ok(match text {
        "" => Files::Own,
        "program" => Files::Program,
        "all" => Files::All,
        text => Files::Matching(Regex::new(text).map_err(|error| error.to_string())?),
    })
}

// By how much counting may slow a program down.
#[derive(Clone, Copy, Debug)]
pub enum Slowdown {
    // By at most this percentage.
    AtMost(f64),
    Any,
}

pub fn slowdown(text: &str) -> Result<Slowdown, String> {
    if text == "none" {
        return Ok(Slowdown::Any);
    }
    let percent = text
        .strip_suffix('%')
        .unwrap_or(text)
        .parse()
        .ok()
        .filter(|it: &f64| it.is_finite() && *it > 0.0)
        .ok_or("expected a percentage above 0, or none")?;
    Ok(Slowdown::AtMost(percent))
}

impl Slowdown {
    // As a part.
    pub fn part(self) -> Option<f64> {
        match self {
            Slowdown::AtMost(percent) => Some(percent / 100.0),
            Slowdown::Any => None,
        }
    }
}

impl Files {
    pub fn counter(&self) -> CallCounter {
        CallCounter::new(match self {
            Files::Own => Images::Own,
            Files::Program => Images::Program,
            Files::All => Images::All,
            Files::Matching(regex) => {
                let regex = regex.clone();
                Images::Matching(Box::new(move |path| regex.is_match(path)))
            }
        })
    }
}

pub fn report(counter: &CallCounter, slowdown: Slowdown) {
    for reason in counter.unread() {
        tell(&format!("calls are not counted in {reason}"));
    }
    let mut files: Vec<String> = counter
        .files()
        .map(|path| path.file_name().unwrap_or_default().display().to_string())
        .collect();
    if files.is_empty() {
        return;
    }
    let more = files.len().saturating_sub(FILES);
    files.truncate(FILES);
    let mut line = format!(
        "calls counted at {} sites of {}",
        counter.counted(),
        files.join(", ")
    );
    if more > 0 {
        line += &format!(" and {more} more files");
    }
    let left_alone = counter.left_alone();
    let mut parts: Vec<String> = Vec::new();
    if left_alone.indirect > 0 {
        parts.push(format!("{} indirect calls and jumps", left_alone.indirect));
    }
    for (reason, count) in &left_alone.sites {
        parts.push(format!("{count} {}", described(*reason)));
    }
    if !parts.is_empty() {
        line += &format!("; not counted: {}", parts.join(", "));
    }
    tell(&line);
    if let (sites @ 1.., Slowdown::AtMost(percent)) = (counter.given_up(), slowdown) {
        let (s, their) = if sites == 1 {
            ("", "its")
        } else {
            ("s", "their")
        };
        tell(&format!(
            "counting was given up at {sites} call site{s} that would have slowed the program down \
             by more than {percent} %; {their} counts are lower bounds (≥). To count all: \
             --counts-limit none"
        ));
    }
}

fn described(reason: Reason) -> &'static str {
    match reason {
        Reason::NoBounds => "in functions without a stated size",
        Reason::Unreached => "in code that no known jump leads to",
        Reason::Form => "at jumps that are too short to be redirected",
        Reason::Inside => "into the middle of functions",
        Reason::Reach => "out of reach",
        Reason::Changed => "changed in memory",
        Reason::Machine => "in code of another machine",
        _ => "for other reasons",
    }
}
