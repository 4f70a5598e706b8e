//! Folded stacks in and out.

use proftool::base::CaveatKind;
use proftool::export::folded::escaped;
use proftool::input::{Reason, folded};
use proftool::profile::Profile;

fn read(text: &str) -> Result<Profile, Reason> {
    folded::read(text.as_bytes(), &mut |_| {})
}

fn names(profile: &Profile) -> Vec<&str> {
    profile
        .functions
        .iter()
        .map(|function| &*function.name)
        .collect()
}

/// The stacks of a profile as text, the outermost frame first, sorted.
fn stacks(profile: &Profile) -> Vec<String> {
    let mut stacks = Vec::new();
    for sample in &profile.samples {
        let frames = profile.paths.outwards(sample.path);
        let mut names: Vec<&str> = frames
            .map(|p| &*profile.functions[p.function].name)
            .collect();
        names.reverse();
        stacks.push(format!("{} {}", names.join("|"), sample.weight));
    }
    stacks.sort();
    stacks
}

#[test]
fn equal_stacks_are_one_and_neighbours_share_their_frames() {
    let profile = read("a;b;c 1\na;b 2\na;bc 3\na;b;c;d 4\nb 5\na;b;c 6\n").unwrap();
    assert_eq!(names(&profile), ["a", "b", "c", "bc", "d"]);
    assert_eq!(profile.paths.len(), 6);
    let expected = ["a|b 2", "a|bc 3", "a|b|c 7", "a|b|c|d 4", "b 5"];
    assert_eq!(stacks(&profile), expected);
    assert!(profile.caveats.is_empty());
}

#[test]
fn the_weight_is_what_follows_the_last_space() {
    let profile = read("a b;c d 3\r\nx\t4\n  y  5").unwrap();
    assert_eq!(stacks(&profile), ["  y  5", "a b|c d 3", "x 4"]);
}

#[test]
fn bad_lines_are_counted_with_their_numbers_and_the_others_kept() {
    let text = "a 1\nnothing\nb x\n\n 3\nc 1.\nd 18446744073709551616\ne 2\n";
    let profile = read(text).unwrap();
    assert_eq!(stacks(&profile), ["a 1", "e 2"]);
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 5);
    let caveat = profile.caveats.iter().next().unwrap();
    let details: Vec<&str> = caveat.details().map(|(text, _)| text).collect();
    let expected = [
        "line 2: no weight at its end",
        "line 3: the weight is not a plain number",
        "line 5: no stack before the weight",
        "line 6: the weight is not a plain number",
        "line 7: the weight passes 64 bits",
    ];
    assert_eq!(details, expected);
}

#[test]
fn decimal_weights_keep_their_shares() {
    // weights, unit, what they are then
    let cases = [
        (
            ["0.5", "1", "2.25"],
            "hundredths of samples",
            [50, 100, 225],
        ),
        (["1.0", "2.00", "3"], "samples", [1, 2, 3]),
        (
            ["0.004", "0.004", "0.004"],
            "thousandths of samples",
            [4, 4, 4],
        ),
    ];
    for (written, unit, weights) in cases {
        let [a, b, c] = written;
        let profile = read(&format!("m;a {a}\nm;b {b}\nm;c {c}\n")).unwrap();
        let [a, b, c] = weights;
        let expected = [format!("m|a {a}"), format!("m|b {b}"), format!("m|c {c}")];
        assert_eq!(stacks(&profile), expected);
        assert_eq!(profile.events.iter().next().unwrap().unit.to_string(), unit);
        assert!(profile.caveats.is_empty(), "{written:?}");
    }
    let ms = folded::Weights::Time(1_000_000);
    let profile = folded::read_as(ms, &b"m;a 0.5\nm;b 1\n"[..], &mut |_| {}).unwrap();
    assert_eq!(stacks(&profile), ["m|a 500000", "m|b 1000000"]);
    assert_eq!(profile.events.iter().next().unwrap().unit.to_string(), "ns");
}

#[test]
fn a_text_without_a_stack_is_refused() {
    for text in ["", "\n\n", "hello\nworld\n", "fn main() {\n}\n"] {
        assert!(matches!(read(text), Err(Reason::Unknown)), "{text:?}");
    }
}

#[test]
fn weights_of_zero_are_no_samples() {
    let profile = read("a;b 0\n").unwrap();
    assert!(profile.samples.is_empty());
    assert_eq!(profile.caveats.count(CaveatKind::ZeroWeights), 1);
}

#[test]
fn weights_that_exceed_64_bits_together_are_cut_with_a_caveat() {
    let text = format!("a {}\nb 5\n", u64::MAX - 1);
    let profile = read(&text).unwrap();
    assert_eq!(
        stacks(&profile),
        [format!("a {}", u64::MAX - 1), "b 1".into()]
    );
    assert_eq!(profile.caveats.count(CaveatKind::WeightLimit), 1);
}

#[test]
fn only_escapes_that_are_written_are_read() {
    // written, read
    let cases = [
        (r"a\x3bb", "a;b"),
        (r"a\x1bb", "a\x1bb"),
        (r"a\u{202e}b", "a\u{202e}b"),
        (r"a\x5cx3bb", r"a\x3bb"),
        (r"a\x5cx41", r"a\x41"),
    ];
    for (written, name) in cases {
        assert_eq!(escaped(name), written);
        let profile = read(&format!("{written} 1\n")).unwrap();
        assert_eq!(names(&profile), [name]);
    }
    // what is never written is itself
    for name in [
        r"a\b", r"\x41", r"\xff", r"\u{41}", r"\u{zz}", r"\x", r"\", r"\u{202e",
    ] {
        let profile = read(&format!("{name} 1\n")).unwrap();
        assert_eq!(names(&profile), [name]);
    }
}

#[test]
fn bytes_that_are_not_utf8_and_empty_frames_have_a_name() {
    let profile = folded::read(&b"a\xff;;b 1\n"[..], &mut |_| {}).unwrap();
    let empty = r"[unknown] called by a\xff";
    assert_eq!(names(&profile), [r"a\xff", empty, "b"]);
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let mut text = String::from("a 1\n");
    text.push_str(&"x".repeat(65 << 20));
    text.push_str(" 1\nb 2\n");
    let profile = read(&text).unwrap();
    assert_eq!(stacks(&profile), ["a 1", "b 2"]);
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 1);
}

#[test]
fn a_stack_of_a_million_frames_is_read_and_a_larger_one_refused_by_its_limit() {
    let stack = |frames: usize| vec!["f"; frames].join(";") + " 1\n";
    let profile = read(&stack(1 << 20)).unwrap();
    assert_eq!(profile.paths.len(), 1 << 20);
    let refused = read(&stack((1 << 20) + 1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "as folded stacks: line 1: it has more than 1048576 frames"
    );
    let profile = read(&(stack((1 << 20) + 1) + "a 1\n")).unwrap();
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 1);
}

/// In a time that is linear: each of these frames depends on the first name further in.
#[test]
fn a_deep_stack_without_names_is_read_at_once() {
    let unnamed = vec!["??"; 200_000].join(";");
    let profile = read(&format!("{unnamed} 1\n")).unwrap();
    assert_eq!(names(&profile)[199_999], "[unknown] at depth 200000");
    let profile = read(&format!(
        "{unnamed};[truncated];??;main;??;[truncated];?? 1\n"
    ))
    .unwrap();
    let names = names(&profile);
    for name in [
        "[unknown] 200001 calls above main",
        "[unknown] 200000 calls above main",
        "[unknown] that calls main",
        "[unknown] called by main",
        "[unknown] at depth 200006",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn frames_without_a_name_are_one_node_for_each_caller() {
    let text = "main;a;[unknown];b 10\nmain;b;[unknown];a 5\nmain;a;??;x 1\n[unknown];a 3\n";
    let profile = read(text).unwrap();
    let named = ["main", "a", "b", "x"];
    let mut nameless = names(&profile);
    nameless.retain(|name| !named.contains(name));
    let expected = [
        "[unknown] called by a",
        "[unknown] called by b",
        "[unknown] that calls a",
    ];
    assert_eq!(nameless, expected);
    assert_eq!(profile.caveats.count(CaveatKind::NamelessFrames), 19);
}

#[test]
fn ambiguous_names_are_read_back_as_they_were_written() {
    use proftool::export::folded::frame;
    use proftool::profile::FunctionKind::{Mark, Named};
    for name in [
        "~A",
        "unknown",
        "[truncated]",
        "[libc.so.6]",
        "??",
        r"\x7eA",
        "~",
        "~~A",
    ] {
        let profile = read(&format!("{} 1\n", frame(name, Named))).unwrap();
        assert_eq!(names(&profile), [name]);
        assert_eq!(profile.functions.iter().next().unwrap().kind, Named);
    }
    let profile = read("[truncated];~a;b 1\n").unwrap();
    assert_eq!(names(&profile), ["[truncated]", "a", "b"]);
    assert_eq!(profile.functions.iter().next().unwrap().kind, Mark);
    assert!(profile.paths.has_inferred());
}

#[test]
fn weights_of_folded_stacks_have_the_unit_that_the_user_states() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("folded-unit");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("two.folded");
    std::fs::write(&file, "main;a 1000\nmain;b 500\n").unwrap();
    let file = file.to_str().unwrap();
    let headline = |unit: &[&str]| {
        let mut args = vec!["flat", file];
        args.extend(unit);
        let output = crate::support::cli::proftool(&args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        headline(&[]),
        "1,500 samples (folded stacks: unit not stated, taken as samples)"
    );
    assert_eq!(headline(&["--folded-unit", "samples"]), "1,500 samples");
    for (unit, total) in [("us", "1.500 ms"), ("ns", "1.500 µs"), ("s", "1500 s")] {
        let said = headline(&["--folded-unit", unit]);
        assert!(said.starts_with(total), "{unit}: {said}");
        assert!(
            said.ends_with("(folded stacks: number of samples not stated)"),
            "{said}"
        );
    }
    let said = headline(&["--folded-unit", "bytes"]);
    assert!(said.starts_with("1,500 bytes"), "{said}");
    let samples_of_time = ["flat", file, "--folded-unit", "us", "--unit", "samples"];
    let output = crate::support::cli::proftool(&samples_of_time)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn every_format_says_that_the_unit_is_assumed() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("folded-assumed");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("two.folded");
    std::fs::write(&file, "main;a 1000\nmain;b 500\n").unwrap();
    let file = file.to_str().unwrap();
    let run = |args: &[&str]| {
        let output = crate::support::cli::proftool(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let json = |view: &str, unit: &[&str]| {
        let args = [&[view, file, "--format", "json"], unit].concat();
        serde_json::from_str::<serde_json::Value>(&run(&args)[0]).unwrap()["event"].clone()
    };
    for view in ["flat", "tree", "graph", "cycles", "report", "info"] {
        assert_eq!(json(view, &[])["unit_assumed"], true, "{view}");
        let event = json(view, &["--folded-unit", "us"]);
        assert_eq!(event["unit_assumed"], false, "{view}");
        assert_eq!(event["unit"], "ns", "{view}");
        let samples = json(view, &["--folded-unit", "samples"]);
        assert_eq!(samples["unit_assumed"], false, "{view}");
    }
    for args in [
        ["flat", file, "--format", "csv"],
        ["graph", file, "--format", "dot"],
    ] {
        let [_, told] = run(&args);
        assert!(told.contains("weights are taken as samples"), "{told}");
        let [_, told] = run(&[&args[..], &["--folded-unit", "bytes"]].concat());
        assert!(!told.contains("taken as samples"), "{told}");
    }
    let headline = |unit: &[&str]| {
        let [text, _] = run(&[&["info", file], unit].concat());
        text.lines().next().unwrap().to_owned()
    };
    let assumed = "folded stacks: 1,500 samples (unit not stated, taken as samples)";
    assert_eq!(headline(&[]), assumed);
    let time = headline(&["--folded-unit", "us"]);
    assert_eq!(
        time,
        "folded stacks: 1.500 ms (number of samples not stated)"
    );
}

#[test]
fn suggested_commands_keep_the_unit() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("folded-next");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("two.folded");
    std::fs::write(&file, "main;a 1000\nmain;b 500\n").unwrap();
    let args = [
        "report",
        "--full",
        file.to_str().unwrap(),
        "--folded-unit",
        "us",
    ];
    let output = crate::support::cli::proftool(&args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let next: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("  proftool "))
        .collect();
    assert!(next.len() > 3, "{text}");
    assert!(
        next.iter().all(|line| line.contains("--folded-unit us")),
        "{text}"
    );
}

#[test]
fn missing_frames_are_between_two_functions_and_no_function() {
    let text = "main;[frames missing];lex 3\nmain;parse;[frames missing];~lex 2\nmain;[frames missing] 1\n";
    let profile = read(text).unwrap();
    let gaps: Vec<(&str, bool)> = (profile.paths.enumerate())
        .map(|(_, path)| (&*profile.functions[path.function].name, path.across_gap))
        .collect();
    let expected = [
        ("main", false),
        ("lex", true),
        ("parse", false),
        ("lex", true),
        ("[frames missing] called by main", false),
    ];
    assert_eq!(gaps, expected);
}
