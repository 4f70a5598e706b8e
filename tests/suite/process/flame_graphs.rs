//! Flame graphs: what titles and widths say is what the profile has.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Output};

use proftool::analysis::inclusive::{self, FunctionWeights};
use proftool::analysis::tree::{CallTree, Collapse, Direction, Reach, Stacks};
use proftool::base::printable;
use proftool::export::{folded as folded_text, svg};
use proftool::input::folded;
use proftool::profile::{EventId, Filter, Profile, Selection};
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

use crate::support::{directory, laws, ran};

/// A frame, as the file has it.
#[derive(Debug)]
struct Frame {
    name: String,
    weight: u64,
    own: Option<u64>,
    x: f64,
    width: f64,
    y: u64,
}

/// Names that XML, titles or readers of titles have to be careful with.
const NAMES: [&str; 9] = [
    "main",
    "parse",
    "</title><script>document.title='owned'</script>",
    "a & b \"c\"",
    "f(int, char) (3 samples, 1%)",
    "]]>",
    "[x] [y]",
    "解析::naïve",
    "tab\\x09\\x1b[2J",
];

fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
    vec((vec(0..NAMES.len(), 1..10), 1..1000u64), 1..30)
}

fn profile(stacks: &[(Vec<usize>, u64)]) -> Profile {
    let mut text = String::new();
    for (stack, weight) in stacks {
        let names: Vec<&str> = stack.iter().map(|&name| NAMES[name]).collect();
        writeln!(text, "{} {weight}", names.join(";")).unwrap();
    }
    folded::read(text.as_bytes(), &mut |_| {}).unwrap()
}

fn subject<'a>(profile: &'a Profile, selection: &'a Selection) -> Subject<'a> {
    Subject::new(profile, selection, Names::Full)
}

fn draw(subject: &Subject, tree: &CallTree, direction: Direction, least: u64) -> String {
    let layout = tree.flame_layout(least);
    let picture = svg::Picture {
        tree,
        layout: &layout,
        direction,
        depth: None,
    };
    let mut out = Vec::new();
    svg::write(&mut out, subject, &picture).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

fn unescaped(text: &str) -> String {
    assert!(!text.contains(['<', '>', '"']), "{text}");
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// The number that a text starts with.
fn number(text: &str) -> u64 {
    let digits = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The frames of a picture, in its order: each before those on it.
fn frames(picture: &str) -> Vec<Frame> {
    let area = between(picture, "<g id=\"frames\"", "\n</g>\n");
    let lines = area.lines().skip(1).filter(|line| line.contains("<rect "));
    let frame = |line: &str| {
        let title = unescaped(between(line, "<title>", "</title>"));
        let (name, figures) = title.rsplit_once(" (").unwrap();
        let own = figures.split_once("; self ").map(|(_, own)| number(own));
        let rect = between(line, "<rect ", "/>");
        let value = |key: &str| between(rect, &format!(" {key}=\""), "\"");
        Frame {
            name: name.to_owned(),
            weight: number(figures),
            own,
            x: value("x").parse().unwrap(),
            width: value("width").parse().unwrap(),
            y: value("y").parse().unwrap(),
        }
    };
    lines.map(frame).collect()
}

/// The folded stacks that titles and places add up to.
fn refolded(frames: &[Frame]) -> BTreeMap<String, u64> {
    let bottom = frames.iter().map(|frame| frame.y).max().unwrap_or(0);
    let mut stack: Vec<&str> = Vec::new();
    let mut stacks = BTreeMap::new();
    for frame in frames {
        let level = (bottom - frame.y) / 17;
        stack.truncate(usize::try_from(level).unwrap());
        stack.push(&frame.name);
        if let Some(own) = frame.own.filter(|&own| own > 0) {
            *stacks.entry(stack.join(";")).or_default() += own;
        }
    }
    stacks
}

proptest! {
    #![proptest_config(laws::cases(48))]

    #[test]
    fn titles_fold_to_the_stacks_of_the_profile(stacks in stacks()) {
        let profile = profile(&stacks);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let subject = subject(&profile, &selection);
        let all = Stacks::new(&profile, &selection);
        for degree in Collapse::ALL {
            let tree = all.top_down(degree);
            let picture = draw(&subject, &tree, Direction::TopDown, 0);
            let frames = frames(&picture);
            let mut text = Vec::new();
            folded_text::write(&mut text, &subject, &tree).unwrap();
            let text = String::from_utf8(text).unwrap();
            // Names in titles are not escaped as folded ones are.
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for line in text.lines() {
                let (stack, weight) = line.rsplit_once(' ').unwrap();
                *expected.entry(stack.to_owned()).or_default() += weight.parse::<u64>().unwrap();
            }
            let plain = |text: &str| text.replace("\\x5c", "\\");
            let sums = |stacks: BTreeMap<String, u64>| -> BTreeMap<String, u64> {
                stacks.into_iter().map(|(stack, sum)| (plain(&stack), sum)).collect()
            };
            prop_assert_eq!(sums(refolded(&frames)), sums(expected));
            let sum: u64 = frames.iter().filter_map(|frame| frame.own).sum();
            prop_assert_eq!(sum, selection.total());
        }
    }

    #[test]
    fn titles_have_the_totals_of_flat(stacks in stacks()) {
        let profile = profile(&stacks);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let subject = subject(&profile, &selection);
        let weights: FunctionWeights = inclusive::by_function(&profile, &selection);
        let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
        let picture = draw(&subject, &tree, Direction::TopDown, 0);
        let frames = frames(&picture);
        let bottom = frames.iter().map(|frame| frame.y).max().unwrap();
        let mut stack: Vec<&str> = Vec::new();
        let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for frame in &frames {
            stack.truncate(usize::try_from((bottom - frame.y) / 17).unwrap());
            let (own, total) = totals.entry(&frame.name).or_default();
            *own += frame.own.unwrap();
            if !stack.contains(&&*frame.name) {
                *total += frame.weight;
            }
            stack.push(&frame.name);
        }
        let flat: BTreeMap<String, (u64, u64)> = weights
            .present()
            .map(|id| (printable(&profile.functions[id].name).into_owned(), (weights.self_weight[id], weights.total[id])))
            .collect();
        let totals: BTreeMap<String, (u64, u64)> =
            totals.into_iter().map(|(name, sums)| (name.to_owned(), sums)).collect();
        prop_assert_eq!(totals, flat);
    }

    #[test]
    fn widths_add_up_and_frames_stand_on_their_callers(stacks in stacks()) {
        let profile = profile(&stacks);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let subject = subject(&profile, &selection);
        let all = Stacks::new(&profile, &selection);
        for degree in Collapse::ALL {
            for (tree, direction) in [
                (all.top_down(degree), Direction::TopDown),
                (all.bottom_up(degree, Reach::default()), Direction::BottomUp),
            ] {
                let frames = frames(&draw(&subject, &tree, direction, 0));
                let unit = 1180.0 / selection.total() as f64;
                let mut around: Vec<&Frame> = Vec::new();
                let first = frames.first().unwrap().y;
                let mut roots = 0.0;
                for frame in &frames {
                    prop_assert!((frame.width - frame.weight as f64 * unit).abs() < 0.01);
                    let level = first.abs_diff(frame.y) / 17;
                    around.truncate(usize::try_from(level).unwrap());
                    if let Some(on) = around.last() {
                        prop_assert!(frame.x > on.x - 0.001);
                        prop_assert!(frame.x + frame.width < on.x + on.width + 0.002);
                    } else {
                        roots += frame.width;
                    }
                    around.push(frame);
                }
                prop_assert!((roots - 1180.0).abs() < 0.01, "{}", roots);
                if direction == Direction::BottomUp {
                    let own = inclusive::by_function(&profile, &selection).self_weight;
                    let sum: u64 = own.iter().sum();
                    let sums = frames.iter().filter(|frame| frame.y == first);
                    prop_assert_eq!(sums.map(|frame| frame.weight).sum::<u64>(), sum);
                }
            }
        }
    }
}

#[test]
fn frames_too_narrow_to_be_seen_are_counted() {
    let mut text = String::from("main;wide 100000\n");
    for number in 0..50 {
        writeln!(text, "main;narrow{number} 1").unwrap();
    }
    let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    let least = svg::least(selection.total());
    let subject = subject(&profile, &selection);
    let picture = draw(&subject, &tree, Direction::TopDown, least);
    assert_eq!(frames(&picture).len(), 2);
    assert!(picture.contains("50 frames narrower than 0.1 px are not drawn."));
    assert_eq!(svg::least(0), 0);
    assert_eq!(svg::least(u64::MAX), u64::MAX.div_ceil(11_800));
}

#[test]
fn stubs_are_outlines_without_width() {
    let text = "main;f;g;f 6\nmain;f;g 4\n";
    let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::Full);
    let picture = draw(&subject(&profile, &selection), &tree, Direction::TopDown, 0);
    let shown: Vec<(String, u64)> = frames(&picture)
        .into_iter()
        .map(|frame| (frame.name, frame.weight))
        .collect();
    let expected = [("main", 10), ("f", 10), ("g", 4)];
    assert_eq!(
        shown,
        expected.map(|(name, weight)| (name.to_owned(), weight))
    );
    assert!(
        picture
            .contains("<title>f... (collapsed call, passed by 6 samples, 60.00%)</title><polygon")
    );
    // g was on all stacks, and is drawn as wide as what ends in it.
    assert!(picture.contains("g (4 samples, 40.00%; self 4; passed by 10 with collapsed calls"));
}

#[test]
fn marks_are_hatched_and_explained() {
    let text = "[truncated];f 3\nmain;f 7\n";
    let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    let picture = draw(&subject(&profile, &selection), &tree, Direction::TopDown, 0);
    let mark = picture
        .lines()
        .find(|line| line.contains("<title>[truncated] (3 samples"));
    assert!(mark.unwrap().contains("<rect class=\"mark\""));
    assert!(picture.contains("here stacks are incomplete"));
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proftool"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

#[test]
fn the_command_writes_the_same_picture_each_time_and_asks_for_nothing() {
    let file = "fixtures/recursion.folded";
    for more in [&["--bottom-up"][..], &["--collapse", "full"], &[]] {
        let arguments = [&["export", file, "--to", "svg"], more].concat();
        let [first, second] = [run(&arguments), run(&arguments)].map(|output| output.stdout);
        assert!(!first.is_empty());
        assert_eq!(first, second);
        let text = String::from_utf8(first).unwrap();
        let without = text.replace("http://www.w3.org/", "");
        assert!(
            !without.contains("http") && !without.contains("href") && !without.contains("@import")
        );
    }
    let refused = run(&["export", file, "--to", "folded", "--bottom-up"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// What a search found stands 600 pixels before the end of the plot, in the line of the title.
#[test]
fn a_long_title_ends_before_the_controls() {
    let mut profile = profile(&[(vec![0, 1], 3)]);
    profile.about.command = Some("x".repeat(300));
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = subject(&profile, &selection);
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    let drawn = draw(&subject, &tree, Direction::TopDown, 0);
    let (_, rest) = drawn.split_once("<text class=\"title\"").unwrap();
    let title = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
    assert!(title.ends_with('…'), "{title}");
    // Letters of the title are 15 pixels high, and 7.3 wide where they are 12 high.
    let width = title.chars().count() as f64 * 7.3 * 15.0 / 12.0;
    assert!(width <= 1180.0 - 600.0, "{width}");
}

/// The picture of this file, as chromium shows it in a window of this width, and its width there.
fn shown(file: &std::path::Path, width: u64) -> Option<(String, f64)> {
    let profile = file.with_extension("browser");
    let output = ran(Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--window-size={width},700"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display())))?;
    let picture = String::from_utf8(output.stdout).unwrap();
    let root = between(&picture, "<svg ", ">");
    let width = between(root, "width=\"", "\"").parse().unwrap();
    Some((picture, width))
}

#[test]
fn a_picture_takes_the_width_of_its_window() {
    let directory = directory("flame-graph-widths");
    let file = directory.join("it.svg");
    let name = "parse::expression::of_many_words";
    let deep = "x".repeat(90);
    let stacks = format!("main;{name};{name} 300\nmain;{deep} 690\nmain;leaf 10\n");
    std::fs::write(directory.join("it.folded"), stacks).unwrap();
    let folded = directory.join("it.folded");
    let drawn = run(&["export", folded.to_str().unwrap(), "--to", "svg"]).stdout;
    std::fs::write(&file, &drawn).unwrap();
    let drawn = String::from_utf8(drawn).unwrap();
    let height = |picture: &str| between(picture, " height=\"", "\"").to_owned();
    let as_written = frames(&drawn);
    for window in [600, 900, 2000] {
        let Some((picture, width)) = shown(&file, window) else {
            return;
        };
        // The rest is a scroll bar.
        assert!(
            width <= window as f64 && width > window as f64 - 20.0,
            "{width} of {window}"
        );
        if window == 2000 {
            assert_eq!(height(&picture), height(&drawn), "no line is divided");
        }
        let scale = (width - 20.0) / 1180.0;
        let frames = frames(&picture);
        assert_eq!(frames.len(), as_written.len());
        for (frame, written) in frames.iter().zip(&as_written) {
            assert_eq!((&frame.name, frame.weight), (&written.name, written.weight));
            assert!((frame.x - 10.0 - (written.x - 10.0) * scale).abs() < 0.01);
            assert!((frame.width - written.width * scale).abs() < 0.01);
        }
        // Names end within their frames, and lines within the window.
        let area = between(&picture, "<g id=\"frames\"", "<g id=\"foot\"");
        let mut named = 0;
        for text in between(area, "<g class=\"names\">", "</g>")
            .split("<text")
            .skip(1)
        {
            let value = |key: &str| between(text, &format!(" {key}=\""), "\"").to_owned();
            let (x, y): (f64, u64) = (value("x").parse().unwrap(), value("y").parse().unwrap());
            let is_of = |frame: &&Frame| frame.y + 12 == y && (frame.x + 3.0 - x).abs() < 0.01;
            let room = frames.iter().find(is_of).unwrap().width;
            let name = between(text, ">", "<");
            assert!(name.chars().count() as f64 * 7.3 <= room, "{text}");
            named += usize::from(!name.is_empty());
        }
        assert!(named >= 4, "{named}");
        assert!(
            area.contains(if window < 700 {
                ">…::of_many_words<"
            } else {
                name
            }),
            "{window}"
        );
        for span in picture.split("<tspan").skip(1) {
            let text = span.split_once('>').unwrap().1.split('<').next().unwrap();
            assert!(
                text.trim_end().chars().count() as f64 * 7.3 <= width - 20.0,
                "{text}"
            );
        }
    }
}

#[test]
fn a_search_marks_frames_without_changing_each() {
    let directory = directory("flame-graph-search");
    let folded = directory.join("it.folded");
    let stacks = "main;parse;lex 40\nmain;parse;eval 30\nmain;write;eval 30\n";
    std::fs::write(&folded, stacks).unwrap();
    let drawn = run(&["export", folded.to_str().unwrap(), "--to", "svg"]).stdout;
    let steps = "<script>
      var area = document.querySelector('#frames');
      var input = document.querySelector('[type=search]');
      var changes = new MutationObserver(function () {});
      changes.observe(area, { subtree: true, childList: true, attributes: true });
      var state = function (text) {
        input.value = text;
        input.dispatchEvent(new Event('input'));
        var changed = changes.takeRecords().filter(function (it) { return it.target.closest('#frames > g:not(.names)'); });
        var d = function (path) { return area.querySelector(path).getAttribute('d').split('M').length - 1; };
        return [changed.length, d('.hits'), d('.veil'), area.querySelectorAll('.on-page').length].join(' ');
      };
      var found = [state('eval'), state('no such'), state('')].join('; ');
      document.documentElement.setAttribute('data-found', found);
    </script></svg>";
    let drawn = String::from_utf8(drawn).unwrap();
    let file = directory.join("it.svg");
    std::fs::write(&file, drawn.replace("</svg>", steps)).unwrap();
    let Some((picture, _)) = shown(&file, 1200) else {
        return;
    };
    // Six frames are drawn, of which two are found: the veil has holes for these.
    let found = between(&picture, "data-found=\"", "\"");
    assert_eq!(found, "0 2 3 4; 0 0 1 6; 0 0 0 0");
}
