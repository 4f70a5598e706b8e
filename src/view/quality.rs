//! How reliable the stacks are, line by line, and why they are no better.

use super::number;
use super::page::Block;
use super::table::{Cell, Column, Role, Table};
use crate::base::{About, CaveatKind, Remedy};
use crate::names::{INFERRED, Label, Mark};
use crate::profile::{CheckedCalls, Profile};

/// One thing that is known of stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its stable name, as JSON has it.
    pub key: &'static str,
    /// The number of samples that it is true for.
    pub samples: u64,
    /// What it is, in words.
    pub what: Label,
    /// What would help, where it is known why some stacks are not as they should be.
    pub remedy: Option<Remedy>,
}

/// What is known of the stacks; nothing where that was not looked into.
pub fn lines(profile: &Profile) -> Vec<Line> {
    let Some(quality) = &profile.quality else {
        return Vec::new();
    };
    // Of stacks that are unwound from copies, caveats tell what is wrong; so they do where stacks
    // end in JIT-compiled code, which only frame pointers lead through.
    let mut caveats = profile.caveats.iter();
    let ends_in_jit_code = caveats.any(|caveat| caveat.ended_in_no_file() > 0);
    let by_pointers = quality.by_frame_pointers && !ends_in_jit_code;
    let complete = by_pointers.then_some(Remedy::CompleteStacks);
    let count = |kind| profile.caveats.count(kind);
    // Frame pointers lead through a stack that the frame limit cuts; its caveat has the remedy.
    let not_rooted = quality.stacks.saturating_sub(quality.rooted) > count(CaveatKind::CutStack);
    let line = |(key, samples, what, remedy): (_, u64, Label, Option<Remedy>)| Line {
        key,
        samples,
        what,
        remedy: remedy.filter(|_| samples > 0),
    };
    let mut rooted = line((
        "rooted",
        quality.rooted,
        remarked("complete", "reach the entry point"),
        None,
    ));
    rooted.remedy = complete.filter(|_| not_rooted);
    let checked = [
        (
            "exact_leaf",
            quality.exact_leaf,
            remarked("exact caller of the leaf", "found by unwind information"),
            None,
        ),
        (
            "verified",
            quality.verified,
            "consistent with the code".into(),
            None,
        ),
        (
            "unchecked",
            quality.unchecked,
            "consistent; indirect calls cannot be checked".into(),
            None,
        ),
        (
            "lacking",
            quality.lacking,
            remarked("missing frames restored from the code", INFERRED),
            None,
        ),
        (
            "ambiguous",
            quality.ambiguous,
            "missing frames, ambiguous".into(),
            complete,
        ),
        (
            "contradicted",
            quality.contradicted,
            "contradicted: a call is not in the code".into(),
            complete,
        ),
        ("alone", quality.alone, "single frame".into(), complete),
    ];
    let counted = [
        (
            "cut",
            About::CutStacks,
            "truncated: the outermost callers are unknown",
        ),
        (
            "broken",
            About::BrokenStacks,
            "broken: unwinding ended before an entry point",
        ),
    ];
    let counted = counted.map(|(key, about, what)| {
        let mut seen = CaveatKind::about(about).filter(|&kind| count(kind) > 0);
        let samples = CaveatKind::about(about).map(count).sum();
        line((
            key,
            samples,
            what.into(),
            seen.next().and_then(CaveatKind::remedy),
        ))
    });
    let checked = checked.into_iter().map(line);
    [rooted].into_iter().chain(checked).chain(counted).collect()
}

fn remarked(what: &str, remark: &str) -> Label {
    Label::from(what).with(Mark::Remark(remark.into()))
}

/// The lines of the text report, without those that a caveat already states.
pub fn blocks(profile: &Profile) -> Vec<Block> {
    let Some(quality) = profile.quality.filter(|quality| quality.stacks > 0) else {
        return Vec::new();
    };
    let always = ["rooted", "verified"];
    let elsewhere = ["cut", "broken"];
    let mut table = Table::new(vec![
        Column::new("percent", "%", Role::Heat),
        Column::new("samples", "samples", Role::Figure),
        Column::new("what", "of user-space stacks", Role::Name),
    ]);
    for line in lines(profile) {
        if elsewhere.contains(&line.key) || line.samples == 0 && !always.contains(&line.key) {
            continue;
        }
        table.rows.push(vec![
            Cell::Share {
                part: line.samples,
                whole: quality.stacks,
            },
            Cell::Count(line.samples),
            Cell::name(line.what),
        ]);
    }
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(calls(&quality.calls).map(Block::Line));
    blocks.extend(remedies(profile).into_iter().map(Block::BetterStacks));
    blocks
}

/// What would help where many stacks are not as they should be.
pub fn remedies(profile: &Profile) -> Vec<Remedy> {
    let elsewhere = ["cut", "broken"];
    let Some(quality) = profile.quality.filter(|quality| quality.stacks > 0) else {
        return Vec::new();
    };
    let doubtful = quality.stacks - quality.rooted.min(quality.stacks)
        + quality.ambiguous
        + quality.contradicted;
    let mut remedies: Vec<Remedy> = Vec::new();
    if doubtful * DOUBTFUL > quality.stacks {
        for line in lines(profile).into_iter().filter(|line| line.samples > 0) {
            let is_elsewhere = elsewhere.contains(&line.key);
            let remedy = line
                .remedy
                .filter(|it| !is_elsewhere && !remedies.contains(it));
            remedies.extend(remedy);
        }
    }
    remedies
}

/// A line on the different calls on stacks, if any were looked at.
fn calls(calls: &CheckedCalls) -> Option<String> {
    let kinds = [
        (calls.verified, "found in the code"),
        (calls.unchecked, "indirect"),
        (calls.lacking, "with restored frames"),
        (calls.ambiguous, "with ambiguous missing frames"),
        (calls.contradicted, "not in the code"),
    ];
    let all: u64 = kinds.iter().map(|(number, _)| number).sum();
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", number::grouped(*number)))
        .collect();
    (all > 0).then(|| {
        format!(
            "{} different calls on these stacks: {}.",
            number::grouped(all),
            parts.join(", ")
        )
    })
}

/// If fewer than one stack in this number is doubtful, the report gives no advice.
const DOUBTFUL: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Quality;

    #[test]
    fn stacks_that_the_frame_limit_cuts_are_not_for_lack_of_frame_pointers() {
        let mut profile = Profile {
            quality: Some(Quality {
                stacks: 100,
                rooted: 60,
                by_frame_pointers: true,
                ..Quality::default()
            }),
            ..Profile::default()
        };
        assert_eq!(remedies(&profile), [Remedy::CompleteStacks]);
        profile.caveats.add(CaveatKind::CutStack, 39);
        assert_eq!(remedies(&profile), [Remedy::CompleteStacks]);
        profile.caveats.add(CaveatKind::CutStack, 1);
        assert!(remedies(&profile).is_empty());
    }
}
