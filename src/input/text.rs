//! What a text is, by its first lines.

use super::{folded, perf_script};
use crate::base::utf8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    PerfScript,
    Folded,
    // Nothing that is read, and what it looks like if that is known.
    Other(Option<&'static str>),
}

// Words that a line begins with, before all that could be a stack, and what the text is then.
const OTHERS: [(&str, &str); 14] = [
    ("# callgrind format", "the output of Callgrind"),
    ("events: ", "the output of Callgrind"),
    ("desc: ", "the output of Massif"),
    (
        "# To display the perf.data header info",
        "the output of perf report",
    ),
    ("# Overhead ", "the output of perf report"),
    ("# Children ", "the output of perf report"),
    ("Performance counter stats for", "the output of perf stat"),
    ("Flat profile:", "the output of gprof"),
    ("Call graph (explanation follows)", "the output of gprof"),
    ("Attaching ", "the output of bpftrace"),
    ("@[", "the output of bpftrace"),
    ("<!DOCTYPE", "a web page"),
    ("<?xml", "an XML document"),
    ("<svg", "an SVG picture"),
];
// Outside of parentheses, of a function without callers: `non-virtual thunk to f`.
const WORDS: usize = 4;

// The last line of the head may be cut.
pub(super) fn of(head: &[u8]) -> Text {
    let whole = head.iter().rposition(|&byte| byte == b'\n');
    let Some(whole) = whole else {
        // One line: a deep stack, as far as is known.
        return of_lines(&[utf8(head).trim_end()]);
    };
    let lines = head[..whole].split(|&byte| byte == b'\n').map(utf8);
    let lines: Vec<_> = lines.collect();
    of_lines(&lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>())
}

fn of_lines(lines: &[&str]) -> Text {
    if perf_script::begins_with_record(lines.iter().copied()) {
        return Text::PerfScript;
    }
    let trimmed = lines.iter().map(|line| line.trim_start());
    let trimmed = trimmed.filter(|line| !line.is_empty());
    for line in trimmed.clone() {
        let other = OTHERS.iter().find(|(begin, _)| line.starts_with(begin));
        match other {
            Some((_, what)) => return Text::Other(Some(what)),
            None if is_stack(line) => break,
            None => {}
        }
    }
    // DTrace writes a frame a line, and the count of a stack below it.
    if trimmed
        .clone()
        .any(|line| line.contains('`') && line.contains("+0x") && !line.contains(';'))
    {
        return Text::Other(Some("the output of DTrace"));
    }
    // Behind what its writer had to say on the standard error.
    let before_stacks = lines.iter().copied().take_while(|line| !is_stack(line));
    if perf_script::has_record(before_stacks) {
        return Text::PerfScript;
    }
    let (mut stacks, mut all) = (0usize, 0usize);
    for line in trimmed.clone().filter(|line| !line.starts_with("# ")) {
        all += 1;
        stacks += usize::from(is_stack(line));
    }
    if stacks * 2 < all {
        Text::Other(None)
    } else if stacks > 1 && have_two_weights(trimmed.filter(|line| is_stack(line))) {
        Text::Other(Some("the output of difffolded.pl (two counts a stack)"))
    } else {
        Text::Folded
    }
}

// `a;b;c 10 20`, all of them, where no caller's name ends with a number: it could be that of a
// function, `[unknown] function 1`.
fn have_two_weights<'a>(stacks: impl Iterator<Item = &'a str>) -> bool {
    let mut have_callers = false;
    for stack in stacks {
        let outer = folded::name_of_single(stack).and_then(folded::name_of_single);
        let Some(name) = outer else {
            return false;
        };
        let mut callers = stack.split(';').rev().skip(1);
        if callers.any(|caller| folded::name_of_single(caller).is_some()) {
            return false;
        }
        have_callers |= name.contains(';');
    }
    have_callers
}

// A stack with a weight, or one that has lost it.
fn is_stack(line: &str) -> bool {
    if line.contains(';') {
        return true;
    }
    folded::name_of_single(line).is_some_and(|name| words_outside_parentheses(name) <= WORDS)
}

// Without what is in parentheses of any kind.
fn words_outside_parentheses(name: &str) -> usize {
    let mut depth = 0usize;
    let outside = name.chars().map(|c| {
        let closes = matches!(c, ')' | '>' | ']' | '}');
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            _ if closes => depth = depth.saturating_sub(1),
            _ => {}
        }
        if closes || depth > 0 { ' ' } else { c }
    });
    outside.collect::<String>().split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_parentheses_are_none_of_a_name() {
        for (name, words) in [
            ("non-virtual thunk to A::f(int, long)", 4),
            ("(1) [x] a:b \"q\" \\ 0x1+0x2 <&>", 4),
            ("std::map<int, std::string>::at(int) const", 3),
            ("all of it took 3 s", 6),
        ] {
            assert_eq!(words_outside_parentheses(name), words, "{name}");
        }
    }
}
