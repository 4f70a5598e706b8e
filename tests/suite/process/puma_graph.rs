//! Collapsed stacks merged to graphs: against the guide's words followed stack by stack, and as
//! drawings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proftool::analysis::inclusive;
use proftool::analysis::tree::{Collapse, Stacks};
use proftool::callgraph::CallGraph;
use proftool::input::folded;
use proftool::profile::{EventId, Filter};

use crate::support::cli::proftool;
use crate::support::puma::folds;
use crate::support::{cases, skipped};

/// Caller, callee, whether it is folded.
type Pair = (String, String, bool);

/// The arcs of each stack as it is collapsed, with its weight once for each.
fn expected(text: &str, collapse: Collapse) -> BTreeMap<Pair, u64> {
    let mut arcs = BTreeMap::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let mut at: Vec<&str> = Vec::new();
        let mut taken = BTreeSet::new();
        for function in stack.split(';') {
            let nearest = at.iter().rposition(|&other| other == function);
            let target = nearest.filter(|&place| folds(&at, place, collapse));
            if let Some(caller) = at.last() {
                let (caller, callee) = ((*caller).to_owned(), function.to_owned());
                taken.insert((caller, callee, target.is_some()));
            }
            match target {
                Some(place) => at.truncate(place + 1),
                None => at.push(function),
            }
        }
        for pair in taken {
            *arcs.entry(pair).or_default() += weight.parse::<u64>().unwrap();
        }
    }
    arcs
}

/// Holds the arcs of some stacks against the guide's words, and their sums against the totals.
fn check(text: &str, what: &str) {
    let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let stacks = Stacks::new(&profile, &selection);
    let weights = inclusive::by_function(&profile, &selection);
    let name = |id| profile.functions[id].name.clone();
    for collapse in Collapse::ALL {
        let what = format!("{what} {collapse:?}");
        let arcs = stacks.arcs(collapse);
        let ours: BTreeMap<Pair, u64> = arcs
            .iter()
            .map(|arc| ((name(arc.from), name(arc.to), arc.folded), arc.weight))
            .collect();
        assert_eq!(ours.len(), arcs.len(), "{what}: an arc is there twice");
        assert_eq!(ours, expected(text, collapse), "{what}");
        let mut into = BTreeMap::new();
        for arc in &arcs {
            let least = weights.total[arc.from].min(weights.total[arc.to]);
            assert!(arc.weight <= least, "{what}: {arc:?} passes its functions");
            *into.entry(arc.to).or_insert(0) += arc.weight;
            let recursive = arc.from == arc.to;
            assert!(arc.folded || !recursive || collapse == Collapse::None);
        }
        // Nothing is lost: what is no root is reached over arcs.
        let roots: u64 = stacks.top_down(collapse).roots().count() as u64;
        for function in weights.present() {
            let reached = into.get(&function).copied().unwrap_or(0);
            let root = text
                .lines()
                .filter(|line| line.split([';', ' ']).next() == Some(&name(function)))
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
            assert!(roots > 0 && reached + root.sum::<u64>() >= weights.total[function]);
        }
        if collapse == Collapse::None {
            let graph = CallGraph::of(&profile, &selection);
            let measured = graph.arcs().iter().map(|arc| {
                let pair = (name(arc.from), name(arc.to), false);
                (pair, arc.weight)
            });
            assert_eq!(ours, measured.collect(), "{what}");
        }
    }
}

const EXAMPLE_1: &str =
    "main;r 1\nmain;r;s 1\nmain;r;r 1\nmain;r;r;s 1\nmain;r;r;r 1\nmain;r;r;r;s 1\n";

const EXAMPLE_2: &str = "main;a;b;c;b;a;d;c 1\n";

#[test]
fn arcs_of_golden_stacks_are_those_of_each_stack_collapsed() {
    check(EXAMPLE_1, "the first worked example");
    check(EXAMPLE_2, "the second worked example");
    let mut checked = 0;
    for case in cases("stacks.folded") {
        let text = std::fs::read_to_string(case.join("stacks.folded")).unwrap();
        check(&text, &case.display().to_string());
        checked += 1;
    }
    assert!(checked >= 13, "{checked}");
}

/// Writes stacks to a file and draws them; the lines of boxes and arrows.
fn drawn(file: &str, text: &str, degree: &str) -> (String, Vec<String>) {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    std::fs::write(&path, text).unwrap();
    let mut command = proftool(&["export", "--to", "dot", "--collapse", degree]);
    let output = command.arg(&path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let dot = String::from_utf8(output.stdout).unwrap();
    let shown = |line: &str| {
        // Colours and widths say the weights again.
        let (line, rest) = line.trim().split_once(", ").unwrap_or((line.trim(), ""));
        let dashed = if rest.contains("style=dashed") {
            " dashed"
        } else {
            ""
        };
        format!("{line}{dashed}")
    };
    let lines = dot
        .lines()
        .filter(|line| line.starts_with("  n") && !line.starts_with("  node"));
    let lines = lines.map(shown).collect();
    (dot, lines)
}

#[test]
fn worked_examples_are_drawn_with_recursion_folded() {
    let (_, lines) = drawn("example-1.folded", EXAMPLE_1, "full");
    let expected = [
        "n0 -> n1 [label=\"100.00%\"",
        "n1 -> n1 [label=\"again 66.67%\" dashed",
        "n1 -> n2 [label=\"50.00%\"",
    ];
    assert_eq!(lines[3..], expected);
    let (_, lines) = drawn("example-2.folded", EXAMPLE_2, "full");
    // main a b c d; c goes back to b, b to a, and d calls c.
    let expected = [
        "n0 -> n1 [label=\"100.00%\"",
        "n1 -> n2 [label=\"100.00%\"",
        "n1 -> n4 [label=\"100.00%\"",
        "n2 -> n1 [label=\"again 100.00%\" dashed",
        "n2 -> n3 [label=\"100.00%\"",
        "n3 -> n2 [label=\"again 100.00%\" dashed",
        "n4 -> n3 [label=\"100.00%\"",
    ];
    assert_eq!(lines[5..], expected);
}

#[test]
fn graphviz_reads_the_drawings() {
    let version = Command::new("dot").arg("-V").output();
    if !version.is_ok_and(|output| output.status.success()) {
        skipped("graphviz is not installed");
        return;
    }
    let hostile = "ma\"in\\n;<r>;<r>;{a|b};<r>;\\;ma\"in\\n 5\n";
    for degree in ["none", "direct", "conservative", "full"] {
        let file = format!("graphviz-{degree}.folded");
        for text in [EXAMPLE_1, EXAMPLE_2, hostile] {
            let (dot, lines) = drawn(&file, text, degree);
            let mut graphviz = Command::new("dot")
                .arg("-Tsvg")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = graphviz.stdin.take().unwrap();
            input.write_all(dot.as_bytes()).unwrap();
            drop(input);
            let output = graphviz.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let svg = String::from_utf8(output.stdout).unwrap();
            let count = |class: &str| svg.matches(&format!("class=\"{class}\"")).count();
            let arrows = lines.iter().filter(|line| line.contains(" -> ")).count();
            assert_eq!(count("edge"), arrows);
            assert_eq!(count("node"), lines.len() - arrows);
        }
    }
}
