//! Whole screens, compared with `tests/golden/top`; `UPDATE_GOLDEN=1` rewrites them.

use std::path::Path;
use std::time::Duration;

use proftool::base::CaveatKind;

use super::super::draw::Paint;
use super::super::key::Key;
use super::super::source::{State, Written};
use super::stage::{CALCULATOR, LATER, Stage, built, seen, seen_of};

#[track_caller]
fn holds(name: &str, screen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/top")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, screen).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, screen, "{name} is not as in tests/golden/top");
}

#[test]
fn each_view_is_drawn_in_three_sizes() {
    for (width, height) in [(80, 24), (60, 12), (120, 40)] {
        for (key, name) in [
            ('1', "flat"),
            ('2', "graph"),
            ('3', "tree"),
            ('4', "cycles"),
        ] {
            let mut stage = Stage::new(width, height, CALCULATOR);
            stage.key(Key::Down);
            stage.key(Key::Char(key));
            holds(&format!("{name}.{width}x{height}"), &stage.screen());
        }
    }
}

#[test]
fn a_collapsed_tree_has_one_total_a_line() {
    let mut stage = Stage::new(80, 24, CALCULATOR);
    stage.keys("3ccc");
    holds("collapsed.80x24", &stage.screen());
}

#[test]
fn help_and_info_are_drawn_over_a_view() {
    let mut stage = Stage::new(80, 24, CALCULATOR);
    stage.keys("?");
    holds("help.80x24", &stage.screen());
    stage.keys("i");
    holds("info.80x24", &stage.screen());
    stage.key(Key::Escape);
    stage.keys("/l.*k");
    holds("search.80x24", &stage.screen());
    stage.key(Key::Enter);
    stage.keys("fapply");
    stage.key(Key::Enter);
    holds("focus.80x24", &stage.screen());
}

#[test]
fn changes_of_state_are_shown() {
    let mut stage = Stage::new(80, 24, CALCULATOR);
    stage.keys("p");
    stage.see(seen(3, LATER));
    let screen = stage.screen();
    assert!(screen.contains("PAUSED 0:05 of 0:15"), "{screen}");
    assert!(
        screen.contains("100 % = 7.540 s of cpu-clock, 754 samples"),
        "{screen}"
    );
    stage.keys("pd");
    // What is on the screen does not fade yet.
    let screen = stage.screen();
    assert!(
        screen.contains("12.26 s of cpu-clock, 1,226 samples"),
        "{screen}"
    );
    assert!(screen.contains("weights halve every 10 s"), "{screen}");
    let mut faded = (*seen(3, LATER)).clone();
    (faded.number, faded.half_life) = (4, Some(Duration::from_secs(10)));
    stage.see(std::sync::Arc::new(faded));
    let screen = stage.screen();
    assert!(
        screen.contains("100 % = 12.26 s of cpu-clock, halved every 10 s"),
        "{screen}"
    );
    stage.app.state = State::Ended("the command exited with status 3".into());
    let screen = stage.screen();
    assert!(
        screen.contains("the command exited with status 3"),
        "{screen}"
    );
    assert!(screen.contains("ended 0:15"), "{screen}");
    let written = Written {
        samples: 1226,
        bytes: 123_456,
        note: None,
    };
    stage.app.written(Path::new("a b.data"), Ok(written));
    let screen = stage.screen();
    let told = "wrote a b.data: 1,226 samples, 123 kB; see: proftool report 'a b.data'";
    assert!(screen.contains(told), "{screen}");
    stage
        .app
        .written(Path::new("x"), Err("no space left on device".into()));
    let screen = stage.screen();
    assert!(
        screen.contains("could not write x: no space left"),
        "{screen}"
    );
}

#[test]
fn all_that_is_on_a_screen_is_of_one_moment() {
    let mut stage = Stage::new(80, 24, CALCULATOR);
    let before = stage.screen();
    // A large profile takes long to arrange: until then nothing is of a later time.
    stage.see_only(seen(9, LATER));
    assert_eq!(stage.screen(), before);
    stage.see(seen(10, LATER));
    assert!(stage.screen().contains("0:50"), "{}", stage.screen());
}

#[test]
fn losses_are_shown_before_parts_that_may_be_left_out() {
    let mut stage = Stage::new(60, 12, CALCULATOR);
    let mut lossy = std::sync::Arc::into_inner(seen(2, CALCULATOR)).unwrap();
    (lossy.lost, lossy.behind, lossy.seldom) = (1234, 0, 5_000_000);
    stage.see(std::sync::Arc::new(lossy));
    let screen = stage.screen();
    assert!(screen.contains("· 1,234 lost"), "{screen}");
    assert!(!screen.contains("no losses"), "{screen}");
}

#[test]
fn samples_that_do_not_add_up_are_reported_on_every_screen() {
    let mut stage = Stage::new(80, 12, CALCULATOR);
    let mut missed = std::sync::Arc::into_inner(seen(2, CALCULATOR)).unwrap();
    let caveats = &mut missed.profile.caveats;
    caveats.add_detail(CaveatKind::MissedTime, 1, "cpu-clock: 1 of 9 ms used");
    stage.see(std::sync::Arc::new(missed));
    let told = "samples miss processor time (i)";
    assert!(stage.screen().contains(told), "{}", stage.screen());
}

#[test]
fn a_total_of_incomplete_stacks_is_a_range_in_every_view() {
    let stacks = "\
[truncated] [x];even [x];even [x] 90
[truncated] [x];odd [x];even [x];odd [x] 40
main [x];even [x];odd [x];even [x];even [x] 20";
    for view in ["1", "2", "3", "4"] {
        let mut stage = Stage::new(100, 40, stacks);
        stage.keys("1/main");
        stage.key(Key::Enter);
        stage.keys(view);
        stage.key(Key::Escape);
        let screen = stage.screen();
        assert!(screen.contains("at most %"), "{screen}");
        assert!(view == "4" || screen.contains("100.00"), "{screen}");
    }
    let mut stage = Stage::new(100, 40, stacks);
    stage.keys("4");
    holds("cut.100x40", &stage.screen());
}

#[test]
fn numbers_of_calls_are_marked_where_they_are_lower_bounds() {
    let (mut builder, functions) = built(CALCULATOR);
    let id = |name| functions[name];
    let (main, parse, lex) = (id("main [calc]"), id("parse [calc]"), id("lex [calc]"));
    builder.count(Some(main), parse, 1200);
    builder.count(Some(parse), lex, 7);
    builder.count_some([], vec![parse]);
    let mut stage = Stage::new(100, 24, CALCULATOR);
    stage.see(seen_of(2, builder.finish()));
    let screen = stage.screen();
    let line = |name: &str| screen.lines().find(|it| it.contains(name)).unwrap();
    assert!(line("parse").contains(" 1,200 "), "{screen}");
    assert!(line("lex").contains(" ≥7 "), "{screen}");
    // One column, as on the page of the command.
    let titles = screen.lines().nth(3).unwrap();
    assert!(
        !titles.contains("at least") && !titles.contains("recursive"),
        "{screen}"
    );
}

#[test]
fn marks_stay_apart_without_characters_beyond_ascii() {
    let mut stage = Stage::new(80, 60, CALCULATOR);
    stage.paint.unicode = false;
    stage.keys("?");
    let help = stage.screen();
    assert!(
        help.contains("  =f  ") && help.contains("  > calls  "),
        "{help}"
    );
}

#[test]
fn on_a_narrow_screen_names_and_shares_are_left() {
    let mut stage = Stage::new(28, 8, CALCULATOR);
    let screen = stage.screen();
    assert!(
        screen.starts_with("100 % = 7.540 s of cpu-clock\n"),
        "{screen}"
    );
    assert!(screen.contains(" 31.83  lookup"), "{screen}");
    stage.keys("4");
    assert!(
        stage.screen().contains(" 79.58  eval"),
        "{}",
        stage.screen()
    );
}

#[test]
fn any_size_can_be_drawn() {
    let sizes = [0, 1, 2, 3, 6, 8, 20, 59, 200];
    for width in sizes {
        for height in sizes {
            let mut stage = Stage::new(width, height, CALCULATOR);
            for keys in ["", "2", "3", "4", "?", "i", "1/x", "\u{8}"] {
                stage.keys(keys);
                stage.key(Key::Down);
                stage.key(Key::PageUp);
                let screen = stage.screen();
                let lines: Vec<&str> = screen.lines().collect();
                assert_eq!(
                    lines.len(),
                    if width == 0 { 0 } else { usize::from(height) }
                );
            }
        }
    }
}

#[test]
fn nothing_but_printable_characters_reaches_the_screen() {
    let hostile = "\
ma\u{1b}[2Jin [a\u{7}pp];ev\u{202e}il [li\u{9b}b] 50
ma\u{1b}[2Jin [a\u{7}pp];\u{4e2d}\u{6587}\u{4e2d}\u{6587} [lib] 40
ma\u{1b}[2Jin [a\u{7}pp];\u{4e2d}\u{6587}\u{4e2d}\u{6587} [lib];ma\u{1b}[2Jin [a\u{7}pp] 40";
    let unsafe_char = |c: char| c != '\n' && proftool::base::is_unsafe_char(c);
    for unicode in [true, false] {
        let mut stage = Stage::new(80, 24, hostile);
        stage.paint = Paint {
            color: true,
            unicode,
        };
        for keys in ["1", "2", "3", "4", "i", "/\u{1b}\u{9b}", "\u{202e}"] {
            stage.keys(keys);
            let screen = stage.screen();
            assert!(!screen.contains(unsafe_char), "{screen:?}");
            assert!(unicode || screen.is_ascii(), "{screen}");
        }
    }
}

#[test]
fn before_the_first_sample_it_waits() {
    let mut stage = Stage::new(60, 8, "");
    assert!(
        stage.screen().contains("100 % = 0 ns of cpu-clock"),
        "{}",
        stage.screen()
    );
    for keys in ["2", "3", "4", "e", "c", "s", "g", "w"] {
        stage.keys(keys);
        stage.key(Key::Enter);
        stage.key(Key::End);
        stage.screen();
    }
}
