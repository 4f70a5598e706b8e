//! Go programs: the names of stripped ones, held against `go tool nm`, and their stacks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::base::Svma;
use proftool::binary::{Binary, SymbolSource};
use proftool::unwind::{Cfa, Rules};

use crate::support::go::build;
use crate::support::{directory, ran};

fn strip(program: &Path) -> Option<PathBuf> {
    let stripped = program.with_extension("stripped");
    let mut strip = Command::new("strip");
    ran(strip.arg("-o").arg(&stripped).arg(program)).map(|_| stripped)
}

/// The names of functions by address, by `go tool nm`, some of them several.
fn by_nm(program: &Path) -> Option<BTreeMap<u64, Vec<String>>> {
    let output = ran(Command::new("go").args(["tool", "nm"]).arg(program))?;
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.trim_start().splitn(3, ' ');
        let (Some(address), Some("T" | "t"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        names.entry(address).or_default().push(name.to_owned());
    }
    Some(names)
}

/// What the table of functions has of a name: no mark of how arguments are passed, and three dots
/// for what is in brackets. It has the middle dot of local types, for which `go tool nm` has a dot.
fn in_table(name: &str) -> String {
    let name = name.strip_suffix(".abi0").unwrap_or(name);
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}[...]{}", &name[..open], &name[close + 1..])
        }
        _ => name.to_owned(),
    }
}

/// Holds the functions of a stripped program against the symbols of the same that is not.
fn compare(stripped: &Path, symbols: &BTreeMap<u64, Vec<String>>) -> usize {
    let binary = Binary::open(stripped).unwrap();
    assert_eq!(binary.problems(), [""; 0]);
    let functions = binary.functions().iter();
    let go: BTreeMap<u64, String> = functions
        .filter(|function| function.source == SymbolSource::Go)
        .map(|f| (f.start.0, binary.function_name(f).unwrap().into_owned()))
        .collect();
    for (address, name) in &go {
        let known = &symbols[address];
        let plain = name.replace('·', ".");
        let is_there = known
            .iter()
            .any(|known| known == name || in_table(known) == plain);
        assert!(
            is_there,
            "{address:#x}: {name}, and by its symbols {known:?}"
        );
    }
    // The end of the code is no function.
    let is_function = |name: &&String| !["runtime.etext", "runtime.text"].contains(&name.as_str());
    for (address, names) in symbols {
        let missing = names
            .iter()
            .find(is_function)
            .filter(|_| !go.contains_key(address));
        assert_eq!(missing, None, "at {address:#x}");
    }
    go.len()
}

#[test]
fn a_stripped_go_program_has_the_names_that_its_symbols_had() {
    let folder = directory("go-names");
    for (name, flags) in [("fixed", &[][..]), ("moved", &["-buildmode=pie"])] {
        let Some(program) = build(&folder, name, flags) else {
            return;
        };
        let Some(symbols) = by_nm(&program) else {
            return;
        };
        let mut stripped = Vec::from_iter(strip(&program));
        let flags = [flags, &["-ldflags=-s -w"]].concat();
        stripped.extend(build(&folder, &format!("{name}-s"), &flags));
        for stripped in stripped {
            let compared = compare(&stripped, &symbols);
            assert!(compared > 1000, "{}: {compared}", stripped.display());
        }
    }
}

#[test]
fn the_stack_grows_in_a_go_program_as_its_debug_frames_say() {
    let folder = directory("go-rows");
    let Some(program) = build(&folder, "rows", &["-ldflags=-compressdwarf=false"]) else {
        return;
    };
    let mut readelf = Command::new("readelf");
    let Some(output) = ran(readelf.arg("--debug-dump=frames-interp").arg(&program)) else {
        return;
    };
    let Some(stripped) = strip(&program) else {
        return;
    };
    let rules = Rules::new(Arc::new(Binary::open(&stripped).unwrap())).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut compared, mut without) = (0, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(cfa)) = (words.next(), words.next()) else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).ok();
        let offset = cfa
            .strip_prefix("rsp+")
            .and_then(|offset| offset.parse().ok());
        let (Some(address), Some(offset), 16) = (address, offset, line.find(' ').unwrap_or(0))
        else {
            continue;
        };
        match rules.row(Svma(address)) {
            None => without += 1,
            Some(row) => {
                compared += 1;
                let register = 7;
                assert_eq!(row.cfa, Cfa::Register { register, offset }, "{address:#x}");
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    // Functions that change to another stack, and the padding behind some others.
    assert!(without * 20 < compared, "{without} of {compared}");
}
