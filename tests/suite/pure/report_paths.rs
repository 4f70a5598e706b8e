//! The hot paths of the report: their numbers are those of the call tree, and they fit on a screen.

use std::fmt::Write as _;

use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::analysis::tree::{Collapse, NodeId, Stacks};
use proftool::export::Facts;
use proftool::input::folded;
use proftool::profile::{EventId, Filter, Profile};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

use crate::support::laws;
use crate::support::report::shown;

fn stacks() -> impl Strategy<Value = Vec<(Vec<u8>, u64)>> {
    vec((vec(0..6u8, 1..12), 1..1000u64), 1..40)
}

fn profile(stacks: &[(Vec<u8>, u64)]) -> Profile {
    let mut text = String::new();
    for (stack, weight) in stacks {
        let names: Vec<String> = stack.iter().map(|name| format!("f{name}")).collect();
        writeln!(text, "{} {weight}", names.join(";")).unwrap();
    }
    folded::read(text.as_bytes(), &mut |_| {}).unwrap()
}

fn full(profile: &Profile) -> String {
    shown(profile, false, 100, &Facts)
}

proptest! {
    #![proptest_config(laws::cases(64))]

    #[test]
    fn hot_paths_have_the_numbers_of_the_tree(stacks in stacks()) {
        let profile = profile(&stacks);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let owners = Owners::of_profile(&profile, &[]);
        let summary = Summary::of(&profile, &selection, owners, false);
        let all = Stacks::new(&profile, &selection);
        let degree = match all.recurse() {
            true => Collapse::Full,
            false => Collapse::None,
        };
        let tree = all.top_down(degree);
        let weight = |id: NodeId| tree.nodes.at(id).weight();
        let Some(paths) = summary.hot else {
            // A path has at least one call.
            let root = tree.roots().next().unwrap();
            let mut callees = tree.children(root).filter(|&id| tree.nodes.at(id).stub.is_none());
            let heaviest = callees.next().map_or(0, weight);
            prop_assert!(heaviest * 100 < selection.total());
            return Ok(());
        };
        for (id, node) in paths.tree.calls.nodes.enumerate() {
            let origin = tree.nodes.at(paths.origins[id]);
            prop_assert_eq!(node.weight(), origin.weight());
            prop_assert_eq!(node.in_only, origin.in_only);
            prop_assert_eq!(node.function, origin.function);
            prop_assert_eq!(node.level, origin.level);
            let parent = node.parent.map(|parent| paths.origins[parent]);
            prop_assert_eq!(parent, origin.parent);
            // The callees on the paths and the others are all that it has.
            let on_paths: Vec<NodeId> = paths.tree.calls.children(id).collect();
            let callees: Vec<NodeId> = tree
                .children(paths.origins[id])
                .filter(|&id| tree.nodes.at(id).stub.is_none())
                .collect();
            prop_assert_eq!(on_paths.len() + paths.rest[id].callees, callees.len());
            let sum: u64 = on_paths.iter().map(|&id| weight(paths.origins[id])).sum();
            let all: u64 = callees.iter().map(|&id| weight(id)).sum();
            prop_assert_eq!(sum + paths.rest[id].weight, all);
            // The path follows the heaviest.
            if id.index() + 1 < paths.first {
                let next = paths.origins[NodeId::new(id.index() + 1)];
                prop_assert_eq!(Some(weight(next)), callees.iter().map(|&id| weight(id)).max());
            }
        }
        prop_assert!(paths.first > 0);
        let first = paths.tree.calls.nodes.at(NodeId::new(0));
        prop_assert!(first.parent.is_none());
    }

    #[test]
    fn the_first_screen_fits_a_terminal_of_24_lines(stacks in stacks()) {
        for width in [80, 120] {
            let page = shown(&profile(&stacks), true, width, &Facts);
            prop_assert!(page.lines().count() <= 23, "{}", page);
        }
    }
}

#[test]
fn a_hot_path_says_what_is_left_where_it_branches() {
    let text = "main;run;parse;lex 40\nmain;run;parse;fold 20\nmain;run;emit 25\nmain;run;a 5\n\
                main;run;b 4\nmain;run;c 3\nmain 3\n";
    let page = full(&folded::read(text.as_bytes(), &mut |_| {}).unwrap());
    let lines: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("Hot path"))
        .take_while(|line| !line.is_empty())
        .collect();
    let expected = [
        "Hot paths by samples: the heaviest callee at each step",
        "total %  self %  total  other callees  function ↳ calls",
        " 100.00    3.00    100                 main",
        "  97.00    0.00     97    3 (12.00 %)  ↳ run",
        "  60.00    0.00     60    1 (20.00 %)    ├ parse",
        "  40.00   40.00     40                   │ ↳ lex",
        "  25.00   25.00     25                   └ emit",
    ];
    assert_eq!(lines, expected, "{page}");
}

#[test]
fn a_long_path_is_cut_or_folded_but_never_longer_than_ten_lines() {
    let names: Vec<String> = (0..60).map(|level| format!("level{level}")).collect();
    let text = format!("{} 90\n{} 10\n", names.join(";"), names[..30].join(";"));
    let page = full(&folded::read(text.as_bytes(), &mut |_| {}).unwrap());
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("Hot path"))
        .take_while(|line| !line.is_empty());
    assert!(lines.count() <= 12, "{page}");
}

#[test]
fn a_hot_path_does_not_hide_that_its_stacks_are_incomplete() {
    let text = "[truncated];step;work 90\nmain;step 10\n";
    let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let owners = Owners::of_profile(&profile, &["step".to_owned()]);
    let summary = Summary::of(&profile, &selection, owners, false);
    let paths = summary.hot.unwrap();
    let first = paths.tree.calls.nodes.at(NodeId::new(0)).function;
    assert_eq!(profile.functions[first].name, "[truncated]");
}
