//! The stack of an interrupt stands on that of what it interrupted, but nothing was called.

use proftool::base::Id;
use proftool::callgraph::CallGraph;
use proftool::export::text;
use proftool::input::folded;
use proftool::profile::{EventId, Filter, FunctionId, Profile};
use proftool::view::{Figures, Names, Subject, cycles, graph};

/// `lock` is interrupted, and the handler locks and unlocks, too.
const STACKS: &str = "\
read;lock 10
read;lock;irq;handle;lock 2
read;unlock;irq;handle;lock;unlock 1
walk;walk 4
";

fn page(profile: &Profile) -> (usize, String) {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject {
        profile,
        selection: &selection,
        names: Names::Short,
        figures: Figures::All,
    };
    let calls = CallGraph::of(profile, &selection);
    let view = graph::arrange(&subject, &calls, &graph::Options::default());
    let found = cycles::arrange(&subject, &calls, &graph::Options::default());
    assert_eq!(found.recursive.len(), 1, "only walk calls itself");
    let mut out = Vec::new();
    let look = text::Options {
        width: 200,
        color: false,
    };
    text::write(&mut out, &view.page(&subject), &look).unwrap();
    let text = String::from_utf8(out).unwrap();
    (view.cycles.members.len(), text)
}

#[test]
fn an_interrupt_forms_no_cycle() {
    let mut profile = folded::read(STACKS.as_bytes(), &mut |_| {}).unwrap();
    let (cycles, text) = page(&profile);
    assert_eq!(cycles, 1, "as calls they would be a cycle");
    assert!(!text.contains("interrupts"), "{text}");

    let is_entry = |&id: &FunctionId| profile.functions[id].name == "irq";
    profile.code.interrupts = profile.functions.ids().filter(is_entry).collect();
    let (cycles, text) = page(&profile);
    assert_eq!(cycles, 0, "{text}");
    let told = "interrupts (not calls): lock → irq (2 samples), unlock → irq (1 sample)";
    assert!(text.contains(told), "{text}");
}
