//! Stacks that were cut: totals as ranges, by hand and in views.

use std::collections::BTreeMap;
use std::path::Path;

use proftool::analysis::cut::{self, AtMost, Hidden, Unknown};
use proftool::analysis::tree::{self, Collapse, Direction, Stacks};
use proftool::callgraph::{CallArc, CallGraph, Cycles};
use proftool::profile::{
    Call, CallKind, EventId, Filter, FunctionCode, FunctionId, FunctionKind, Module, Profile,
    Selection,
};
use serde_json::Value;

use crate::support::cli::{fixture, proftool};
use crate::support::cut::{json, row};
use crate::support::profile_of;

fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

fn id(profile: &Profile, name: &str) -> FunctionId {
    let mut functions = profile.functions.enumerate();
    functions.find(|(_, f)| f.name == name).unwrap().0
}

/// By name what is hidden at most, where anything is; with `?` where it is not known.
fn by_name(profile: &Profile, hidden: &Hidden) -> BTreeMap<String, String> {
    let rows = hidden.at_most.enumerate();
    let rows = rows.filter(|(_, most)| most.weight > 0);
    let text = |most: &AtMost| match most.unknown {
        None => most.weight.to_string(),
        Some(_) => format!("{}?", most.weight),
    };
    rows.map(|(id, most)| (profile.functions[id].name.clone(), text(most)))
        .collect()
}

/// What is hidden at most, as `a 70, main 70?`.
fn hidden_in(profile: &Profile) -> String {
    let hidden = cut::by_function(profile, &all(profile));
    let rows = by_name(profile, &hidden).into_iter();
    let rows: Vec<String> = rows.map(|(name, most)| format!("{name} {most}")).collect();
    rows.join(", ")
}

/// The same of folded stacks, which come without code.
fn hidden(text: &str) -> String {
    hidden_in(&profile_of(text))
}

/// Folded stacks with the code of all functions: these calls and no others, `a>b c~>d` with a
/// pointer from c to d, and indirect calls in the functions that are named alone.
fn with_code(text: &str, code: &str) -> Profile {
    let mut profile = profile_of(text);
    profile.code.is_whole = true;
    let marks: Vec<bool> = profile.functions.iter().map(|f| f.is_cut_mark()).collect();
    let known = |&is_mark: &bool| (!is_mark).then(FunctionCode::default);
    profile.code.functions = marks.iter().map(known).collect::<Vec<_>>().into();
    for item in code.split(' ') {
        let (kind, pair) = match (item.split_once("~>"), item.split_once('>')) {
            (Some(pair), _) => (CallKind::Pointer, pair),
            (None, Some(pair)) => (CallKind::Call, pair),
            (None, None) => {
                let function = id(&profile, item);
                let code = profile.code.functions[function].as_mut().unwrap();
                code.indirect_calls = 1;
                continue;
            }
        };
        let [from, to] = [pair.0, pair.1].map(|name| id(&profile, name));
        let call = Call {
            from,
            to,
            kind,
            sites: 1,
        };
        profile.code.add_calls([call]);
    }
    profile
}

#[test]
fn functions_that_reach_the_cut_function_may_be_missing_callers() {
    // The page of the module draws it.
    let text = "[truncated];f;f;x 70\nmain;a;f;x 20\n[truncated];c 10\nmain;b 5\n";
    let profile = with_code(text, "main>a main>b a>f f>f f>x b>c");
    assert_eq!(hidden_in(&profile), "a 70, b 10, main 80");
    // Without code the calls that samples show are certain; any other is possible.
    assert_eq!(hidden(text), "a 80?, b 80?, c 70?, f 10?, main 80?, x 10?");
    assert_eq!(hidden("[truncated];f;x 7\nmain;f;f 1\n"), "main 7");
    // The callers of a stack that leads to no code are as unknown as those of a cut one.
    assert_eq!(hidden("[broken stack];f;x 7\nmain;f;f 1\n"), "main 7");
}

#[test]
fn a_sample_counts_once_however_many_paths_lead_to_it() {
    // main ─▶ f ⟲ ─▶ g ⟲, and main ─▶ g: two ways to g.
    let text = "[truncated];g;g 40\n[truncated];f;f;g 5\nmain;f;g 1\nmain;g 1\n";
    let code = "main>f main>g f>f f>g g>g";
    // f may be outside of the 40; its own 5 have it.
    assert_eq!(hidden_in(&with_code(text, code)), "f 40, main 45");
}

#[test]
fn a_function_between_two_others_may_be_in_the_gap_between_them() {
    // main ─▶ parse ─▶ lex, main ─▶ draw, main ─▶ lex by a pointer: draw does not lead to lex, and
    // nothing that main calls leads to main.
    let text = "main;[frames missing];lex 20\nmain;parse;lex 5\nmain;draw 3\nlex 2\n";
    let code = with_code(text, "main>parse main>draw parse>lex");
    assert_eq!(hidden_in(&code), "parse 20");
    // A stack with two gaps counts once, and so does one that is cut, too.
    let text = "a;[frames missing];c;[frames missing];e 7\na;b;c;d;e 1\nd;b 1\n";
    assert_eq!(
        hidden_in(&with_code(text, "a>b b>c c>d d>e d>b")),
        "b 7, d 7"
    );
    let text = "[truncated];b;[frames missing];d 4\na;b;c;d 1\na;c 1\n";
    assert_eq!(
        hidden_in(&with_code(text, "a>b b>c c>d a>c c>b")),
        "a 4, c 4"
    );
}

#[test]
fn a_member_that_is_not_on_a_truncated_stack_may_be_missing_from_it() {
    // even ⇄ odd, and even calls itself: deep down there may be nothing but even.
    let text = "[truncated];even;even 9\n[truncated];odd;even 4\nmain;even;odd;even;even 1\n";
    assert_eq!(hidden(text), "main 13, odd 9");
}

#[test]
fn an_indirect_call_leads_to_functions_whose_address_is_taken() {
    let text = "[truncated];f;x 7\nmain;a 1\nmain;b 1\nmain;c 1\n";
    let code = |more: &str| with_code(text, &format!("main>a main>b main>c f>f f>x {more}"));
    // Nobody can call f but f itself: then a thread begins in it, or the like.
    assert_eq!(hidden_in(&code("a")), "");
    // b takes its address, which a may have got; c calls nothing.
    assert_eq!(hidden_in(&code("a b~>f")), "a 7?, main 7?");
    // The one who takes the address makes no call.
    assert_eq!(hidden_in(&code("b~>f")), "");
    // It need not be f itself.
    assert_eq!(hidden_in(&code("a c~>b b>f")), "a 7?, b 7, main 7");
    // An address in the data, or a name by which others find it, will do as well.
    for how in [
        |code: &mut FunctionCode| code.pointers_in_data = 1,
        |code: &mut FunctionCode| code.can_be_found = true,
    ] {
        let mut profile = code("a");
        let f = id(&profile, "f");
        how(profile.code.functions[f].as_mut().unwrap());
        assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    }
}

#[test]
fn a_jump_through_a_table_of_a_switch_is_no_call() {
    let text = "[truncated];f;x 7\nmain;a 1\n";
    let mut profile = with_code(text, "main>a f>f f>x main~>f");
    let a = id(&profile, "a");
    let jumps = |profile: &mut Profile, jumps, switches| {
        let code = profile.code.functions[a].as_mut().unwrap();
        (code.indirect_jumps, code.switch_jumps) = (jumps, switches);
    };
    jumps(&mut profile, 2, 2);
    assert_eq!(hidden_in(&profile), "");
    jumps(&mut profile, 2, 1);
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
}

#[test]
fn a_function_that_picks_others_calls_those_whose_address_it_takes() {
    let text = "[truncated];f;x 7\nmain;pick 1\nmain;c 1\n";
    let mut profile = with_code(text, "main>pick main>c f>f f>x pick~>f");
    assert_eq!(hidden_in(&profile), "");
    let pick = id(&profile, "pick");
    profile.code.functions[pick].as_mut().unwrap().picks = true;
    assert_eq!(hidden_in(&profile), "main 7, pick 7");
}

#[test]
fn only_start_up_code_has_the_address_that_the_entry_takes() {
    let text = "[truncated];f;x 7\n_start;libc;main 1\n_start;libc;exit;hook 1\nmain;log 1\n";
    let code =
        "_start>libc libc>exit libc exit>hook exit main>log log>exit _start~>main main>f f>f f>x";
    let entered = |text: &str| {
        let mut profile = with_code(text, code);
        let start = id(&profile, "_start");
        profile.code.functions[start].as_mut().unwrap().is_entry = true;
        profile
    };
    // log and exit make indirect calls, but others than start-up code call them.
    assert_eq!(hidden_in(&entered(text)), "_start 7, libc 7, main 7");
    // Where no stack shows it, libc may call main all the same.
    let text = text.replace("_start;libc;main", "main");
    assert_eq!(hidden_in(&entered(&text)), "_start 7?, libc 7?, main 7");
}

#[test]
fn code_that_was_not_read_may_call_anything_of_its_file_and_what_has_an_address() {
    let text = "[truncated];f;x 7\nmain;a 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>a main>b f>f f>x");
    let a = id(&profile, "a");
    profile.code.functions[a] = None;
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    // In another file it needs an address to call.
    let module = profile.modules.push(Module {
        name: "b".into(),
        path: "b".into(),
    });
    profile.functions[a].module = module;
    assert_eq!(hidden_in(&profile), "");
    let f = id(&profile, "f");
    profile.code.functions[f].as_mut().unwrap().pointers_in_data = 1;
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    // Where only the calls between sampled functions were read, nothing is certain.
    profile.code.is_whole = false;
    assert_eq!(hidden_in(&profile), "a 7?, b 7?, main 7?");
    // What is only a name here is code that was not read as well.
    profile.code.is_whole = true;
    let code = FunctionCode {
        imported: true,
        ..FunctionCode::default()
    };
    profile.code.functions[a] = Some(code);
    let hidden = cut::by_function(&profile, &all(&profile));
    assert_eq!(hidden.at_most[a].unknown, Some(Unknown::Code));
}

#[test]
fn an_inlined_copy_counts_as_read_with_the_function_around_it() {
    let text = "[truncated];f;x 7\nmain;a;copy 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>a main>b f>f f>x main~>f");
    let [a, copy] = ["a", "copy"].map(|name| id(&profile, name));
    profile.code.functions[copy] = None;
    profile.code.add_calls([Call {
        from: a,
        to: copy,
        kind: CallKind::Inlined,
        sites: 1,
    }]);
    assert_eq!(hidden_in(&profile), "");
    profile.code.functions[a].as_mut().unwrap().indirect_calls = 1;
    assert_eq!(hidden_in(&profile), "a 7?, copy 7?, main 7?");
}

#[test]
fn the_kernel_calls_nothing_of_a_program_and_can_be_entered_anywhere() {
    let text = "[truncated];f;x 7\nmain;f;k 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>b main>f f>f f>x main~>f");
    let k = id(&profile, "k");
    profile.code.functions[k] = None;
    let kernel = profile.modules.push(Module {
        name: "[kernel]".into(),
        path: "[kernel]".into(),
    });
    profile.functions[k].module = kernel;
    profile.code.add_kernel(kernel);
    assert_eq!(hidden_in(&profile), "main 7");
    let f = id(&profile, "f");
    profile.functions[f].module = kernel;
    assert_eq!(hidden_in(&profile), "b 7?, k 7?, main 7");
}

#[test]
fn marks_have_no_cycle_and_no_range() {
    let profile = profile_of(&std::fs::read_to_string(fixture("cut")).unwrap());
    let selection = all(&profile);
    let graph = CallGraph::of(&profile, &selection);
    let cycles = Cycles::find(&graph, CallArc::is_call);
    let hidden = cut::by_function(&profile, &selection);
    let marks = profile.functions.enumerate();
    let marks: Vec<FunctionId> = marks
        .filter(|(_, function)| function.kind == FunctionKind::Mark)
        .map(|(id, _)| id)
        .collect();
    assert_eq!(marks.len(), 2);
    for mark in marks {
        assert_eq!(cycles.of()[mark], None);
        assert_eq!(hidden.at_most[mark], AtMost::default());
        assert_eq!(graph.callers(mark).len(), 0);
    }
    let even = cycles.of()[id(&profile, "even")].unwrap();
    assert_eq!(cycles.members()[even].len(), 2);
}

#[test]
fn very_many_cut_cycles_are_merged_and_no_bound_is_too_small() {
    // main calls all of f0 … f99, each of which calls itself; a0 calls f0 and so on.
    let mut text = String::new();
    for i in 0..100 {
        let weight = 1000 - i;
        text += &format!("[truncated];f{i};f{i} {weight}\nmain;a{i};f{i};f{i} 1\n");
    }
    let mut code = String::from("main>a0");
    for i in 0..100 {
        code += &format!(" main>a{i} a{i}>f{i} f{i}>f{i}");
    }
    let profile = with_code(&text, &code);
    let hidden = cut::by_function(&profile, &all(&profile));
    let all: u64 = (0..100).map(|i| 1000 - i).sum();
    let most = |name: String| hidden.at_most[id(&profile, &name)].known().unwrap();
    assert_eq!(most("main".into()), all);
    // The heaviest are told apart.
    for i in 0..63 {
        assert_eq!(most(format!("a{i}")), 1000 - i);
        assert_eq!(most(format!("f{i}")), 0);
    }
    let others: u64 = (63..100).map(|i| 1000 - i).sum();
    for i in 63..100 {
        assert_eq!(most(format!("a{i}")), others);
        assert_eq!(most(format!("f{i}")), others - (1000 - i));
    }
}

#[test]
fn very_many_sets_of_gaps_are_merged_and_no_bound_is_too_small() {
    // Each of 2^13 - 1 stacks has a gap outside of some of g0 … g12.
    let mut text = String::from("main;a;g0 1\nmain;b;g12 1\n");
    for set in 1..1u32 << 13 {
        let gaps = (0..13).filter(|i| set >> i & 1 != 0);
        let stack: String = gaps.map(|i| format!(";[frames missing];g{i}")).collect();
        text += &format!("main{stack} 1\n");
    }
    let profile = with_code(&text, "main>a a>g0 main>b b>g12");
    let hidden = cut::by_function(&profile, &all(&profile));
    let most = |name: &str| hidden.at_most[id(&profile, name)].weight;
    // a can be in the gap between main and g0, which is outermost in every other stack.
    // b only between main and g12, where g12 is the only one.
    for (name, least) in [("a", 1 << 12), ("b", 1)] {
        assert!(
            (least..1 << 13).contains(&most(name)),
            "{name} {}",
            most(name)
        );
    }
    assert_eq!(most("main"), 0);
}

#[test]
fn a_stack_of_100_000_frames_works() {
    let text = format!("[truncated]{} 7\nmain;a;b 1\n", ";a;b".repeat(50_000));
    assert_eq!(hidden(&text), "main 7");
}

/// Where a function's total lies, by each view: at least, at most, and the limit where that is not
/// known.
fn ranges(file: &str, name: &str) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let range = |row: &Value| {
        let figure = |key: &str| row[key].as_f64().map(|figure| figure as u64);
        let unknown = [
            figure("total_limit").is_some(),
            row["total_max_reason"].is_string(),
        ];
        assert_eq!(unknown, [figure("total_max").is_none(); 2], "{row}");
        (
            figure("total").unwrap(),
            figure("total_max"),
            figure("total_limit"),
        )
    };
    vec![
        range(row(&json(&["flat", file]), "functions", name)),
        range(row(&json(&["report", file]), "by_total", name)),
        range(row(&json(&["graph", file]), "functions", name)),
        // What is left out of the listing was there all the same.
        range(row(
            &json(&["graph", "-k", "main/even", file]),
            "functions",
            name,
        )),
        range(&json(&["detail", name, file])["function"]),
    ]
}

#[test]
fn all_views_show_the_same_range() {
    // Nothing shows whether main leads to c, in which a stack is cut.
    let file = fixture("cut");
    assert_eq!(ranges(&file, "main"), [(26, None, Some(141)); 5]);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    std::fs::create_dir_all(&directory).unwrap();
    let known = directory.join("known.folded");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&known, text.replace("main;b 5", "main;b;c 5")).unwrap();
    let known = known.to_str().unwrap();
    assert_eq!(ranges(known, "main"), [(26, Some(141), None); 5]);
    // main stands outermost wherever it stands.
    let tree = json(&["tree", known]);
    let main = row(&tree, "roots", "main");
    assert_eq!(
        (main["direct"].as_u64(), main["total_max"].as_u64()),
        (Some(26), Some(141))
    );
    // Estimates have no ranges.
    let graph = json(&["graph", "--model", "propagated", &file]);
    assert!(row(&graph, "functions", "main")["total_max"].is_null());
    let cycles = json(&["cycles", &file]);
    let cut = &cycles["cycles"][0]["cut_inside"];
    assert_eq!(
        (cut["samples"].as_u64(), cut["weight"].as_u64()),
        (Some(35), Some(35))
    );
    let cut = &row(&cycles, "recursive", "f")["cut_inside"];
    assert_eq!(cut["samples"], 70);
}

#[test]
fn a_range_is_shown_only_where_there_is_one() {
    for command in ["flat", "report --full", "graph", "tree", "detail main"] {
        let text = |name: &str, ranges: &[&'static str]| {
            let file = fixture(name);
            let words = command.split(' ').chain(ranges.iter().copied());
            let args: Vec<&str> = words.chain([file.as_str()]).collect();
            let output = proftool(&args).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(text("cut", &["--ranges"]).contains("at most"), "{command}");
        // Of one function it is said in any case.
        if command != "detail main" {
            assert!(!text("cut", &[]).contains("at most"), "{command}");
        }
        assert!(
            !text("recursion", &["--ranges"]).contains("at most"),
            "{command}"
        );
    }
}

/// A node's upper bound has the doubt of what limits it: of its function, or of one above it.
#[test]
fn a_node_is_known_to_reach_its_bound_only_if_its_functions_are() {
    // Nothing is known of what x and y call. All incomplete stacks lack a caller that may be main; x is one
    // only if it calls f.
    let text = "main;x;y 10\nmain;f 5\n[truncated];f 30\n";
    let profile = with_code(text, "main>x main>f main~>f x>y x");
    let selection = all(&profile);
    let hidden = cut::by_function(&profile, &selection);
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    let at_most = tree::at_most(&profile, &selection, &tree, Direction::TopDown);
    let node = |name: &str| {
        let function = id(&profile, name);
        let mut nodes = tree.nodes.enumerate();
        let (node, _) = nodes.find(|(_, node)| node.function == function).unwrap();
        (at_most[node].weight, at_most[node].unknown.is_some())
    };
    let of = |name: &str| hidden.at_most[id(&profile, name)];
    assert_eq!((of("main").weight, of("main").unknown), (30, None));
    assert_eq!(
        (of("x").weight, of("x").unknown),
        (30, Some(Unknown::IndirectCall))
    );
    assert_eq!(node("main"), (45, false));
    assert_eq!(node("x"), (40, true));
}
