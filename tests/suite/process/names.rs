//! What functions are called on pages, whose code they are, and which calls of others are one line.

use std::collections::BTreeSet;

use proftool::analysis::flat::Summary;
use proftool::analysis::owners::{Charged, OwnerKind, Owners, scheduled};
use proftool::analysis::{cycles, graph};
use proftool::base::{Event, Language, WeightSum};
use proftool::export::Facts;
use proftool::export::shown::Shown;
use proftool::export::text::{self, Options};
use proftool::input::folded;
use proftool::names::search::{self, Found};
use proftool::names::{display_width, of_text};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionId, FunctionKind, Line, Module, Profile, Selection,
    Thread,
};
use proftool::view::table::Call;
use proftool::view::{Names, Subject, flat};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select as of_slice;

use crate::support::cli::proftool;

fn read(stacks: &str) -> Profile {
    folded::read(stacks.as_bytes(), &mut |_| {}).unwrap()
}

fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

fn subject<'a>(profile: &'a Profile, selection: &'a Selection) -> Subject<'a> {
    Subject::new(profile, selection, Names::Short)
}

fn labels(profile: &Profile) -> Vec<String> {
    let selection = all(profile);
    let labels = subject(profile, &selection).labels(profile.functions.ids());
    let ids = profile.functions.ids();
    ids.map(|id| labels.of(id).to_owned()).collect()
}

#[test]
fn names_get_the_arguments_that_tell_them_apart() {
    let profile = read(
        "de::from_str::<serde_json::Value> 1\nde::from_str::<jsn::Ev> 1\nde::to_str::<jsn::Ev> 1\n\
         <a::Item as core::fmt::Debug>::fmt 1\n<a::Item as core::fmt::Display>::fmt 1\n\
         shop::weigh(int) 1\nshop::weigh(int, long) 1\n",
    );
    let expected = [
        "de::from_str::<Value>",
        "de::from_str::<Ev>",
        "de::to_str",
        "<Item as Debug>::fmt",
        "<Item as Display>::fmt",
        "shop::weigh(int)",
        "shop::weigh(int, long)",
    ];
    assert_eq!(labels(&profile), expected);
}

/// A profile of functions with these names, their lines, and what the source calls them.
fn declared(functions: &[(&str, u32, &str)]) -> Profile {
    declared_in("/home/me/par/src/par.rs", functions)
}

fn declared_in(file: &str, functions: &[(&str, u32, &str)]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let module = builder.module(Module {
        name: "par".into(),
        path: "/home/me/par/target/par".into(),
    });
    let thread = builder.thread(Thread::new(1, 1, "par"));
    for (index, &(name, line, source_name)) in functions.iter().enumerate() {
        let function = builder.function(Function {
            language: of_text(name),
            name: name.into(),
            linkage_name: None,
            declared_at: Some(Box::new(Line {
                file: file.into(),
                line,
            })),
            module,
            address: Some(0x1000 + index as u64),
            kind: FunctionKind::Named,
        });
        if !source_name.is_empty() {
            builder.source_name(function, source_name);
        }
        let path = builder.path(None, function, false);
        builder.sample(event, thread, path, None, WeightSum::of(1));
    }
    builder.directory(module, "/home/me/par");
    builder.finish()
}

#[test]
fn functions_without_a_name_are_called_by_what_they_are_and_where() {
    let profile = declared(&[
        ("par::price::{{closure}}", 3, "{async_fn#0}"),
        ("par::main::{{closure}}", 9, "{async_block#0}"),
        ("par::main::{{closure}}", 27, "{closure#0}"),
        ("par::run::{{closure}}", 30, "{closure#0}"),
        ("par::run::{{closure}}", 30, "{closure#1}"),
        ("run()::{lambda(int)#1}::operator()(int) const", 5, ""),
        ("shop::prices(Frame*) [clone .actor]", 7, ""),
        (
            "tokio::task::raw::poll",
            8,
            "poll<par::serve::{async_fn_env#0}, alloc::sync::Arc<tokio::Handle>>",
        ),
    ]);
    let expected = [
        "async par::price",
        "par::main::{async block par.rs:9}",
        "par::main::{closure par.rs:27}",
        "par::run::{closure 0 par.rs:30}",
        "par::run::{closure 1 par.rs:30}",
        "run::{lambda par.rs:5}",
        "coroutine shop::prices",
        "tokio::task::raw::poll::<async par::serve>",
    ];
    assert_eq!(labels(&profile), expected);
}

#[test]
fn code_of_the_workspace_is_the_projects_and_that_of_a_registry_is_not() {
    let mut profile = declared(&[("par::run", 3, ""), ("mio::poll", 4, ""), ("f", 5, "")]);
    let files = [
        "/home/me/par/src/par.rs",
        "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/mio-1.0.3/src/poll.rs",
        "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ops.rs",
    ];
    for (function, file) in profile.functions.iter_mut().zip(files) {
        function.declared_at = Some(Box::new(Line {
            file: file.into(),
            line: 1,
        }));
    }
    let owners = |own: &[String]| -> Vec<(String, OwnerKind)> {
        let owners = Owners::of_profile(&profile, own);
        let ids = profile.functions.ids();
        ids.map(|id| (owners.of(id).name.clone(), owners.of(id).kind))
            .collect()
    };
    let kinds = [OwnerKind::Project, OwnerKind::Library, OwnerKind::Standard];
    let expected = ["par", "mio", "core"]
        .map(String::from)
        .into_iter()
        .zip(kinds);
    assert_eq!(owners(&[]), expected.collect::<Vec<_>>());
    let of_mio = owners(&["mio".into()]);
    assert_eq!(of_mio[0].1, OwnerKind::Library);
    assert_eq!(of_mio[1].1, OwnerKind::Project);
}

#[test]
fn a_program_of_a_package_is_a_crate_of_its_own() {
    // Its library has the name of the package's directory.
    let functions = [
        ("serve::main", 3, ""),
        ("<serve::Item as fmt::Display>::fmt", 4, ""),
        ("shop::price", 5, ""),
    ];
    let profile = declared(&functions);
    let owners = Owners::of_profile(&profile, &[]);
    let names: Vec<&str> = profile
        .functions
        .ids()
        .map(|id| owners.of(id).name.as_str())
        .collect();
    assert_eq!(names, ["serve", "serve", "par"]);
    let mut kinds = profile.functions.ids().map(|id| owners.of(id).kind);
    assert!(kinds.all(|kind| kind == OwnerKind::Project));
}

#[test]
fn a_program_of_a_package_is_a_crate_of_its_own_where_no_sample_has_main() {
    let owner = |file: &str| {
        let profile = declared_in(file, &[("load_test::price", 3, "")]);
        let owners = Owners::of_profile(&profile, &[]);
        (
            owners.of(FunctionId::new(0)).name.clone(),
            owners.of(FunctionId::new(0)).kind,
        )
    };
    for (file, name) in [
        ("/home/me/par/src/bin/load-test.rs", "load_test"),
        ("/home/me/par/src/bin/load-test/price.rs", "load_test"),
        ("/home/me/par/examples/load_test.rs", "load_test"),
        ("/home/me/par/src/bin/other.rs", "par"),
        ("/home/me/par/src/load_test.rs", "par"),
    ] {
        assert_eq!(owner(file), (name.to_owned(), OwnerKind::Project), "{file}");
    }
}

fn file(name: &str, stacks: &str) -> String {
    let path = std::env::temp_dir().join(format!("proftool-{}-{name}.folded", std::process::id()));
    std::fs::write(&path, stacks).unwrap();
    path.to_str().unwrap().to_owned()
}

fn output(args: &[&str]) -> String {
    let output = proftool(args).env("COLUMNS", "160").output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn calls_of_libraries_are_one_line_and_own_code_is_shown() {
    let runtime = "std::rt::lang_start;app::main;tokio::run;tokio::worker;tokio::task;tokio::poll";
    let stacks = format!("{runtime};app::handler;app::parse 90\n{runtime};app::handler 10\n");
    let path = file("folds", &stacks);
    let tree = output(&["tree", &path]);
    assert!(tree.contains("⋯ 4 frames: tokio → tokio::poll"), "{tree}");
    assert!(tree.contains("app::handler") && tree.contains("app::parse"));
    assert!(!tree.contains("tokio::worker"), "{tree}");
    let unfolded = output(&["tree", &path, "--unfold"]);
    assert!(unfolded.contains("tokio::worker") && !unfolded.contains('⋯'));
}

/// Each call has nearly the weight of the one before, and the last far less than the first.
#[test]
fn a_chain_ends_where_its_weight_is_not_that_of_its_first_call() {
    let mut stacks = String::from("app::main;app::parse 1000\n");
    let mut stack = String::from("app::main");
    for number in 0..8 {
        stack.push_str(&format!(";lib::f{number}"));
        stacks.push_str(&format!("{stack} 4\n"));
    }
    stacks.push_str(&format!("{stack} 968\n"));
    let tree = output(&["tree", &file("drift", &stacks), "--min", "1"]);
    for last in ["lib::f2", "lib::f5"] {
        assert!(
            tree.contains(&format!("⋯ 3 frames: lib → {last}")),
            "{tree}"
        );
    }
}

#[test]
fn the_heaviest_function_of_the_project_is_shown_where_lines_are_few() {
    let mut stacks = String::from("app::main;lib::a;lib::b;app::small 5\n");
    for place in 0..40 {
        stacks.push_str(&format!("app::main;lib::f{place} 30\n"));
    }
    let tree = output(&["tree", &file("heaviest", &stacks), "--limit", "5"]);
    assert!(tree.contains("app::small"), "{tree}");
}

#[test]
fn a_label_is_a_pattern_for_its_function_alone() {
    let path = file("patterns", "main;f::<a::B> 3\nmain;f::<a::C> 4\n");
    let focused = output(&["flat", &path, "--focus", "f::<B>"]);
    assert!(focused.starts_with("3 samples"), "{focused}");
    let shortened = output(&["detail", "…::<C>", &path]);
    assert!(shortened.contains("f::<C>"), "{shortened}");
    // Of several that a page shows alike, filters and `detail` take the same one.
    let several = output(&["flat", &path, "--focus", "f…>"]);
    assert!(several.starts_with("4 samples"), "{several}");
}

/// The names in the last column of the table of functions that call themselves, as a page shows them.
fn recursive(file: &str, width: usize) -> Vec<String> {
    let output = proftool(&["cycles", file])
        .env("COLUMNS", width.to_string())
        .output()
        .unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let mut lines = page
        .lines()
        .skip_while(|line| !line.ends_with("  function"));
    let column = lines.next().unwrap().rfind("function").unwrap();
    let rows = lines.take_while(|line| !line.is_empty() && line.starts_with(' '));
    rows.map(|line| line.chars().skip(column).collect())
        .collect()
}

#[test]
fn a_shortened_name_with_the_marks_behind_it_is_accepted() {
    let others = (0..130).map(|i| format!("main;other_{i} 9000000\n"));
    let names = ["into_destination", "as_operand", "as_call_operand"]
        .map(|it| format!("rustc_mir_build::builder::expr::Builder::{it}"));
    let chain = names.each_ref().map(|it| format!("{it};{it}")).join(";");
    let stacks = others.chain([format!("main;{chain};{} 2000000\n", names[0])]);
    let path = file("marks", &stacks.collect::<String>());
    for width in [40, 60, 80, 100, 160] {
        let shown = recursive(&path, width);
        assert_eq!(shown.len(), names.len(), "{width}: {shown:?}");
        let mut found = BTreeSet::new();
        for label in &shown {
            let detail = output(&["detail", label, &path]);
            let title = detail.lines().nth(2).unwrap_or_default().to_owned();
            assert!(names.contains(&title), "{width}: {label}: {detail}");
            found.insert(title);
            // Nor is a part of the marks left in the name where they are taken off by hand.
            let name = label.split(" <").next().unwrap();
            let name = name.strip_suffix(" (…)").unwrap_or(name);
            assert!(!name.ends_with(['>', ']', ' ']), "{width}: {label}");
            assert!(!name.ends_with(" …"), "{width}: {label}");
        }
        assert_eq!(found.len(), names.len(), "{width}: {shown:?}");
    }
}

#[test]
fn a_module_with_brackets_in_its_name_gets_no_more_of_them() {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let thread = builder.thread(Thread::new(1, 1, "par"));
    for module in ["par", "libc.so.6", "[kernel]"] {
        let module = builder.module(Module {
            name: module.into(),
            path: module.into(),
        });
        let function = builder.function(Function {
            name: "futex_wait".into(),
            linkage_name: None,
            declared_at: None,
            module,
            address: Some(0x1000),
            kind: FunctionKind::Named,
            language: Language::Unknown,
        });
        let path = builder.path(None, function, false);
        builder.sample(event, thread, path, None, WeightSum::of(1));
    }
    let profile = builder.finish();
    let labels = labels(&profile);
    assert_eq!(
        labels[1..],
        ["futex_wait [libc.so.6]", "futex_wait [kernel]"]
    );
    let selection = all(&profile);
    let ids: Vec<FunctionId> = profile.functions.ids().collect();
    let found = search::find(&subject(&profile, &selection).naming(), &ids, &labels[2]);
    assert_eq!(found, Found::One(ids[2]));
}

#[test]
fn the_symbol_of_a_clone_names_its_function() {
    let functions = [
        ("scan", 3, ""),
        ("scan.cold.worker", 9, ""),
        ("rescan", 12, ""),
    ];
    let scan = Found::One(FunctionId::new(0));
    for symbol in [
        "scan.constprop.0",
        "scan.isra.0.cold",
        "scan.part.0",
        "scan.lto_priv.12",
        "scan.constprop.0.isra.0 (inferred)",
    ] {
        assert_eq!(found(&functions, symbol), scan, "{symbol}");
    }
    // What is called so itself comes first, and any other ending is a part of the name.
    let worker = Found::One(FunctionId::new(1));
    assert_eq!(found(&functions, "scan.cold"), worker);
    for symbol in ["scan.hot", ".constprop.0", "scan.constprop.x"] {
        assert!(
            matches!(found(&functions, symbol), Found::Nothing(_)),
            "{symbol}"
        );
    }
}

/// Of functions declared in these lines, the one that is found for a text.
fn found(functions: &[(&str, u32, &str)], text: &str) -> Found {
    let profile = declared(functions);
    let selection = all(&profile);
    let ids: Vec<FunctionId> = profile.functions.ids().collect();
    search::find(&subject(&profile, &selection).naming(), &ids, text)
}

#[test]
fn a_label_is_accepted_where_less_of_it_is_enough() {
    let functions = [
        ("par::step(int)", 3, ""),
        ("par::step(int)", 9, ""),
        ("lib::of::<a::Item>", 12, ""),
        ("lib::of::<b::Item>", 14, ""),
        ("lib::of::<u8>", 16, ""),
    ];
    let whole = declared(&functions);
    let labels = labels(&whole);
    assert_eq!(labels[0], "par::step (par.rs:3)");
    let profile = declared(&functions[..1]);
    assert_eq!(self::labels(&profile), ["par::step"]);
    for (number, (function, label)) in functions.iter().zip(&labels).enumerate() {
        let only = [*function];
        assert_eq!(
            found(&only, label),
            Found::One(FunctionId::new(0)),
            "{label}"
        );
        // Of all of them, it is the same one.
        let expected = Found::One(FunctionId::new(number));
        assert_eq!(found(&functions, label), expected, "{label}");
        let start = label.rsplit_once("::").unwrap().1;
        let shortened = format!("…{start}");
        assert_eq!(
            found(&only, &shortened),
            Found::One(FunctionId::new(0)),
            "{shortened}"
        );
    }
    let marked = format!("{} (inferred)", labels[0]);
    assert_eq!(
        found(&functions[..1], &marked),
        Found::One(FunctionId::new(0))
    );
    // What is known of the function is not what the label says.
    for text in [
        "par::step (par.rs:4)",
        "par::step [libpar.so]",
        "lib::of::<u16>",
    ] {
        assert!(
            matches!(found(&functions[..1], text), Found::Nothing(_)),
            "{text}"
        );
    }
    assert!(matches!(found(&functions, "par::step"), Found::Several(_)));
}

#[test]
fn a_cycle_through_a_scheduler_is_told_from_recursion() {
    let stacks = "app::main;rayon_core::join;app::task;rayon_core::join;app::task 5\n\
         app::main;app::even;app::odd;app::even 4\n";
    let profile = read(stacks);
    let selection = all(&profile);
    let summary = cycles::Summary::of(&profile, &selection, &graph::Options::default());
    let owners = Owners::of_profile(&profile, &[]);
    let found = scheduled(&summary.graph, &owners);
    let lines: Vec<bool> = summary
        .graph
        .cycle_order
        .iter()
        .map(|&id| found[id].is_some())
        .collect();
    assert_eq!(lines, [true, false]);
    let page = output(&["cycles", &file("scheduler", stacks)]);
    let line = "through the scheduler of rayon_core; of the project: app::task";
    assert!(page.contains(line), "{page}");
    assert!(page.contains("removing app::even → app::odd"), "{page}");
}

fn select(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    of_slice(words)
}

/// Names as compilers make them.
fn name() -> impl Strategy<Value = String> {
    let word = select(&["a", "bc", "long_segment_a", "long_segment_b", "Vec", "poll"]);
    let argument = select(&[
        "u8",
        "a::B<c::D>",
        "std::allocator<int>",
        "{closure_env#0}",
        "&str",
    ]);
    let arguments = vec(argument, 1..3).prop_map(|all| all.join(", "));
    let segment = (word, prop::option::of(arguments));
    let segment = segment.prop_map(|(word, arguments)| match arguments {
        Some(arguments) => format!("{word}<{arguments}>"),
        None => word.to_owned(),
    });
    (vec(segment, 1..6), 0usize..4).prop_map(|(segments, kind)| {
        let path = segments.join("::");
        match kind {
            0 => format!("void {path}(int, a::B const&)"),
            1 => format!("<{path} as core::fmt::Debug>::fmt"),
            2 => format!("{path}::{{{{closure}}}}"),
            _ => path,
        }
    })
}

/// The names in the last column of a page of `flat`.
fn printed(profile: &Profile, selection: &Selection, width: usize) -> Vec<(FunctionId, String)> {
    let subject = subject(profile, selection);
    let summary = Summary::of(profile, selection);
    let view = flat::arrange(&subject, &summary, &flat::Options::default());
    let mut out = Vec::new();
    let options = Options {
        width,
        color: false,
    };
    text::write(&mut out, &view.page(&subject), &options, &Facts).unwrap();
    let page = String::from_utf8(out).unwrap();
    let mut lines = page.lines().skip_while(|line| !line.ends_with("function"));
    let column = lines
        .next()
        .map_or(0, |line| line.rfind("function").unwrap());
    let names = lines.map(|line| line[column..].to_owned());
    view.rows
        .iter()
        .map(|row| row.function)
        .zip(names)
        .collect()
}

proptest! {
    #[test]
    fn names_of_a_page_are_different_and_are_found_again(
        names in vec(name(), 1..20),
        width in 40usize..140,
    ) {
        let stacks: Vec<String> = names.iter().map(|name| format!("{name} 1\n")).collect();
        let profile = read(&stacks.concat());
        let selection = all(&profile);
        let rows = printed(&profile, &selection, width);
        let different: BTreeSet<&str> = rows.iter().map(|(_, name)| &**name).collect();
        prop_assert_eq!(different.len(), rows.len(), "{:?}", rows);
        let ids: Vec<FunctionId> = profile.functions.ids().collect();
        for (function, name) in &rows {
            match search::find(&subject(&profile, &selection).naming(), &ids, name) {
                Found::One(found) => prop_assert_eq!(found, *function, "{}", name),
                Found::Several(several) => {
                    prop_assert!(several.iter().any(|(id, _)| id == function), "{}", name);
                }
                Found::Nothing(_) => prop_assert!(false, "{} is not found", name),
            }
        }
    }

    #[test]
    fn both_sides_of_an_arrow_stay(caller in name(), callee in name(), width in 12usize..80) {
        let call = Call::new(caller.into(), callee.into());
        let short = Shown::call(&call).shortened(width).into_owned();
        prop_assert!(display_width(&short) <= width);
        let (before, after) = short.split_once(" → ").unwrap();
        prop_assert!(!before.is_empty() && !after.is_empty());
    }

    #[test]
    fn each_sample_is_charged_to_one_owner(
        stacks in vec((vec(0usize..7, 1..6), 1u32..9), 1..12),
    ) {
        let frames = ["app::main", "app::run", "std::f(int)", "mio::poll", "core::cmp::eq", "tokio::run", "[truncated]"];
        let mut text = String::new();
        for (stack, weight) in &stacks {
            let names: Vec<&str> = stack.iter().map(|&frame| frames[frame]).collect();
            text.push_str(&format!("{} {weight}\n", names.join(";")));
        }
        let profile = read(&text);
        let selection = all(&profile);
        let charged = Charged::of(&profile, &selection, Owners::of_profile(&profile, &[]));
        let sum: u64 = charged.shares.iter().map(|share| share.weight).sum();
        prop_assert_eq!(sum, selection.total());
        prop_assert!(charged.through_own <= selection.total());
        for share in charged.shares.iter().filter(|share| share.owner.is_some()) {
            prop_assert!(share.total <= selection.total());
        }
    }
}

#[test]
fn a_mark_that_is_charged_is_named() {
    let path = file(
        "charged-mark",
        "std::rt::lang_start;[truncated] 3\nmain;app::run 1\n",
    );
    let shares = output(&["flat", "--by", "crate", "--format", "csv", &path]);
    assert!(shares.contains(",[truncated],mark"), "{shares}");
}

#[test]
fn the_constructors_of_java_keep_their_names() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("names-java.folded");
    std::fs::write(&path, "main;A$P.<init>(int) 3\nmain;Socket.<anonymous> 2\n").unwrap();
    let text = |args: &[&str]| {
        let output = proftool(args).arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let flat = text(&["flat"]);
    for name in ["A$P.<init>(int)", "Socket.<anonymous>"] {
        assert!(flat.contains(name), "{flat}");
        assert!(text(&["detail", name]).contains(name), "{name}");
        assert!(text(&["tree", "--root", name]).contains(name), "{name}");
    }
}
