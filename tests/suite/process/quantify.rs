//! One function, as Quantify's Function Detail window shows it: the worked examples of its page, its
//! rules, and laws over random recursive stacks.

use std::collections::{BTreeMap, BTreeSet};

use proftool::analysis::detail::{self, Detail, Neighbour, Rule};
use proftool::names::search::{self, Found};
use proftool::profile::{EventId, Filter, FunctionId, Profile};
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use crate::support::cli::{fixture, proftool};
use crate::support::golden::holds;
use crate::support::{cases, profile_of};

const SEQUENCE_1: &str =
    "main;A 32\nmain;A;B 17\nmain;A;B;C 23\nmain;A;B;C;A 32\nmain;A;B;C;A;D 14\n";

const SEQUENCE_2: &str = "main;A 36\nmain;A;D 14\nmain;A;B 17\nmain;A;B;C 27\nmain;A;B;C;A 29\n";

/// The sequence in the help of PurifyPlus 7.0.1.
const SEQUENCE_701: &str =
    "Main;A 32\nMain;A;B 60\nMain;A;B;C 70\nMain;A;B;C;A 32\nMain;A;B;C;A;D 80\n";

fn of(profile: &Profile, name: &str, rule: Rule) -> Detail {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let known = profile.functions.enumerate().find(|(_, f)| f.name == name);
    detail::of(profile, &selection, known.unwrap().0, rule)
}

/// `B* 54` for a neighbour.
fn told(profile: &Profile, others: &[Neighbour]) -> String {
    let one = |other: &Neighbour| {
        let star = if other.recursive { "*" } else { "" };
        let name = &profile.functions[other.function].name;
        format!("{name}{star} {}", other.weight)
    };
    others.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_worked_examples_are_those_of_the_page() {
    // function: its time, with descendants, callers, descendants
    let first = [
        ("A", 64, 118, "main 118, C* 46", "B* 54, D 14"),
        ("B", 17, 86, "A 54", "C 69"),
        ("C", 23, 69, "B 69", "A 46"),
        ("D", 14, 14, "A 14", ""),
        ("main", 0, 118, "", "A 118"),
    ];
    let second = [
        ("A", 65, 123, "main 123, C* 29", "B* 44, D 14"),
        ("B", 17, 73, "A 44", "C 56"),
        ("C", 27, 56, "B 56", "A 29"),
        ("D", 14, 14, "A 14", ""),
        ("main", 0, 123, "", "A 123"),
    ];
    for (sequence, expected) in [(SEQUENCE_1, first), (SEQUENCE_2, second)] {
        let profile = profile_of(sequence);
        for (name, own, total, callers, descendants) in expected {
            let detail = of(&profile, name, Rule::Strict);
            assert_eq!((detail.self_weight, detail.total), (own, total), "{name}");
            assert_eq!(told(&profile, &detail.callers), callers, "{name}");
            assert_eq!(told(&profile, &detail.descendants), descendants, "{name}");
        }
    }
}

#[test]
fn the_percentages_are_those_of_the_page() {
    // The page truncates in the first sequence and rounds in the second: 54.23 for 54.237.
    let cases = [
        (SEQUENCE_1, [54.23, 45.76, 11.86, 111.85]),
        (SEQUENCE_2, [52.85, 35.77, 11.38, 100.00]),
    ];
    for (sequence, expected) in cases {
        let profile = profile_of(sequence);
        let a = of(&profile, "A", Rule::Strict);
        let share = |part: u64| part as f64 * 100.0 / a.total as f64;
        let contributions = a.descendants.iter().map(|other| share(other.weight));
        let mut shares = vec![share(a.self_weight)];
        shares.extend(contributions);
        shares.push(shares.iter().sum());
        // The page adds up what it has truncated.
        for ((ours, expected), exact) in shares.iter().zip(expected).zip([0.01, 0.01, 0.01, 0.03]) {
            assert!((ours - expected).abs() < exact, "{ours} {expected}");
        }
    }
}

#[test]
fn the_rule_whole_is_that_of_purify_plus() {
    let profile = profile_of(SEQUENCE_701);
    let whole = of(&profile, "A", Rule::Whole);
    assert_eq!((whole.self_weight, whole.total), (64, 274));
    assert_eq!(told(&profile, &whole.callers), "Main 274, C* 112");
    assert_eq!(told(&profile, &whole.descendants), "B* 242, D 80");
    let strict = of(&profile, "A", Rule::Strict);
    assert_eq!(told(&profile, &strict.callers), "Main 274, C* 112");
    assert_eq!(told(&profile, &strict.descendants), "B* 210, D 80");
}

#[test]
fn a_function_that_calls_itself_is_its_caller_and_its_descendant() {
    // r r 2 and r r x 4: under the inner r are 6, of which it takes 2 itself.
    let profile = profile_of("m;r 1\nm;r;r 2\nm;r;r;x 4\nm;r;r;r;r;x 8\n");
    let r = of(&profile, "r", Rule::Strict);
    assert_eq!((r.self_weight, r.total), (3, 15));
    assert_eq!(told(&profile, &r.callers), "m 15, r* 12");
    assert_eq!(told(&profile, &r.descendants), "r* 12, x 12");
    assert_eq!(r.depths, [(1, 1), (2, 6), (4, 8)]);
    let whole = of(&profile, "r", Rule::Whole);
    assert_eq!(told(&profile, &whole.descendants), "r* 14, x 12");
}

#[test]
fn a_call_counts_once_per_stack_and_a_root_has_no_caller() {
    let profile = profile_of("A;B;A;B;x 5\nA 2\n");
    let a = of(&profile, "A", Rule::Strict);
    assert_eq!((a.total, a.outermost), (7, 7));
    assert_eq!(told(&profile, &a.callers), "B* 5");
    assert_eq!(told(&profile, &a.descendants), "B* 5");
}

#[test]
fn a_path_of_100_000_frames_works() {
    let profile = profile_of(&format!("main{};x 5\n", ";a;b".repeat(50_000)));
    let a = of(&profile, "a", Rule::Strict);
    assert_eq!(told(&profile, &a.callers), "b* 5, main 5");
    assert_eq!(a.depths, [(50_000, 5)]);
}

#[test]
fn golden_details_are_the_same() {
    let mut compared = 0;
    for case in cases("quantify.json") {
        let read_file = |name: &str| std::fs::read_to_string(case.join(name)).unwrap();
        let (stacks, text) = (read_file("stacks.folded"), read_file("quantify.json"));
        let profile = profile_of(&stacks);
        let quantify: serde_json::Value = serde_json::from_str(&text).unwrap();
        for rule in [Rule::Strict, Rule::Whole] {
            for expected in quantify[rule.name()].as_array().unwrap() {
                compared += 1;
                let name = expected["function"].as_str().unwrap();
                let place = format!("{} {name} {}", case.display(), rule.name());
                let ours = of(&profile, name, rule);
                let number = |key: &str| expected[key].as_u64().unwrap();
                assert_eq!(ours.self_weight, number("function_time"), "{place}");
                assert_eq!(ours.total, number("fd_time"), "{place}");
                assert_eq!(ours.recurses(), expected["is_recursive"], "{place}");
                let share = |part: f64| part * 100.0 / ours.total as f64;
                let near = |ours: f64, key: &serde_json::Value| {
                    let expected = key.as_f64().unwrap();
                    assert!((ours - expected).abs() <= expected * 1e-9, "{place}");
                };
                near(share(ours.shown() as f64), &expected["displayed_sum_pct"]);
                let sides = [
                    ("callers", &ours.callers),
                    ("descendants", &ours.descendants),
                ];
                for (key, others) in sides {
                    let mut left: BTreeMap<&str, &Neighbour> = others
                        .iter()
                        .map(|other| (&*profile.functions[other.function].name, other))
                        .collect();
                    for other in expected[key].as_array().unwrap() {
                        let known = left.remove(other["name"].as_str().unwrap()).unwrap();
                        assert_eq!(known.weight, other["time"].as_u64().unwrap(), "{place}");
                        near(share(known.weight as f64), &other["pct"]);
                        if let Some(recursive) = other["recursive"].as_bool() {
                            assert_eq!(known.recursive, recursive, "{place}");
                        }
                    }
                    assert!(left.is_empty(), "{place} {left:?}");
                }
            }
        }
    }
    assert!(compared >= 100, "{compared}");
}

/// Callers and descendants with weight and mark, each stack looked at by itself.
type Sides = [BTreeMap<usize, (u64, bool)>; 2];

fn oracle(stacks: &[(Vec<usize>, u64)], function: usize, rule: Rule) -> Sides {
    let mut sides = Sides::default();
    for (stack, weight) in stacks {
        let leaf = *stack.last().unwrap();
        let mut once = BTreeSet::new();
        for (i, pair) in stack.windows(2).enumerate() {
            let (caller, callee) = (pair[0], pair[1]);
            if callee == function {
                let told = sides[0].entry(caller).or_default();
                told.1 |= stack[..=i].contains(&function);
                if leaf != caller && once.insert((0, caller)) {
                    told.0 += weight;
                }
            }
            if caller == function {
                let told = sides[1].entry(callee).or_default();
                told.1 |= stack[i + 1..].contains(&function);
                let counts = leaf != caller || rule == Rule::Whole;
                if counts && once.insert((1, callee)) {
                    told.0 += weight;
                }
            }
        }
    }
    sides
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_side_equals_a_count_stack_by_stack(
        stacks in vec((vec(0..5usize, 1..14), 1..9u64), 1..16),
        whole in any::<bool>(),
    ) {
        let rule = if whole { Rule::Whole } else { Rule::Strict };
        let mut text = String::new();
        for (stack, weight) in &stacks {
            let names: Vec<String> = stack.iter().map(usize::to_string).collect();
            text.push_str(&format!("{} {weight}\n", names.join(";")));
        }
        let profile = profile_of(&text);
        for (_, known) in profile.functions.enumerate() {
            let function: usize = known.name.parse().unwrap();
            let ours = of(&profile, &known.name, rule);
            let side = |others: &[Neighbour]| -> BTreeMap<usize, (u64, bool)> {
                let name = |id: FunctionId| profile.functions[id].name.parse().unwrap();
                let told = |o: &Neighbour| (name(o.function), (o.weight, o.recursive));
                others.iter().map(told).collect()
            };
            let sides = [side(&ours.callers), side(&ours.descendants)];
            prop_assert_eq!(sides, oracle(&stacks, function, rule));
            let depths: u64 = ours.depths.iter().map(|(_, weight)| weight).sum();
            prop_assert_eq!(depths, ours.total);
            for other in ours.callers.iter().chain(&ours.descendants) {
                prop_assert!(other.weight <= ours.total);
            }
            if !ours.recurses() {
                prop_assert_eq!(ours.shown(), u128::from(ours.total));
            }
        }
    }
}

/// What is found for `text` in these functions.
fn found(profile: &Profile, text: &str) -> Vec<String> {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(profile, &selection, Names::Full);
    let candidates: Vec<FunctionId> = profile.functions.ids().collect();
    match search::find(&subject.naming(), &candidates, text) {
        Found::One(id) => vec![profile.functions[id].name.clone()],
        Found::Several(fitting) => fitting.into_iter().map(|(_, label)| label.text).collect(),
        Found::Nothing(similar) => similar.into_iter().map(|name| format!("~{name}")).collect(),
    }
}

#[test]
fn functions_are_found_by_name_part_or_pattern() {
    let profile =
        profile_of("main;Trie::insert(int);Trie::insert(char);parse;parser;operator[] 1\n");
    let cases: [(&str, &[&str]); 11] = [
        ("main", &["main"]),
        // A whole name goes before a part of a name.
        ("parse", &["parse"]),
        ("parser", &["parser"]),
        ("Trie::insert(int)", &["Trie::insert(int)"]),
        // A short name of two.
        ("Trie::insert", &["Trie::insert(int)", "Trie::insert(char)"]),
        ("char", &["Trie::insert(char)"]),
        ("pars", &["parse", "parser"]),
        ("^pa.*r$", &["parser"]),
        // A part, though it is also a pattern, and not a sound one.
        ("[", &["operator[]"]),
        ("prase", &["~parse", "~parser"]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(found(&profile, text), expected, "{text}");
    }
    // What is told where several fit finds each of them alone.
    for label in found(&profile, "Trie") {
        assert_eq!(found(&profile, &label), [label]);
    }
}

#[test]
fn the_command_reports_what_it_cannot_do() {
    let file = fixture("recursion");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["detail", ".", &file], 2, "5 functions match ."),
        (&["tree", "--root", ".", &file], 2, " 100.00 %  main\n"),
        (&["detail", "mian", &file], 1, "similar names: main"),
        (&["detail", &file, "a"], 1, "proftool detail FUNCTION FILE"),
        (&["detail"], 2, "<FUNCTION>"),
    ];
    for (args, status, message) in cases {
        let output = proftool(args).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(message), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_command_gives_the_golden_outputs() {
    let file = fixture("recursion");
    let cases: [(&str, &[&str]); 6] = [
        ("detail.txt", &["detail", "a"]),
        ("detail.json", &["detail", "a", "--format", "json"]),
        ("detail.csv", &["detail", "a", "--format", "csv"]),
        ("detail-whole.txt", &["detail", "a", "--rule", "whole"]),
        ("tree.csv", &["tree", "--format", "csv"]),
        ("tree-root.txt", &["tree", "--root", "b"]),
    ];
    for (output, args) in cases {
        let args = [args, &[file.as_str()]].concat();
        let answer = proftool(&args).env("COLUMNS", "80").output().unwrap();
        assert!(answer.status.success(), "{args:?}");
        let golden = format!("recursion.{output}");
        assert!(holds(&golden, &answer.stdout), "not as in {golden}");
    }
}

#[test]
fn an_export_can_be_collapsed() {
    let file = fixture("recursion");
    let cases = [
        ("none", "main;a;b;a;b 30"),
        ("direct", "main;c 25"),
        ("conservative", "main;a;b 30"),
        ("full", "main;a 25"),
    ];
    for (degree, line) in cases {
        let args = ["export", "--to", "folded", "--collapse", degree, &file];
        let output = proftool(&args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|other| other == line), "{degree}: {text}");
        let weights = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        assert_eq!(weights.map(|w| w.parse::<u64>().unwrap()).sum::<u64>(), 100);
    }
}

#[test]
fn a_page_says_what_the_line_of_a_caller_leaves_out() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("quantify-callers.folded");
    std::fs::write(&path, SEQUENCE_1).unwrap();
    let sentence = "The line of a caller does not include the self time of its own inner calls.";
    // Of B's 86, A gets 54: not the 32 that it took itself further in.
    for (name, says_so) in [("A", false), ("B", true), ("C", false)] {
        let output = proftool(&["detail", name]).arg(&path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.contains(sentence), says_so, "{text}");
    }
}
