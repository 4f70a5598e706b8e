//! Call trees: folded stacks in, the nodes as an outline out.

use proftool::analysis::tree::{CallTree, Collapse, Reach, Stacks};
use proftool::base::{Event, WeightSum};
use proftool::profile::{Builder, EventId, Filter, Function, Module, Profile, Thread};

use crate::support::profile_of;

/// A line a node: indentation by level, the name, the weight, what ends there, what was cut.
fn outline(profile: &Profile, tree: &CallTree) -> Vec<String> {
    let line = |node: proftool::analysis::tree::Node| {
        let indent = " ".repeat(node.level as usize - 1);
        let name = &profile.functions[node.function].name;
        let mut line = format!("{indent}{name} {} {}", node.weight(), node.in_only);
        if node.cut > 0 {
            line.push_str(&format!(" cut {}", node.cut));
        }
        if node.inlined {
            line.push_str(" inlined");
        }
        line
    };
    tree.nodes.iter().map(line).collect()
}

fn down(profile: &Profile) -> Vec<String> {
    let selection = profile.select(EventId::new(0), &Filter::default());
    outline(
        profile,
        &Stacks::new(profile, &selection).top_down(Collapse::None),
    )
}

fn up(profile: &Profile, reach: Reach) -> Vec<String> {
    let selection = profile.select(EventId::new(0), &Filter::default());
    outline(
        profile,
        &Stacks::new(profile, &selection).bottom_up(Collapse::None, reach),
    )
}

#[test]
fn siblings_come_by_weight_then_by_name() {
    let profile = profile_of("m;b 2\nm;a 2\nm;c 3\nn 9\nm 1\n");
    assert_eq!(
        down(&profile),
        ["n 9 9", "m 8 1", " c 3 3", " a 2 2", " b 2 2"]
    );
}

#[test]
fn without_collapsing_each_call_is_a_node() {
    // Puma's first example
    let profile = profile_of(
        "main;r 1\nmain;r;s 1\nmain;r;r 1\nmain;r;r;s 1\nmain;r;r;r 1\nmain;r;r;r;s 1\n",
    );
    let expected = [
        "main 6 0",
        " r 6 1",
        "  r 4 1",
        "   r 2 1",
        "    s 1 1",
        "   s 1 1",
        "  s 1 1",
    ];
    assert_eq!(down(&profile), expected);
}

#[test]
fn bottom_up_roots_have_self_weights_and_callers_below() {
    let profile = profile_of("m;a;b 3\nm;c;b 4\nb 1\nm;a 2\n");
    let expected = [
        "b 8 1", " c 4 0", "  m 4 4", " a 3 0", "  m 3 3", "a 2 0", " m 2 2",
    ];
    assert_eq!(up(&profile, Reach::default()), expected);
}

#[test]
fn callers_are_followed_as_far_as_asked_and_the_rest_is_counted() {
    let profile = profile_of("m;a;b 3\nm;c;b 4\nb 1\n");
    let reach = Reach { depth: 2, min: 0 };
    assert_eq!(
        up(&profile, reach),
        ["b 8 1", " c 4 0 cut 4", " a 3 0 cut 3"]
    );
    let reach = Reach { depth: 64, min: 4 };
    assert_eq!(
        up(&profile, reach),
        ["b 8 1", " c 4 0", "  m 4 4", " a 3 0 cut 3"]
    );
}

#[test]
fn a_deep_recursion_has_a_tree_in_both_directions() {
    let profile = profile_of(&format!("main{} 5\n", ";f".repeat(100_000)));
    let selection = profile.select(EventId::new(0), &Filter::default());
    let down = Stacks::new(&profile, &selection).top_down(Collapse::None);
    assert_eq!(down.nodes.len(), 100_001);
    let reach = Reach {
        depth: 200_000,
        min: 0,
    };
    assert_eq!(
        Stacks::new(&profile, &selection)
            .bottom_up(Collapse::None, reach)
            .nodes
            .len(),
        100_001
    );
    assert_eq!(
        Stacks::new(&profile, &selection)
            .bottom_up(Collapse::None, Reach::default())
            .nodes
            .len(),
        64
    );
}

#[test]
fn a_function_inlined_and_called_is_one_node_and_not_marked() {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let module = builder.module(Module {
        name: "app".into(),
        path: "/app".into(),
    });
    let thread = builder.thread(Thread::new(1, 1, "app"));
    let [main, a, b] =
        ["main", "a", "b"].map(|name| builder.function(Function::named(name, module)));
    let root = builder.path(None, main, false);
    for (function, inlined, weight) in [(a, true, 3), (a, false, 2), (b, true, 4)] {
        let path = builder.path(Some(root), function, inlined);
        builder.sample(event, thread, path, None, WeightSum::of(weight));
    }
    let profile = builder.finish();
    assert_eq!(down(&profile), ["main 9 0", " a 5 5", " b 4 4 inlined"]);
}
