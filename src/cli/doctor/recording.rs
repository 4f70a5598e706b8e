//! What a recording lacks: stacks, samples, names.

use std::collections::BTreeSet;
use std::path::Path;

use proftool::base::{About, CaveatKind, Caveats, grouped};
use proftool::export::Advice;
use proftool::frame_pointers::verdict::Time;
use proftool::input::{self, Options, sampled_programs};
use proftool::perfdata::{Reader, RecordedStacks};
use proftool::profile::{Profile, Selection};
use proftool::sampler::Stacks;
use proftool::view::doctor::{Check, Findings, Status};
use proftool::view::quality;

use super::super::advice::Situation;
use super::super::progress::Meter;
use super::super::query::file_in_command;
use super::super::stack_choice;
use super::{fine, told};

const STACKS: [About; 3] = [About::CutStacks, About::BrokenStacks, About::Stacks];

// The checks that caveats belong to, each with what is said where there is none.
const GROUPS: [(&str, &[About], Option<&str>); 4] = [
    ("stacks", &STACKS, None),
    ("samples", &[About::Samples], Some("none were lost")),
    (
        "names",
        &[About::Names],
        Some("all files are the builds that ran, and have symbols"),
    ),
    ("other", &[About::Other], None),
];

pub fn findings(path: &Path) -> anyhow::Result<Findings> {
    let options = Options {
        inlines: false,
        ..Options::default()
    };
    let mut meter = Meter::new();
    let profile = input::open_with(path, &options, &mut |done, total| meter.show(done, total))?;
    drop(meter);
    // A second look at the file: a profile does not keep how its stacks were recorded.
    let reader = Reader::open(path).map_err(|error| {
        let path = path.to_owned();
        let reason = error.into();
        input::Error { path, reason }
    })?;
    let subject = path.display().to_string();
    let situation = Situation::Doctor {
        file: file_in_command(path),
    };
    let main = profile.main_event();
    let selection = main.map_or_else(Selection::nothing, |event| {
        profile.select(event, &Default::default())
    });
    let all = profile
        .samples
        .iter()
        .map(|sample| sample.count)
        .fold(0u64, u64::saturating_add);

    let recorded = RecordedStacks::of(reader.events().iter().map(|event| &event.attr));
    let named = recorded.named(profile.about.is_unwound);
    let mut checks = vec![kind(&subject, recorded, named)];
    checks.extend(program(path, &subject, &reader, recorded));
    checks.extend(believed(&subject, &profile, &situation));
    for (check, about, sound) in GROUPS {
        let told = caveats(
            &subject,
            check,
            (&profile.caveats, all),
            &situation,
            |kind| {
                // What stacks were recorded is a check of its own.
                about.contains(&kind.subject()) && kind != CaveatKind::NoStacks
            },
        );
        match sound {
            Some(sound) if told.is_empty() => checks.push(fine(&subject, check, sound)),
            _ => checks.extend(told),
        }
    }
    Ok(Findings {
        checks,
        event: selection.event().clone(),
        total: selection.total(),
        samples: selection.samples(),
        caveats: profile.caveats,
    })
}

// How the stacks were recorded, by the event that has most of them.
fn kind(subject: &str, recorded: RecordedStacks, named: String) -> Check {
    let check = "stacks recorded";
    if recorded == RecordedStacks::None {
        let remedy = "record them: proftool record COMMAND";
        let found = "none: totals include inlined functions, but no calls";
        return told(subject, check, Status::Bad, found, remedy);
    }
    fine(subject, check, named)
}

// The program with the most samples, and whether its stacks were recorded as its code needs.
fn program(path: &Path, subject: &str, reader: &Reader, recorded: RecordedStacks) -> Option<Check> {
    let check = "program";
    let sampled = sampled_programs(path).ok()?;
    let top = sampled.programs.first()?;
    let share = stack_choice::share(top, sampled.samples);
    // Without a build ID, the file may have been built again since.
    let judged = top.build_id.as_ref();
    let switches = reader
        .events()
        .iter()
        .any(|event| event.attr.records_switches());
    let time = if switches { Time::OffCpu } else { Time::OnCpu };
    let judged = judged.and_then(|_| stack_choice::judge_sampled(top, time));
    let Some((fitting, why)) = judged else {
        let found = format!(
            "{share}; whether {} keeps frame pointers is unknown: the file is missing, may be \
             another build, or has no code that shows it",
            top.path.display()
        );
        return Some(fine(subject, check, found));
    };
    let found = format!("{share}; {why}");
    Some(match (fitting, recorded) {
        (Stacks::Copies(_), RecordedStacks::Chain | RecordedStacks::Joined(_)) => {
            let remedy = "record without -g: proftool record -- COMMAND";
            told(subject, check, Status::Warn, found, remedy)
        }
        _ => fine(subject, check, found),
    })
}

// How reliable the stacks are, where they were checked.
fn believed(subject: &str, profile: &Profile, situation: &Situation) -> Vec<Check> {
    let Some(quality) = profile.quality.filter(|quality| quality.stacks > 0) else {
        return Vec::new();
    };
    let lines = quality::lines(profile);
    let remedy = |keys: &[&str]| {
        let mut lines = lines.iter().filter(|line| keys.contains(&line.key));
        let remedy = lines.find_map(|line| line.remedy)?;
        situation.on_remedy(remedy, &BTreeSet::new())
    };
    let percent = |n: u64| n as f64 / quality.stacks as f64 * 100.0;
    let check = |name, found, remedy: Option<String>, lacking: f64| {
        let status = match lacking {
            ..2.0 => Status::Ok,
            ..20.0 => Status::Warn,
            _ => Status::Bad,
        };
        Check {
            status,
            remedy: remedy.filter(|_| status != Status::Ok),
            ..fine(subject, name, found)
        }
    };
    let rooted = percent(quality.rooted);
    let doubtful = percent(quality.ambiguous + quality.contradicted);
    let calls = check(
        "calls on stacks",
        format!(
            "{doubtful:.1} % have ambiguous missing frames or calls that are not in the code; \
             {:.1} % have missing frames restored from the code",
            percent(quality.lacking)
        ),
        remedy(&["ambiguous", "contradicted"]),
        // Stacks that were unwound by rules are right where the code cannot confirm them.
        match quality.by_frame_pointers {
            true => doubtful,
            false => 0.0,
        },
    );
    vec![
        check(
            "whole stacks",
            format!(
                "{rooted:.1} % of {} user-space stacks are complete (reach the entry point)",
                grouped(quality.stacks)
            ),
            remedy(&["rooted"]),
            100.0 - rooted,
        ),
        match calls.status {
            // Stacks that are whole were recorded as they should be.
            Status::Warn | Status::Bad if rooted >= 99.0 => Check {
                status: Status::Note,
                remedy: None,
                ..calls
            },
            _ => calls,
        },
    ]
}

// A check for each caveat of these kinds.
fn caveats(
    subject: &str,
    check: &'static str,
    (caveats, all): (&Caveats, u64),
    situation: &Situation,
    of: impl Fn(CaveatKind) -> bool,
) -> Vec<Check> {
    let chosen = caveats.iter().filter(|caveat| of(caveat.kind));
    chosen
        .map(|caveat| {
            let is_of_stacks = STACKS.contains(&caveat.kind.subject());
            // Where 99 % are whole they were recorded as they should be: nothing has to change.
            if is_of_stacks && caveat.count.saturating_mul(100) < all {
                return Check {
                    status: Status::Note,
                    ..fine(subject, check, caveat.to_string())
                };
            }
            let status = match caveat.kind {
                CaveatKind::NoSamples | CaveatKind::StoppedAtExec => Status::Bad,
                // A fifth of the samples is more than a detail.
                _ if caveat.count >= all.div_ceil(5).max(1)
                    && caveat.kind != CaveatKind::Throttled =>
                {
                    Status::Bad
                }
                _ => Status::Warn,
            };
            let remedy = situation.on_caveat(caveat);
            Check {
                status,
                remedy,
                ..fine(subject, check, caveat.to_string())
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proftool::base::{CaveatKind, Caveats};
    use proftool::view::doctor::Status;

    use super::{Situation, caveats};

    #[test]
    fn a_stack_in_two_hundred_is_no_warning() {
        let status = |kind, count| {
            let mut known = Caveats::default();
            known.add(kind, count);
            let situation = Situation::Doctor {
                file: String::new(),
            };
            let checks = caveats("perf.data", "x", (&known, 200), &situation, |_| true);
            (checks[0].status, checks[0].remedy.is_some())
        };
        assert_eq!(status(CaveatKind::BrokenStack, 1), (Status::Note, false));
        assert_eq!(status(CaveatKind::BrokenStack, 2).0, Status::Warn);
        // Samples are lost from whole stacks, too.
        assert_eq!(status(CaveatKind::Lost, 1).0, Status::Warn);
    }
}
