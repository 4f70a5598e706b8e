//! The manual in the program, and defaults for its options.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::c_library;
use crate::support::cli::{fixture, proftool};

fn scratch(name: &str) -> PathBuf {
    crate::support::directory(&format!("manual-{name}"))
}

fn answer(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `proftool flat` of a fixture, with this configuration file.
fn flat_with(name: &str, config: &str, args: &[&str]) -> (PathBuf, Command) {
    let path = scratch(name).join("config.toml");
    fs::write(&path, config).unwrap();
    let mut command = proftool(&[&["flat", &fixture("recursion")], args].concat());
    command.env("PROFTOOL_CONFIG", &path);
    (path, command)
}

fn is_json(output: &Output) -> bool {
    output.stdout.first() == Some(&b'{')
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let config = "strict = false\n[flat]\nformat = \"json\"\n[tree]\ndepth = 1\n";
    let (_, mut command) = flat_with("order", config, &[]);
    assert!(is_json(&answer(&mut command)));
    let output = answer(command.env("PROFTOOL_FORMAT", "csv"));
    assert!(stdout(&output).starts_with("self_percent,"), "{output:?}");
    let output = answer(command.args(["--format", "text"]));
    assert!(stdout(&output).contains("samples"), "{output:?}");
    assert!(!is_json(&output));
}

#[test]
fn the_section_of_a_command_wins_over_what_is_for_all() {
    let config = "format = \"csv\"\nlimit = 3\n[flat]\nformat = \"json\"\n";
    let (_, mut command) = flat_with("section", config, &[]);
    let output = answer(&mut command);
    let page: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(page["functions"].as_array().unwrap().len(), 3);
}

#[test]
fn the_file_is_found_below_the_home_directory() {
    let home = scratch("home");
    fs::create_dir_all(home.join(".config/proftool")).unwrap();
    let file = home.join(".config/proftool/config.toml");
    fs::write(file, "format = 'json'").unwrap();
    let mut command = proftool(&["flat", &fixture("recursion")]);
    command
        .env_remove("PROFTOOL_CONFIG")
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", &home);
    assert!(is_json(&answer(&mut command)));
    command.env("XDG_CONFIG_HOME", home.join("elsewhere"));
    assert!(!is_json(&answer(&mut command)));
}

#[test]
fn a_default_does_not_contradict_the_command_line() {
    let config = "pid = [1]\n[record]\nfreq = 5000\n";
    let path = scratch("conflict").join("config.toml");
    fs::write(&path, config).unwrap();
    // -c excludes -F, and a command excludes nothing here: the failure is another one.
    let mut command = proftool(&["record", "-c", "1000", "-o", "-", "true"]);
    let output = answer(command.env("PROFTOOL_CONFIG", &path));
    let text = stderr(&output);
    assert!(
        text.contains("cannot be written to standard output"),
        "{text}"
    );
}

#[test]
fn a_default_of_a_group_gives_way_to_the_option_that_is_given() {
    let path = scratch("group").join("config.toml");
    fs::write(&path, "[callgraph]\ncycles = true\n").unwrap();
    let library = c_library();
    let library = library.to_str().unwrap();
    let mut command = proftool(&["callgraph", library, "--roots", "--limit", "1"]);
    let output = answer(command.env("PROFTOOL_CONFIG", &path));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!output.stdout.is_empty());
}

#[test]
fn errors_in_the_configuration_file_are_named() {
    for (name, config, reason) in [
        ("syntax", "limit = 3\nformat = \n", ":2: "),
        (
            "option",
            "colour = 'never'",
            "colour is no option of any command",
        ),
        ("command", "[flats]\nlimit = 1", "[flats] is no command"),
        (
            "in-section",
            "[flat]\ndepth = 1",
            "depth is no option of proftool flat",
        ),
        ("type", "limit = true", "a number or a text is expected"),
        ("flag", "strict = 1", "true or false is expected"),
        ("value", "format = 'xml'", "invalid value 'xml'"),
    ] {
        let (path, mut command) = flat_with(name, config, &[]);
        let output = answer(&mut command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {text}");
        assert!(text.contains(reason), "{name}: {text}");
        assert!(text.contains(&path.display().to_string()), "{name}: {text}");
    }
    let mut command = proftool(&["flat", &fixture("recursion")]);
    let output = answer(command.env("PROFTOOL_STRICT", "maybe"));
    assert!(stderr(&output).contains("PROFTOOL_STRICT must be 1 or 0"));
    let mut command = proftool(&["flat", &fixture("recursion")]);
    let output = answer(command.env("PROFTOOL_CONFIG", "/nowhere/at.all"));
    assert!(stderr(&output).contains("could not read /nowhere/at.all"));
}

#[test]
fn a_command_without_options_works_with_any_configuration_file() {
    let (path, _) = flat_with("others", "[flat]\nlimit = 1\n", &[]);
    for args in [&["help", "stacks"][..], &["--version"], &[]] {
        let output = answer(proftool(args).env("PROFTOOL_CONFIG", &path));
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}

#[test]
fn help_has_commands_and_topics() {
    let list = stdout(&answer(&mut proftool(&["help"])));
    let topics = list.split("Topics").nth(1).unwrap();
    let names: Vec<&str> = topics
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 5, "{list}");
    for name in names {
        let output = answer(&mut proftool(&["help", name]));
        assert!(
            output.status.success() && output.stdout.len() > 500,
            "{name}"
        );
    }
    let output = answer(&mut proftool(&["help", "tree"]));
    let long = stdout(&answer(&mut proftool(&["tree", "--help"])));
    assert_eq!(stdout(&output), long);
    assert!(long.contains("proftool help recursion"), "{long}");
    let short = stdout(&answer(&mut proftool(&["tree", "-h"])));
    assert!(short.len() < long.len());
    let output = answer(&mut proftool(&["help", "nothing"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("recursion"), "{output:?}");
}

/// The names in a list of `proftool help`.
fn listed(heading: &str) -> Vec<String> {
    let help = stdout(&answer(&mut proftool(&["help"])));
    let list = help.split(heading).nth(1).unwrap();
    let lines = list.lines().skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

fn help(args: &[&str]) -> String {
    let output = answer(proftool(args).env("COLUMNS", "100"));
    assert!(output.status.success(), "{args:?}: {output:?}");
    stdout(&output)
}

#[test]
fn the_manual_is_short_enough_to_be_read() {
    let words = |text: &str| text.split_whitespace().count();
    let mut commands = listed("\nCommands:");
    commands.retain(|name| name != "help");
    let of_commands = commands.iter().map(|name| words(&help(&[name, "--help"])));
    assert!(commands.len() >= 16 && of_commands.sum::<usize>() <= 5_500);
    let topics = listed("\nTopics");
    let of_topics = topics.iter().map(|name| words(&help(&["help", name])));
    assert!(topics.len() >= 12 && of_topics.sum::<usize>() <= 3_200);
    assert!(words(&help(&["help", "counts"])) <= 600);
}

#[test]
fn short_help_has_a_line_for_each_option() {
    for name in listed("\nCommands:") {
        let (short, long) = (help(&[&name, "-h"]), help(&[&name, "--help"]));
        assert!(short.lines().count() <= 40, "{name}: {short}");
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        let options = |text: &str| -> Vec<String> {
            let part = text.split("\nOptions:\n").nth(1).unwrap_or_default();
            let lines = part.lines().take_while(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        };
        // What is said of an option is further to the right.
        let is_option = |line: &&String| line.trim_start_matches(' ').len() + 6 >= line.len();
        let listed = options(&short);
        assert!(
            listed.iter().all(|line| is_option(&line)),
            "{name}: {short}"
        );
        let named = |lines: &[String]| -> Vec<String> {
            let lines = lines.iter().filter(is_option);
            let words = lines.map(|line| line.trim_start().split("  ").next());
            words.flatten().map(str::to_owned).collect()
        };
        assert_eq!(named(&listed), named(&options(&long)), "{name}: {long}");
    }
}

#[test]
fn each_command_and_topic_has_a_manual_page() {
    let directory = scratch("man");
    let path = directory.to_str().unwrap();
    assert!(answer(&mut proftool(&["man", path])).status.success());
    for page in [
        "man1/proftool.1",
        "man1/proftool-record.1",
        "man7/proftool-filters.7",
        "man7/proftool-reading.7",
        "man7/proftool-stacks.7",
    ] {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(".TH proftool"), "{page}: {text}");
        let Ok(man) = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(directory.join(page))
            .output()
        else {
            continue;
        };
        assert!(
            man.status.success() && man.stderr.is_empty(),
            "{page}: {man:?}"
        );
    }
}

#[test]
fn manual_pages_describe_each_option_and_name_the_program() {
    let directory = scratch("man-options");
    let path = directory.to_str().unwrap();
    assert!(answer(&mut proftool(&["man", path])).status.success());
    let program = format!("\"proftool {}\"", env!("CARGO_PKG_VERSION"));
    let pages = ["man1", "man7"].map(|section| fs::read_dir(directory.join(section)).unwrap());
    let pages: Vec<_> = pages.into_iter().flatten().collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let page = page.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        let head = text.lines().find(|line| line.starts_with(".TH")).unwrap();
        assert!(head.contains(&program), "{}: {head}", page.display());
        let lines: Vec<&str> = text.lines().collect();
        for option in lines.windows(3).filter(|lines| lines[0] == ".TP") {
            assert!(!option[2].is_empty(), "{}: {}", page.display(), option[1]);
        }
    }
}

#[test]
fn shells_accept_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = answer(&mut proftool(&["completions", shell]));
        assert!(output.status.success());
        let text = stdout(&output);
        assert!(
            text.contains("callgraph") && text.contains("collapse"),
            "{shell}"
        );
        let script = scratch("completions").join(shell);
        fs::write(&script, text).unwrap();
        if let Ok(parsed) = Command::new(shell).arg("-n").arg(&script).output() {
            assert!(parsed.status.success(), "{shell}: {parsed:?}");
        }
    }
}

#[test]
fn options_of_perf_work() {
    let file = fixture("recursion");
    let usual = answer(&mut proftool(&["flat", &file]));
    let perfs = answer(&mut proftool(&["flat", "--stdio", "-i", &file]));
    assert_eq!(stdout(&usual), stdout(&perfs));
    let output = answer(&mut proftool(&["flat", "-i", &file, &file]));
    assert_eq!(output.status.code(), Some(2));
    let output = answer(&mut proftool(&["info", "-i", &file]));
    assert!(output.status.success());
}
