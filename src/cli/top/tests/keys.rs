//! What keys do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proftool::base::Event;

use super::super::app::{Action, LINES};
use super::super::key::Key;
use super::super::source::{Seen, State};
use super::super::wish::View;
use super::stage::{CALCULATOR, LATER, Stage, profile, seen, stage};

#[test]
fn a_selected_function_stays_selected_when_the_order_changes() {
    let mut stage = stage();
    assert_eq!(stage.names()[..3], ["lookup", "sum", "memcmp"]);
    stage.keys("jjj");
    assert_eq!(stage.chosen(), "lex");
    stage.see(seen(2, LATER));
    assert_eq!(stage.names()[0], "lex");
    assert_eq!(stage.chosen(), "lex");
    // Nobody has chosen a line: it is the first one, whichever it is.
    stage.key(Key::Home);
    stage.see(seen(3, CALCULATOR));
    assert_eq!(stage.chosen(), "lookup");
    stage.key(Key::End);
    let last = stage.names().last().unwrap().clone();
    assert_eq!(stage.chosen(), last);
}

#[test]
fn far_lines_are_built_when_the_cursor_gets_there() {
    let stacks: Vec<String> = (0..1200)
        .map(|n| format!("main [calc];f{n} [calc] {}", 2000 - n))
        .collect();
    let mut stage = Stage::new(80, 24, &stacks.join("\n"));
    assert_eq!(stage.names().len(), LINES);
    assert!(
        stage.screen().contains("1,201 functions"),
        "{}",
        stage.screen()
    );
    stage.key(Key::End);
    assert_eq!(stage.names().len(), 1201);
    assert_eq!(stage.chosen(), "main");
    stage.keys("k");
    assert_eq!(stage.chosen(), "f1199");
    stage.key(Key::Home);
    assert_eq!(stage.names().len(), LINES);
    // What is looked for is looked for among all.
    stage.keys("/f1199");
    assert_eq!(stage.chosen(), "f1199");
}

#[test]
fn lines_are_filtered_while_a_pattern_is_typed() {
    let mut stage = stage();
    let all = stage.names().len();
    stage.keys("/mem");
    assert_eq!(stage.names(), ["memcmp", "memchr"]);
    assert!(
        stage.screen().contains("2 of 12 functions"),
        "{}",
        stage.screen()
    );
    // Half a pattern changes nothing; an invalid one is reported.
    stage.keys("(");
    assert_eq!(stage.names(), ["memcmp", "memchr"]);
    stage.key(Key::Enter);
    assert!(
        stage.screen().contains("unclosed group"),
        "{}",
        stage.screen()
    );
    stage.key(Key::Escape);
    assert_eq!(stage.names().len(), all);
    stage.keys("/mem");
    stage.key(Key::Enter);
    assert_eq!(stage.names().len(), 2);
    // 100 % is what it was.
    assert!(
        stage
            .screen()
            .contains("100 % = 7.540 s of cpu-clock, 754 samples"),
        "{}",
        stage.screen()
    );
    stage.key(Key::Escape);
    assert_eq!(stage.names().len(), all);
}

#[test]
fn with_a_focus_100_percent_is_the_focused_weight() {
    let mut stage = stage();
    stage.keys("f^parse$");
    stage.key(Key::Enter);
    assert_eq!(stage.names(), ["lex", "memchr", "main", "parse"]);
    let screen = stage.screen();
    assert!(
        screen.contains("100 % = 1.500 s of cpu-clock, 19.89 % of all: stacks with /^parse$/"),
        "{screen}"
    );
    stage.key(Key::Escape);
    assert_eq!(stage.names().len(), 12);
    stage.keys("f(");
    stage.key(Key::Enter);
    assert!(stage.screen().contains("unclosed group"));
    stage.key(Key::Escape);
    stage.keys("fnowhere");
    stage.key(Key::Enter);
    assert!(
        stage
            .screen()
            .contains("no sample passes; Esc clears the focus"),
        "{}",
        stage.screen()
    );
}

#[test]
fn functions_are_sorted_in_three_ways() {
    let mut stage = stage();
    stage.keys("s");
    assert_eq!(stage.names()[..2], ["main", "eval"]);
    stage.keys("s");
    assert_eq!(
        stage.names()[..2],
        ["apply", "calc::table::Map<K, V>::find"]
    );
    stage.keys("s");
    assert_eq!(stage.names()[0], "lookup");
    stage.keys("3s");
    assert!(
        stage.screen().contains("only the flat view"),
        "{}",
        stage.screen()
    );
}

#[test]
fn pause_freezes_and_zero_goes_on() {
    let mut stage = stage();
    stage.key(Key::Char(' '));
    stage.see(seen(2, LATER));
    assert_eq!(stage.names()[0], "lookup");
    stage.key(Key::Char(' '));
    assert_eq!(stage.names()[0], "lex");
    stage.keys("p");
    assert_eq!(stage.key(Key::Char('z')), Action::Reset);
    assert!(!stage.app.is_paused());
}

#[test]
fn figures_count_from_the_reset_once_the_first_arrive() {
    let at = |number, resets, stacks| {
        let mut seen = (*seen(number, stacks)).clone();
        seen.resets = resets;
        Arc::new(seen)
    };
    let mut stage = stage();
    let first = |stage: &mut Stage| stage.screen().lines().next().unwrap().to_owned();
    assert!(first(&mut stage).contains("since the start"));
    assert_eq!(stage.key(Key::Char('z')), Action::Reset);
    // The old figures are not those since the reset, however long the new ones take.
    for number in 2..4 {
        let line = first(&mut stage);
        assert!(
            line.starts_with("resetting …, until then 100 % = "),
            "{line}"
        );
        assert!(!line.contains("since the reset"), "{line}");
        stage.keys("w");
        assert!(stage.app.prompt.is_none());
        let told = stage.app.message.clone().unwrap();
        assert!(told.contains("before the reset are not kept"), "{told}");
        stage.see(at(number, 0, CALCULATOR));
    }
    stage.see(at(4, 1, LATER));
    let line = first(&mut stage);
    assert!(
        line.starts_with("100 % = ") && line.contains("since the reset"),
        "{line}"
    );
    stage.keys("w");
    assert!(stage.app.prompt.is_some());
    stage.key(Key::Escape);

    // A pause before they arrive shows the old ones, with a note.
    stage.key(Key::Char('z'));
    stage.keys("p");
    stage.see(at(5, 2, CALCULATOR));
    let line = first(&mut stage);
    assert!(
        line.contains("before the reset") && line.contains("PAUSED"),
        "{line}"
    );
    assert!(!line.contains("beginning"), "{line}");
    stage.keys("w");
    assert!(stage.app.prompt.is_none());
    stage.keys("p");
    assert!(first(&mut stage).contains("since the reset"));

    // After the end of sampling there is no reset.
    stage.app.state = State::Ended("it is over".into());
    assert_eq!(stage.key(Key::Char('z')), Action::Nothing);
    assert!(first(&mut stage).contains("since the reset"));
}

#[test]
fn weights_fade_by_a_time_that_can_be_changed() {
    let mut stage = stage();
    let seconds = |n| Action::HalfLife(Some(Duration::from_secs(n)));
    assert_eq!(stage.key(Key::Char('<')), Action::Nothing);
    assert_eq!(stage.key(Key::Char('d')), seconds(10));
    assert_eq!(stage.key(Key::Char('>')), seconds(20));
    for _ in 0..20 {
        stage.keys("<");
    }
    assert_eq!(stage.key(Key::Char('<')), seconds(1));
    assert_eq!(stage.key(Key::Char('d')), Action::HalfLife(None));
    stage.keys("pd");
    let told = stage.app.message.clone().unwrap();
    assert_eq!(told, "when the display goes on, weights halve every 10 s");
    stage.keys("p");
    // After the end nothing fades, and nothing says that it does.
    stage.app.state = State::Ended("it is over".into());
    for key in ['d', '<', 'p'] {
        assert_eq!(stage.key(Key::Char(key)), Action::Nothing);
        let told = stage.app.message.clone().unwrap();
        assert!(told.starts_with("sampling has ended"), "{told}");
        assert!(!stage.screen().contains("halved"), "{}", stage.screen());
        assert!(!stage.app.is_paused());
    }
    assert!(!stage.screen().contains("p pause"), "{}", stage.screen());
}

#[test]
fn a_recording_is_written_under_the_name_that_is_given() {
    let mut stage = stage();
    stage.keys("w");
    assert!(
        stage.screen().contains("write to: perf.data"),
        "{}",
        stage.screen()
    );
    assert_eq!(
        stage.key(Key::Enter),
        Action::Write(PathBuf::from("perf.data"))
    );
    stage.keys("wa.data");
    assert_eq!(
        stage.key(Key::Enter),
        Action::Write(PathBuf::from("a.data"))
    );
    stage.keys("w");
    assert_eq!(stage.key(Key::Escape), Action::Nothing);
    assert!(stage.app.prompt.is_none());
}

#[test]
fn control_c_quits_everywhere() {
    let mut stage = stage();
    assert_eq!(stage.key(Key::Char('q')), Action::Quit);
    for keys in ["?", "i", "/x", "w", "f"] {
        stage.keys(keys);
        assert_eq!(stage.key(Key::Control('c')), Action::Quit);
        // So does Ctrl-Z stop, and Ctrl-L draw again.
        assert_eq!(stage.key(Key::Control('z')), Action::Suspend);
        assert_eq!(stage.key(Key::Control('l')), Action::Repaint);
        stage.key(Key::Escape);
    }
    // In an answer q is a letter, and over a text it closes it.
    stage.keys("?");
    assert_eq!(stage.key(Key::Char('q')), Action::Nothing);
    assert!(stage.app.overlay.is_none());
    stage.keys("/");
    assert_eq!(stage.key(Key::Char('q')), Action::Nothing);
}

#[test]
fn one_of_several_events_is_shown() {
    let mut profile = profile(CALCULATOR);
    let faults = profile.events.push(Event::named("page-faults"));
    let mut sample = profile.samples[0];
    (sample.event, sample.weight, sample.count) = (faults, 21, 3);
    profile.samples.push(sample);
    let mut stage = Stage::new(80, 24, LATER);
    let elapsed = Duration::from_secs(5);
    stage.see(Arc::new(Seen::all_of(2, profile, elapsed)));
    let screen = stage.screen();
    assert!(screen.contains("of cpu-clock, 754 samples"), "{screen}");
    assert!(screen.contains("event cpu-clock"), "{screen}");
    stage.keys("E");
    let screen = stage.screen();
    assert!(
        screen.contains("100 % = 21 page-faults, 3 samples"),
        "{screen}"
    );
    assert!(screen.contains("event page-faults"), "{screen}");
    // What is seen next may lack it.
    stage.see(seen(3, LATER));
    assert!(stage.screen().contains("100 % = 12.26 s of cpu-clock"));
}

#[test]
fn tab_cycles_through_the_views() {
    let mut stage = stage();
    for view in [View::Graph, View::Tree, View::Cycles, View::Flat] {
        stage.key(Key::Tab);
        assert_eq!(stage.app.wish.view, view);
        assert!(stage.app.shown().is_some());
    }
    stage.key(Key::BackTab);
    assert_eq!(stage.app.wish.view, View::Cycles);
    stage.keys("E");
    assert!(
        stage.screen().contains("cpu-clock is the only event"),
        "{}",
        stage.screen()
    );
}

#[test]
fn a_text_over_the_view_is_closed_by_keys_that_say_so_and_no_other() {
    let mut stage = stage();
    stage.keys("?");
    let help = stage.screen();
    assert!(help.contains("Esc close  PgDn on"), "{help}");
    assert!(!help.contains("q quit"), "{help}");
    stage.keys("sxd/");
    stage.key(Key::Left);
    assert_eq!(stage.screen(), help);
    // However far the end is passed, the next key up is seen.
    stage.keys("G");
    let end = stage.screen();
    stage.keys("GG");
    stage.key(Key::PageDown);
    assert_eq!(stage.screen(), end);
    stage.keys("k");
    assert_ne!(stage.screen(), end);
    stage.keys("g");
    assert_eq!(stage.screen(), help);
    for key in [Key::Escape, Key::Enter, Key::Char('q'), Key::Char('?')] {
        stage.key(key);
        assert!(stage.app.overlay.is_none(), "{key:?}");
        stage.keys("?");
    }
    // The key of a view leads there.
    stage.keys("3");
    assert!(stage.app.overlay.is_none());
    assert_eq!(stage.app.wish.view, View::Tree);
}

#[test]
fn functions_are_looked_for_as_the_screen_calls_them() {
    let stacks = "\
main() [a];std::basic_string<char, std::char_traits<char>, std::allocator<char> >::size() [a] 30
main() [a];std::basic_string<wchar_t, std::char_traits<wchar_t>, \
    std::allocator<wchar_t> >::size() [a] 20
main() [a] 10";
    for view in ["1", "2", "3", "4"] {
        let mut stage = Stage::new(100, 24, stacks);
        stage.keys("1G");
        assert_eq!(stage.chosen(), "main()");
        stage.keys(view);
        stage.keys("/string<char>::size$");
        stage.key(Key::Enter);
        let found = stage.names();
        let searched = found.iter().filter(|name| name.contains("size"));
        let count = searched.count();
        assert_eq!(count, usize::from(view != "4"), "{found:?}");
    }
    let mut stage = Stage::new(100, 24, stacks);
    assert!(stage.screen().contains("std::basic_string<char>::size"));
    stage.keys("fstd::basic_string<char>::size");
    stage.key(Key::Enter);
    let screen = stage.screen();
    assert!(screen.contains("100 % = 30.00 ms"), "{screen}");
    // The graph says which of them it is about.
    stage.keys("2");
    let about = stage.screen().lines().nth(2).unwrap().to_owned();
    assert!(
        about.contains("std::basic_string<char>::size · 1 caller"),
        "{about}"
    );
}

#[test]
fn what_is_looked_at_is_named_on_any_screen() {
    let pattern = "^(calc::table::Map<K, V>::find|lookup|a name that nothing has)$";
    for (width, height) in [(120, 40), (80, 24), (40, 12)] {
        let mut stage = Stage::new(width, height, CALCULATOR);
        stage.keys("f");
        stage.keys(pattern);
        stage.key(Key::Enter);
        let screen = stage.screen();
        assert!(screen.contains("stacks with /^"), "{screen:?}");
    }
}

// Keys in an order that no person would think of, while pictures come and go: nothing panics, and
// what is chosen is on the screen.
#[test]
fn any_sequence_of_keys_is_handled() {
    const KEYS: [Key; 15] = [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Delete,
        Key::Tab,
        Key::BackTab,
        Key::Control('u'),
    ];
    let characters: Vec<char> = "1234/fwscegEpzd<>i?hq (*jk".chars().collect();
    let recursive = "a [x];b [x];a [x];b [x];c [y] 30\na [x];a [x];a [x] 20\nb [x];c [y];b [x] 5";
    let pictures = [CALCULATOR, LATER, recursive, ""];
    let mut random = 1u64;
    let mut below = |n: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % n
    };
    let mut stage = Stage::new(60, 10, CALCULATOR);
    for step in 2..4000 {
        match below(40) {
            0 => stage.see(seen(step, pictures[below(pictures.len())])),
            n if n < 20 => drop(stage.key(KEYS[below(KEYS.len())])),
            _ => drop(stage.key(Key::Char(characters[below(characters.len())]))),
        }
        if step % 16 == 0 {
            stage.screen();
        }
        let (cursor, room) = (stage.app.cursor(), stage.app.room);
        let lines = stage
            .app
            .shown()
            .map_or(0, |shown| shown.listing.lines.len());
        assert!(cursor.index() < lines.max(1), "step {step}");
        let on_screen = cursor.top()..cursor.top() + room;
        assert!(on_screen.contains(&cursor.index()), "step {step}");
    }
}
