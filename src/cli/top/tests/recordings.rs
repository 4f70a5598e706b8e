//! What the keys of a recording do.

use super::super::app::Action;
use super::super::key::Key;
use super::stage::{CALCULATOR, Stage, seen};

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
    stage.key(Key::Char('/'));
    stage.keys("descendant");
    stage.key(Key::Enter);
    let first = stage.screen();
    assert!(first.contains("descendant"), "{first}");
    stage.key(Key::Char('n'));
    stage.key(Key::Char('N'));
    assert_eq!(stage.screen(), first);
    stage.key(Key::Char('/'));
    stage.keys("no such text");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("no line with /no such text/"));
    // However far the end is passed, the next key up is seen.
    stage.key(Key::End);
    let end = stage.screen();
    stage.key(Key::Up);
    assert_ne!(stage.screen(), end);
}

#[test]
fn one_command_or_thread_is_shown_and_all_after_escape() {
    let mut stage = Stage::of_recording(100, 24, CALCULATOR);
    let all = stage.screen();
    stage.key(Key::Char('t'));
    stage.keys("nobody");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("no command or thread is called so"));
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
