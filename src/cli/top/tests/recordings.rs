//! What the keys of a recording do.

use std::sync::Arc;
use std::time::Duration;

use proftool::compare::{Comparison, Runs, Side};
use proftool::profile::{Filter, SumOfRuns, Thread};

use super::super::app::Action;
use super::super::changes::Changes;
use super::super::key::Key;
use super::super::source::State;
use super::stage::{CALCULATOR, Stage, profile, seen, seen_of};

#[test]
fn enter_shows_a_function_in_detail_and_escape_closes_it() {
    let mut stage = Stage::of_recording(80, 24, CALCULATOR);
    stage.key(Key::Enter);
    let screen = stage.screen();
    for text in [
        "lookup [calc]",
        "Distribution to callers",
        "Esc closes",
        "Esc close",
    ] {
        assert!(screen.contains(text), "{screen}");
    }
    // Another width makes the page again.
    stage.size(40, 24);
    assert!(stage.screen().contains("lookup [calc]"));
    stage.size(80, 24);
    stage.key(Key::Char('a'));
    assert!(
        stage
            .screen()
            .contains("source lines are shown of recordings only")
    );
    stage.key(Key::Enter);
    assert!(stage.screen().contains("Distribution to callers"));
    stage.key(Key::Escape);
    assert!(stage.screen().contains("5 samples") || stage.screen().contains("functions"));
    assert!(!stage.screen().contains("Distribution to callers"));
    // The lines under it are those of before.
    assert_eq!(stage.chosen(), "lookup");
}

#[test]
fn a_page_is_searched_from_line_to_line() {
    let mut stage = Stage::of_recording(80, 12, CALCULATOR);
    stage.key(Key::Enter);
    let lines: Vec<String> = stage
        .app
        .page()
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let is_match = |at: &usize| lines[*at].contains("cal");
    let matches: Vec<usize> = (0..lines.len()).filter(is_match).collect();
    assert!(matches.len() > 3 && *matches.last().unwrap() > lines.len() - 7);
    stage.key(Key::Char('/'));
    stage.keys("cal");
    stage.key(Key::Enter);
    // Each match once, those on the last screen too, and then the first again.
    for &line in &matches {
        assert_eq!(stage.app.found(), Some(line));
        assert!(stage.screen().contains(lines[line].trim_end()));
        stage.key(Key::Char('n'));
    }
    assert_eq!(stage.app.found(), Some(matches[0]));
    assert!(stage.screen().contains("search continued at the top"));
    for &line in matches.iter().rev() {
        stage.key(Key::Char('N'));
        assert_eq!(stage.app.found(), Some(line));
    }
    stage.key(Key::Char('/'));
    stage.keys("no such text");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("no line with /no such text/"));
    // However far the end is passed, the next key up is seen.
    stage.key(Key::End);
    let end = stage.screen();
    stage.key(Key::Up);
    assert_ne!(stage.screen(), end);
    // The page is there again after a look at the help.
    let page = stage.screen();
    stage.keys("?");
    assert!(stage.screen().contains("VIEWS"));
    stage.keys("i");
    stage.key(Key::Escape);
    assert_eq!(stage.screen(), page);
    stage.key(Key::Escape);
    assert!(stage.app.overlay.is_none());
}

#[test]
fn a_time_that_is_refused_is_asked_for_again_and_escape_reads_all() {
    let mut stage = Stage::of_recording(80, 24, CALCULATOR);
    stage.keys("T5");
    assert_eq!(stage.key(Key::Enter), Action::Time("5".into()));
    stage.app.refuse_time("5".into(), "not a time range".into());
    assert!(stage.screen().contains("(A..B): 5  not a time range"));
    stage.keys("..6");
    assert_eq!(stage.key(Key::Enter), Action::Time("5..6".into()));
    stage.app.read_time("5..6");
    stage.keys("T");
    assert!(stage.screen().contains("(A..B): 5..6"));
    stage.key(Key::Escape);
    stage.keys("flex");
    stage.key(Key::Enter);
    assert_eq!(stage.key(Key::Escape), Action::Nothing);
    assert_eq!(stage.key(Key::Escape), Action::Time(String::new()));
    stage.app.read_time("");
    assert_eq!(stage.key(Key::Escape), Action::Nothing);
}

#[test]
fn a_thread_is_chosen_among_those_of_the_options() {
    let mut profile = profile(CALCULATOR);
    for (tid, name) in [(2, "worker"), (3, "other")] {
        let thread = profile.threads.push(Thread::new(1, tid, name));
        let at = tid as usize;
        profile.samples[at].thread = thread;
    }
    let mut stage = Stage::of_recording(100, 24, CALCULATOR);
    stage.app.wish.base = Arc::new(Filter {
        comms: vec!["calc".into(), "worker".into()],
        ..Filter::default()
    });
    stage.see(seen_of(2, profile));
    stage.keys("t");
    let hints = stage.screen();
    assert!(hints.contains("calc, worker, other"), "{hints}");
    stage.keys("other");
    stage.key(Key::Enter);
    let screen = stage.screen();
    assert!(
        screen.contains("100 % = 0 ns of cpu-clock, 0.00 % of all: command other"),
        "{screen}"
    );
    assert!(
        screen.contains("no sample passes; Esc clears the thread"),
        "{screen}"
    );
    stage.keys("tworker");
    stage.key(Key::Enter);
    // Of all samples, not of those that pass the options.
    let screen = stage.screen();
    assert!(screen.contains("9.28 % of all: command worker"), "{screen}");
}

#[test]
fn the_time_of_a_short_recording_is_not_rounded_to_nothing() {
    let mut stage = Stage::of_recording(80, 24, CALCULATOR);
    let mut short = (*seen(2, CALCULATOR)).clone();
    short.elapsed = Duration::from_micros(205_900);
    stage.see(Arc::new(short));
    stage.keys("i");
    let screen = stage.screen();
    assert!(screen.contains("754 samples in 205.9 ms"), "{screen}");
}

#[test]
fn a_view_without_lines_says_why() {
    let mut stage = Stage::of_recording(80, 24, "main [calc] 10");
    stage.keys("4");
    assert!(
        stage
            .screen()
            .contains("no function is on a stack more than once")
    );
    stage.see(seen(2, ""));
    assert!(stage.screen().contains("there are no samples"));
    stage.key(Key::Enter);
    assert!(stage.screen().contains("no function is shown"));
    stage.app.state = State::Recorded(Some("time 9.. s".into()));
    assert!(
        stage
            .screen()
            .contains("no samples in this time; Esc shows all")
    );
}

#[test]
fn one_command_or_thread_is_shown_and_all_after_escape() {
    let mut stage = Stage::of_recording(100, 24, CALCULATOR);
    let all = stage.screen();
    stage.key(Key::Char('t'));
    stage.keys("nobody");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("no such command or thread"));
    stage.key(Key::Control('u'));
    stage.keys("calc");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("100.00 % of all: command calc"));
    stage.key(Key::Escape);
    assert_eq!(stage.screen(), all);
    stage.key(Key::Char('T'));
    stage.keys("1..2");
    assert_eq!(stage.key(Key::Enter), Action::Time("1..2".into()));
}

#[test]
fn keys_of_sampling_say_that_a_recording_does_not_change() {
    let mut stage = Stage::of_recording(80, 24, CALCULATOR);
    let before = stage.screen();
    assert!(
        !before.contains("since the start") && !before.contains("samples/s"),
        "{before}"
    );
    for key in ['p', 'z', 'd', '<', '>', 'w'] {
        assert_eq!(stage.key(Key::Char(key)), Action::Nothing);
        assert!(stage.screen().contains("a recording does not change"));
    }
    stage.key(Key::Char('?'));
    let help = stage.screen();
    assert!(
        help.contains("descendants") && !help.contains("half-life"),
        "{help}"
    );
}

#[test]
fn a_function_that_a_new_time_lacks_is_said_to_be_in_no_stack() {
    let mut stage = Stage::of_recording(80, 24, CALCULATOR);
    stage.key(Key::Enter);
    stage.see(seen(2, "main [calc];parse [calc] 10"));
    assert!(stage.screen().contains("lookup is in no stack"));
}

#[test]
fn narrow_and_low_screens_of_a_recording_can_be_drawn() {
    for (width, height) in [(40, 24), (20, 8), (1, 1), (80, 2)] {
        let mut stage = Stage::of_recording(width, height, CALCULATOR);
        for key in [
            Key::Enter,
            Key::End,
            Key::Escape,
            Key::Char('3'),
            Key::Char(' '),
            Key::Char('?'),
        ] {
            stage.key(key);
            stage.screen();
        }
    }
}

// Three runs of each side: `lex` has become slower, and `lookup` as fast as it was.
#[test]
fn flat_shows_what_has_changed_since_other_runs() {
    let (mut runs, mut sum) = (Runs::default(), SumOfRuns::default());
    for noise in 0..3 {
        for (side, weight) in [(Side::Base, 900), (Side::New, 1500)] {
            let line = format!(
                "main [calc];parse [calc];lex [calc] {}",
                weight + 10 * noise
            );
            let run = profile(&format!(
                "{line}\n{}",
                CALCULATOR.split_once('\n').unwrap().1
            ));
            let event = run.main_event().unwrap();
            runs.add(side, &run, &run.select(event, &Filter::default()), None);
            if side == Side::New {
                sum.add(&run);
            }
        }
    }
    let profile = sum.finish();
    let comparison = Comparison::of(profile.events.iter().next().unwrap().clone(), &runs);
    let places = comparison.places(&runs, Side::New, &profile);
    let mut stage = Stage::of_recording(110, 24, CALCULATOR);
    stage.app.wish.changes = Some(Arc::new(Changes { comparison, places }));
    stage.see(seen_of(2, profile));
    let line = |stage: &mut Stage, name: &str| {
        let screen = stage.screen();
        let mut lines = screen.lines();
        let found = lines.position(|line| line.split_whitespace().any(|it| it == name));
        let found = found.unwrap_or_else(|| panic!("{name}: {screen}"));
        (found, screen.lines().nth(found).unwrap().to_owned())
    };
    let (_, titles) = line(&mut stage, "verdict");
    assert!(
        titles.contains("base/run") && titles.contains("new/run"),
        "{titles}"
    );
    let (lex, row) = line(&mut stage, "lex");
    assert!(row.contains("910.0 ms   1.510 s     worse"), "{row}");
    let (lookup, row) = line(&mut stage, "lookup");
    assert!(row.contains("2.400 s   2.400 s      same"), "{row}");
    assert!(lookup < lex, "by self weight");
    stage.keys("sss");
    assert!(line(&mut stage, "lex").0 < line(&mut stage, "lookup").0);
    assert!(stage.screen().contains("by change"), "{}", stage.screen());
    stage.keys("s");
    assert!(line(&mut stage, "lookup").0 < line(&mut stage, "lex").0);
}
