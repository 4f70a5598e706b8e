//! What SECURITY.md and the map name is there: files, tests, limits.
//!
//! ```text
//! | what | at most | constants | test |
//! | frames | 2^18 on a stack | `src/input/stacks.rs` | `imports::deep_stacks…` |
//!           └ a number of that file   └ a file            └ a test, or what begins so
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use super::tree::Tree;

/// The documents that are held against the repository.
const DOCUMENTS: [&str; 4] = [
    "SECURITY.md",
    "src/ARCHITECTURE.md",
    "fixtures/README.md",
    "fixtures/REPORTS.md",
];
/// What the pages may name of the repository.
const FOLDERS: [&str; 5] = ["src", "tests", "scripts", "fixtures", ".ci"];

/// The words of a text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The cells of each row of each table, with the heads of the table.
fn rows(page: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(
            inner
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect(),
        )
    };
    let mut all = Vec::new();
    let mut heads = Vec::new();
    for line in page.lines() {
        match cells(line) {
            None => heads.clear(),
            Some(row) if heads.is_empty() => heads = row,
            Some(row) if row.iter().all(|cell| cell.trim_matches('-').is_empty()) => {}
            Some(row) => all.push((heads.clone(), row)),
        }
    }
    all
}

/// The path of a file that a document names, if the word is one.
fn file<'a>(tree: &'a Tree, word: &str) -> Option<Result<Vec<&'a str>, String>> {
    let is_path = FOLDERS
        .iter()
        .any(|folder| word.starts_with(&format!("{folder}/")));
    let is_file = is_path || word.ends_with(".rs");
    // A pattern of names is no name, and neither is a command.
    if !is_file || word.contains(['*', '…']) || word.contains(char::is_whitespace) {
        return None;
    }
    let word = word.trim_end_matches('/');
    let is_it = |path: &&str| {
        *path == word
            || path.starts_with(&format!("{word}/"))
            || path.ends_with(&format!("/{word}"))
    };
    let found: Vec<&str> = tree
        .files
        .keys()
        .map(String::as_str)
        .filter(is_it)
        .collect();
    let missing = format!("there is no file `{word}`");
    Some(if found.is_empty() {
        Err(missing)
    } else {
        Ok(found)
    })
}

/// The names of tests, and of the modules of the suite, as documents may write them.
fn tests(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (path, text) in &tree.files {
        let Some(inner) = path.strip_suffix(".rs") else {
            continue;
        };
        let mut module: Vec<&str> = inner.split('/').filter(|part| *part != "mod").collect();
        module.drain(..usize::from(inner.starts_with("src/")));
        if let ["tests", "suite" | "fuzz", _, inner @ ..] = &module[..] {
            module = inner.to_vec();
            names.insert(module.join("::"));
        }
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            if line != "#[test]" {
                continue;
            }
            let function = lines.find_map(|line| line.strip_prefix("fn "));
            let function = function.unwrap_or_default().split('(').next().unwrap();
            let is_in_file = inner.starts_with("src/") && !inner.ends_with("/tests");
            let within = if is_in_file { &["tests"][..] } else { &[] };
            let path = [&module, within, &[function]].concat();
            names.extend((0..path.len()).map(|from| path[from..].join("::")));
        }
    }
    names
}

/// Whether a test has this name: `module::begin_of_it…`, `…of_the_same_module`.
fn is_test(names: &BTreeSet<String>, word: &str) -> bool {
    let word = word.trim_start_matches(['…', ':']);
    match word.strip_suffix('…') {
        None => names.contains(word),
        Some(begin) => names.iter().any(|name| name.starts_with(begin)),
    }
}

/// The limits that a cell states, as they stand there and as numbers: `64 MiB`, `2^18`, `1 048 576`.
fn limits(cell: &str) -> Vec<(String, u64)> {
    let words: Vec<&str> = cell
        .split(|c: char| c.is_whitespace() || ",;()`".contains(c))
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let from = at;
        at += 1;
        let digits =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(power) = words[from].strip_prefix("2^") {
            found.push((words[from].to_owned(), 1 << power.parse::<u32>().unwrap()));
            continue;
        }
        if !digits(words[from]) {
            continue;
        }
        while at < words.len() && words[at].len() == 3 && digits(words[at]) {
            at += 1;
        }
        let number: u64 = words[from..at].concat().parse().unwrap();
        let shift = match words.get(at) {
            Some(&"KiB") => 10,
            Some(&"MiB") => 20,
            Some(&"GiB") => 30,
            _ => 0,
        };
        let end = at + usize::from(shift > 0);
        found.push((words[from..end].join(" "), number << shift));
    }
    found
}

/// The numbers of a file: `64 << 20`, `1_048_576`, `1 << 18`.
fn numbers(text: &str) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut words = text
        .split(|c: char| c.is_whitespace() || ",;()[]{}".contains(c))
        .filter(|word| !word.is_empty());
    let mut shifted = None;
    while let Some(word) = words.next() {
        let number = word.replace('_', "").parse::<u64>().ok();
        if let (Some(base), Some(by)) = (shifted.take(), number) {
            found.extend(u64::checked_shl(base, by as u32));
        }
        found.extend(number);
        if number.is_some() && words.clone().next() == Some("<<") {
            words.next();
            shifted = number;
        }
    }
    found
}

/// What a document says of the repository that is not so.
fn wrong(tree: &Tree, document: &str) -> Vec<String> {
    let page = tree.text(document);
    let names = tests(tree);
    let mut told: Vec<String> = quoted(page)
        .filter_map(|word| file(tree, word)?.err())
        .collect();
    for (heads, row) in rows(page) {
        let cell = |head: &str| {
            let at = heads.iter().position(|found| found == head)?;
            row.get(at).map(String::as_str)
        };
        for word in cell("test").map(quoted).into_iter().flatten() {
            // Checks of other kits are no names of Rust.
            if !word.contains(['.', '/', '-']) && !is_test(&names, word) {
                told.push(format!("there is no test `{word}`"));
            }
        }
        let (Some(limit), Some(constants)) = (cell("at most"), cell("constants")) else {
            continue;
        };
        let files = quoted(constants).filter_map(|word| file(tree, word)?.ok());
        let known: BTreeSet<u64> = files
            .flatten()
            .flat_map(|path| numbers(tree.text(path)))
            .collect();
        for (text, number) in limits(limit) {
            if !known.contains(&number) {
                told.push(format!("`{text}` is no number of {constants}"));
            }
        }
    }
    told.iter()
        .map(|what| format!("{document}: {what}"))
        .collect()
}

#[test]
fn what_the_documents_name_is_there() {
    let mut tree = Tree::of_this_crate();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in FOLDERS {
        tree.read_all(root, Path::new(folder));
    }
    tree.read(root, Path::new("SECURITY.md"));
    let told = DOCUMENTS.iter().flat_map(|document| wrong(&tree, document));
    let mut told: Vec<String> = told.collect();
    // Comments of the code name files of the suite, too.
    for (path, text) in tree.sources() {
        let words = text
            .lines()
            .filter(|line| line.contains("//"))
            .flat_map(quoted);
        let named = words.filter(|word| word.starts_with("tests/"));
        let missing = named.filter_map(|word| file(&tree, word)?.err());
        told.extend(missing.map(|what| format!("{path}: {what}")));
    }
    assert_eq!(told, Vec::<String>::new());
}

#[test]
fn a_document_that_names_what_is_not_there_is_reported() {
    let files = [
        (
            "src/input/limits.rs",
            "const A: u64 = 64 << 20;\nconst B: u32 = 1_048_576;\n#[test]\nfn unit_test() {}\n",
        ),
        ("tests/suite/pure/laws.rs", "#[test]\nfn a_law_holds() {}\n"),
        ("tests/fuzz/targets/bytes.rs", ""),
    ];
    let page = |limit: &str, constants: &str, test: &str| {
        let head = "| what | at most | constants | test |\n|---|---|---|---|\n";
        let page = format!("{head}| it | {limit} | {constants} | {test} |\n");
        let files = files
            .iter()
            .copied()
            .chain([("SECURITY.md", page.as_str())]);
        wrong(&Tree::new(&files.collect::<Vec<_>>()), "SECURITY.md")
    };
    let constants = "`src/input/limits.rs`";
    for test in [
        "`laws`",
        "`laws::a_law…`",
        "`a_law_holds`",
        "`…a_law…`",
        "`limits::tests::unit_test`",
        "`bytes`",
        "`size-samples` of a kit",
        "`limits.rs` (unit)",
    ] {
        let told = page("64 MiB, or 1 048 576 rows (2^20)", constants, test);
        assert_eq!(told, Vec::<String>::new(), "{test}");
    }
    let told = page(
        "63 MiB, 1 048 577 rows, 2^21",
        "`limits.rs`",
        "`laws::a_lie…`, `lies.rs`",
    );
    assert_eq!(
        told,
        [
            "SECURITY.md: there is no file `lies.rs`",
            "SECURITY.md: there is no test `laws::a_lie…`",
            "SECURITY.md: `63 MiB` is no number of `limits.rs`",
            "SECURITY.md: `1 048 577` is no number of `limits.rs`",
            "SECURITY.md: `2^21` is no number of `limits.rs`",
        ]
    );
    let told = page("", "`src/input/none.rs`", "");
    assert_eq!(told, ["SECURITY.md: there is no file `src/input/none.rs`"]);
}
