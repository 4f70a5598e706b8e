//! Walks through the graph, the tree and the cycles by keys.

use super::super::key::Key;
use super::super::wish::View;
use super::stage::{CALCULATOR, LATER, Stage, seen, stage};

#[test]
fn the_graph_can_be_walked_forward_and_back() {
    let mut stage = stage();
    stage.key(Key::Enter);
    assert_eq!(stage.app.wish.view, View::Graph);
    assert_eq!(
        stage.names(),
        ["eval", "lookup", "calc::table::Map<K, V>::find"]
    );
    assert_eq!(stage.chosen(), "lookup");
    stage.key(Key::Up);
    stage.key(Key::Enter);
    assert_eq!(stage.chosen(), "eval");
    assert_eq!(stage.names(), ["apply", "main", "eval", "lookup", "apply"]);
    stage.keys("j");
    stage.key(Key::Enter);
    assert_eq!(stage.chosen(), "lookup");
    for expected in ["eval", "lookup"] {
        stage.key(Key::Backspace);
        assert_eq!(stage.chosen(), expected);
        assert_eq!(stage.app.wish.view, View::Graph);
    }
    stage.key(Key::Backspace);
    assert_eq!(stage.app.wish.view, View::Flat);
    // The function is on no stack for a while: the view reports that, and finds it again.
    stage.keys("/find");
    stage.key(Key::Enter);
    stage.keys("g");
    stage.key(Key::Escape);
    stage.see(seen(2, LATER));
    assert!(
        stage.screen().contains("no stack has the function"),
        "{}",
        stage.screen()
    );
    stage.see(seen(3, CALCULATOR));
    assert_eq!(stage.chosen(), "calc::table::Map<K, V>::find");
}

#[test]
fn the_graph_names_its_function_as_no_other_is_named() {
    let of = |char: &str| {
        let arguments = format!("{char}, std::char_traits<{char}>, std::allocator<{char}> ");
        format!("main() [a];std::basic_string<{arguments}>::size() [a]")
    };
    let stacks = format!("{} 30\n{} 20", of("char"), of("wchar_t"));
    let mut stage = Stage::new(100, 24, &stacks);
    for name in ["char", "wchar_t"] {
        stage.keys("1");
        stage.key(if name == "char" { Key::Home } else { Key::Down });
        stage.key(Key::Enter);
        let about = stage.screen().lines().nth(2).unwrap().to_owned();
        let name = format!("std::basic_string<{name}>::size · 1 caller");
        assert!(about.contains(&name), "{about}");
        // Nor are there places in a list that is not shown.
        assert!(!stage.screen().contains(" [1]"), "{}", stage.screen());
    }
}

#[test]
fn a_tree_is_opened_along_its_heaviest_path_and_by_hand() {
    let mut stage = stage();
    stage.keys("3");
    let heaviest = stage.names();
    assert_eq!(heaviest[..4], ["main", "eval", "apply", "eval"]);
    // At first the line is chosen at which the path forks.
    assert_eq!(stage.chosen(), "main");
    stage.keys("j");
    assert_eq!(stage.chosen(), "eval");
    stage.key(Key::Left);
    assert_eq!(stage.names(), ["main", "eval", "parse", "print"]);
    // What was opened by hand stays open when the next picture comes.
    stage.keys("j");
    stage.key(Key::Right);
    assert_eq!(stage.names(), ["main", "eval", "parse", "lex", "print"]);
    stage.see(seen(2, LATER));
    assert_eq!(stage.names(), ["main", "parse", "lex", "eval", "print"]);
    assert_eq!(stage.chosen(), "parse");
    stage.see(seen(3, CALCULATOR));
    stage.key(Key::Right);
    assert_eq!(stage.chosen(), "lex");
    stage.keys("e");
    assert_eq!(stage.chosen(), "lex");
    stage.key(Key::Left);
    stage.key(Key::Left);
    assert_eq!(stage.names(), ["main", "eval", "parse", "print"]);
    stage.keys("k");
    stage.keys("e");
    assert_eq!(stage.names()[..3], ["main", "eval", "apply"]);
    stage.keys("g");
    assert_eq!(stage.app.wish.view, View::Graph);
}

#[test]
fn a_tree_is_opened_down_to_its_first_fork() {
    let chain: Vec<String> = (0..40).map(|n| format!("start{n} [calc]")).collect();
    let chain = chain.join(";");
    let stacks = format!("{chain};eval [calc] 300\n{chain};parse [calc] 200");
    let mut stage = Stage::new(80, 24, &stacks);
    stage.keys("3");
    assert_eq!(stage.chosen(), "start39");
    let screen = stage.screen();
    assert!(
        screen.contains("eval") && screen.contains("parse"),
        "{screen}"
    );
    stage.key(Key::Home);
    assert_eq!(stage.chosen(), "start0");
}

#[test]
fn chains_of_library_calls_are_one_line_until_they_are_unfolded() {
    let outside = "clone3 [libc.so.6];start_thread [libc.so.6];std::sys::thread_start [calc]";
    let inside = "std::io::write [calc];write [libc.so.6];__write [libc.so.6]";
    let stacks = format!(
        "{outside};calc::main [calc];calc::eval [calc] 600\n\
         {outside};calc::main [calc];{inside} 390\n\
         {outside};calc::main [calc];calc::lex [calc] 10"
    );
    let mut stage = Stage::new(100, 24, &stacks);
    stage.keys("3");
    let folded = [
        "std::sys::thread_start",
        "calc::main",
        "calc::eval",
        "__write",
        "calc::lex",
    ];
    assert_eq!(stage.names(), folded);
    let screen = stage.screen();
    assert!(
        screen.contains("⋯ 3 frames: std → std::sys::thread_start"),
        "{screen}"
    );
    assert!(screen.contains("⋯ 3 frames: std → __write"), "{screen}");
    // Left goes to the line above: the caller is folded away.
    assert_eq!(stage.chosen(), "calc::main");
    stage.keys("jj");
    assert_eq!(stage.chosen(), "__write");
    stage.key(Key::Left);
    assert_eq!(stage.chosen(), "calc::main");
    stage.keys("u");
    let all = [
        "clone3",
        "start_thread",
        "std::sys::thread_start",
        "calc::main",
        "calc::eval",
    ];
    assert_eq!(stage.names()[..5], all);
    assert_eq!(stage.chosen(), "calc::main");
    stage.keys("u");
    assert_eq!(stage.names(), folded);
    // A search shows all frames on the way.
    stage.keys("/^__write");
    stage.key(Key::Enter);
    assert_eq!(stage.names().len(), 7);
}

#[test]
fn a_collapsed_call_leads_to_the_node_where_it_continues() {
    let mut stage = stage();
    stage.keys("3ccc");
    let screen = stage.screen();
    assert!(screen.contains("collapse: full"), "{screen}");
    assert!(screen.contains("eval... (38.46 %)"), "{screen}");
    let at = |stage: &Stage| stage.app.cursor().index();
    let stub = stage
        .app
        .shown()
        .unwrap()
        .listing
        .lines
        .iter()
        .into_iter()
        .position(|line| {
            let fold = line.branch.map(|branch| branch.fold);
            matches!(fold, Some(super::super::listing::Fold::Stub(_)))
        })
        .unwrap();
    for _ in 0..stub {
        stage.keys("j");
    }
    assert_eq!(at(&stage), stub);
    let name = stage.chosen();
    stage.key(Key::Enter);
    assert!(at(&stage) < stub);
    assert_eq!(stage.chosen(), name);
    // The degrees go round.
    stage.keys("c");
    assert!(
        stage.screen().contains("collapse: none"),
        "{}",
        stage.screen()
    );
    stage.keys("c");
    assert!(
        stage.screen().contains("collapse: direct"),
        "{}",
        stage.screen()
    );
    stage.keys("cc");
    assert!(
        stage.screen().contains("collapse: full"),
        "{}",
        stage.screen()
    );
}

#[test]
fn a_search_in_the_tree_shows_the_ways_to_what_is_found() {
    let mut stage = stage();
    stage.keys("3/^memc");
    stage.key(Key::Enter);
    let find = "calc::table::Map<K, V>::find";
    let expected = [
        "main", "eval", "lookup", find, "memcmp", "parse", "lex", "memchr",
    ];
    assert_eq!(stage.names(), expected);
}

#[test]
fn cycles_lead_to_functions() {
    let mut stage = stage();
    stage.keys("4");
    assert_eq!(stage.chosen(), "eval");
    let screen = stage.screen();
    assert!(
        screen.contains("1 cycle · 1 function calls itself"),
        "{screen}"
    );
    assert!(
        screen.contains("removing apply → eval breaks the cycle (2.900 s)"),
        "{screen}"
    );
    assert!(screen.contains("sum (3, 2.4)"), "{screen}");
    stage.key(Key::Enter);
    assert_eq!(stage.app.wish.view, View::Graph);
    assert_eq!(stage.chosen(), "eval");
}
