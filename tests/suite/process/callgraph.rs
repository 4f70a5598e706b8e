//! The static call graph, on programs that are compiled on the spot: what objdump sees is found,
//! and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::binary::Binary;
use proftool::scan::{self, CallKind};
use serde_json::Value;

use crate::support;
use crate::support::callgraph::{POINTERS, WITH_FRAMES, compile, directory, document, run};
use crate::support::skipped;

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#define FAR __attribute__((noinline, noclone, noipa))
int late(int), odd(int);
FAR int early(int x) { return late(x) + 1; }
FAR int even(int x) { return x == 0 ? 1 : odd(x - 1) + x; }
FAR int odd(int x) { return x == 0 ? 0 : even(x - 1) + 2; }
FAR int passed_on(int x) { return late(x + 1); }
FAR int recursive(int x) { return x > 1 ? recursive(x - 1) * recursive(x - 2) + 1 : x; }
FAR int unlikely(int x) { if (__builtin_expect(x == 77, 0)) { puts("cold"); abort(); } return x; }
int (*volatile hook)(int) = early;
FAR int indirect(int x) { return hook(x) + 1; }
FAR int late(int x) { puts("late"); return x * 3; }
int main(int argc, char **argv) {
    return early(argc) + early(argc + 1) + even(argc) + passed_on(argc) + recursive(argc)
        + indirect(argc) + unlikely(argc);
}
"#;

type Arcs = BTreeMap<(String, String), u64>;

/// The arcs of a kind by name, with their numbers of sites.
fn arcs(document: &Value, kind: &str) -> Arcs {
    let name = |index: &Value| {
        let index = usize::try_from(index.as_u64().unwrap()).unwrap();
        document["functions"][index]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let arcs = document["arcs"].as_array().unwrap().iter();
    arcs.filter(|arc| arc["kind"] == kind)
        .map(|arc| {
            let sites = arc["sites"].as_u64().unwrap();
            ((name(&arc["from"]), name(&arc["to"])), sites)
        })
        .collect()
}

/// Direct calls as objdump shows them: `address: call target <name>` below `address <name>:`.
fn objdump(program: &Path) -> Option<Arcs> {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn"]).arg(program);
    let output = objdump.output().ok().filter(|o| o.status.success());
    let Some(output) = output else {
        skipped("objdump does not work here");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut caller, mut arcs) = ("", Arcs::new());
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(">:") {
            caller = name.split_once('<').unwrap().1;
        } else if let Some((_, operand)) = line.split_once("call ") {
            let callee = operand.split_once('<').and_then(|(_, r)| r.split_once('>'));
            let Some((callee, _)) = callee.filter(|_| !operand.contains('*')) else {
                continue;
            };
            if !callee.contains(['@', '+']) {
                *arcs.entry((caller.into(), callee.into())).or_default() += 1;
            }
        }
    }
    Some(arcs)
}

fn pair(from: &str, to: &str) -> (String, String) {
    (from.into(), to.into())
}

#[test]
fn direct_calls_are_those_that_objdump_shows() {
    let directory = directory("objdump");
    for args in [
        &["-O0"][..],
        &["-O2"],
        &["-O2", "-fno-pie", "-no-pie"],
        &["-O1", "-fcf-protection=none", "-mcmodel=large"],
    ] {
        let Some(program) = compile(&directory, PROGRAM, args) else {
            return;
        };
        let Some(expected) = objdump(&program) else {
            return;
        };
        assert_eq!(arcs(&document(&program, &[]), "call"), expected, "{args:?}");
    }
}

#[test]
fn calls_lead_forward_and_backward_and_by_name() {
    let directory = directory("kinds");
    let Some(program) = compile(&directory, PROGRAM, &["-O2"]) else {
        return;
    };
    let document = document(&program, &[]);
    let calls = arcs(&document, "call");
    assert_eq!(calls[&pair("early", "late")], 1, "forward");
    assert_eq!(calls[&pair("odd", "even")], 1, "backward");
    assert_eq!(calls[&pair("main", "early")], 2, "two sites");
    assert!(calls[&pair("recursive", "recursive")] >= 1);
    let tails = arcs(&document, "tail");
    assert_eq!(tails[&pair("passed_on", "late")], 1);
    assert!(
        tails
            .keys()
            .all(|(from, to)| from != "unlikely" && !to.contains(".cold")),
        "a jump to a part of the same function is no call: {tails:?}"
    );
    let imports = arcs(&document, "import");
    assert_eq!(imports[&pair("late", "puts")], 1);

    let functions = document["functions"].as_array().unwrap();
    let named = |name: &str| {
        let mut functions = functions.iter();
        functions.find(|f| f["name"] == name).unwrap()
    };
    assert_eq!(named("indirect")["indirect_calls"], 1);
    // The C library is there: the program was linked with it.
    let puts = named("puts");
    assert_eq!(puts["imported"], true);
    assert!(puts["address"].as_u64().is_some() && puts["size"] == 0);
    let library = puts["module"].as_str().unwrap();
    assert!(library.starts_with("libc"), "{library}");
    assert!(named("main")["address"].as_u64().unwrap() > 0);
    assert!(named("main")["size"].as_u64().unwrap() > 0);
    assert!(document["indirect_sites"].as_u64().unwrap() >= 1);
    let cycles = document["cycles"].as_array().unwrap();
    let members: Vec<&Value> = cycles[0].as_array().unwrap().iter().collect();
    let name = |index: &&Value| {
        let index = usize::try_from(index.as_u64().unwrap()).unwrap();
        functions[index]["name"].as_str().unwrap()
    };
    let mut names: Vec<&str> = members.iter().map(name).collect();
    names.sort_unstable();
    assert_eq!((cycles.len(), names), (1, vec!["even", "odd"]));
}

/// Calls through slots, which a compiler rarely writes so plainly: `own` binds to the library itself unless somebody else defines it,
/// `fixed` never changes, `hook` may.
#[cfg(target_arch = "x86_64")]
const LIBRARY: &str = r#"
#define FAR __attribute__((noinline, noclone, noipa))
extern int elsewhere(int);
FAR int own(int x) { return x + 1; }
FAR static int local(int x) { return x + 2; }
__attribute__((used)) static int (*const fixed)(int) = local;
__attribute__((used)) static int (*hook)(int) = local;
FAR int through_own(int x) { return own(x) + 1; }
FAR int through_fixed(int x) { __asm__ volatile("call *fixed(%rip)"); return x; }
FAR int through_hook(int x) { __asm__ volatile("call *hook(%rip)"); return x; }
FAR int through_name(int x) { return elsewhere(x) + 1; }
FAR int passes_on(int x) { return elsewhere(x + 1); }
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_through_slots_lead_where_relocations_say() {
    let directory = directory("slots");
    for (args, what) in [
        (&["-O2"][..], "stubs"),
        (&["-O2", "-fno-plt"], "slots"),
        (
            &["-O2", "-fno-plt", "-Wl,-z,pack-relative-relocs"],
            "packed",
        ),
    ] {
        let args = [args, &["-shared", "-fPIC"]].concat();
        let Some(library) = compile(&directory, LIBRARY, &args) else {
            continue;
        };
        let document = document(&library, &[]);
        let (calls, imports) = (arcs(&document, "call"), arcs(&document, "import"));
        assert_eq!(imports[&pair("through_own", "own")], 1, "{what}");
        assert_eq!(imports[&pair("through_name", "elsewhere")], 1, "{what}");
        assert_eq!(imports[&pair("passes_on", "elsewhere")], 1, "{what}");
        assert_eq!(calls[&pair("through_fixed", "local")], 1, "{what}");
        assert!(
            !calls.contains_key(&pair("through_hook", "local")),
            "{what}"
        );
        let mut functions = document["functions"].as_array().unwrap().iter();
        let own: Vec<&Value> = functions.by_ref().filter(|f| f["name"] == "own").collect();
        assert_eq!(own.len(), 1, "{what}");
        assert_eq!(own[0]["imported"], false, "{what}");
    }
}

#[test]
fn a_stripped_program_keeps_its_calls_and_reports_missing_names() {
    let directory = directory("stripped");
    let Some(program) = compile(&directory, PROGRAM, &["-O2"]) else {
        return;
    };
    let before = document(&program, &[]);
    let Some(program) = compile(&directory, PROGRAM, &["-O2", "-s"]) else {
        return;
    };
    let output = run(&["callgraph", program.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no symbols"), "{said}");
    let document = document(&program, &[]);
    // By address: names are gone, but code does not move.
    let calls = |document: &Value| -> Vec<(u64, u64)> {
        let address = |index: &Value| {
            let index = usize::try_from(index.as_u64().unwrap()).unwrap();
            document["functions"][index]["address"].as_u64().unwrap()
        };
        let arcs = document["arcs"].as_array().unwrap().iter();
        arcs.filter(|arc| arc["kind"] == "call")
            .map(|arc| (address(&arc["from"]), address(&arc["to"])))
            .collect()
    };
    let (before, after) = (calls(&before), calls(&document));
    let found = before.iter().filter(|call| after.contains(call)).count();
    // What the C runtime adds has no unwind information.
    assert!(
        found >= 9 && found + 2 >= before.len(),
        "{before:x?} {after:x?}"
    );
    let functions = document["functions"].as_array().unwrap();
    let named = functions.iter().filter(|f| f["imported"] == false);
    let sub = |f: &Value| {
        let address = f["address"].as_u64().unwrap();
        f["name"] == format!("sub_{address:x}")
    };
    assert!(named.clone().count() > 9 && named.clone().filter(|f| sub(f)).count() > 9);
}

#[test]
fn a_function_is_shown_with_its_callers_and_callees() {
    let directory = directory("function");
    let Some(program) = compile(&directory, PROGRAM, &["-O2"]) else {
        return;
    };
    let path = program.to_str().unwrap();
    let output = run(&["callgraph", path, "--function", "late"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
    assert!(at("  ← early") < at("\nlate") && at("\nlate") < at("  → puts"));
    assert!(text.contains("  ← passed_on"));
    let part = document(&program, &["--function", "late"]);
    assert_eq!(part["functions"].as_array().unwrap().len(), 4);
    assert_eq!(arcs(&part, "tail").len(), 1);

    let output = run(&["callgraph", path, "--function", "rekursive"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said,
        "proftool: there is no function rekursive\nhint: similar names: recursive\n"
    );

    let limited = document(&program, &["--limit", "1"]);
    let callers = |arcs: Arcs| -> Vec<String> { arcs.into_keys().map(|(from, _)| from).collect() };
    assert!(
        callers(arcs(&limited, "call"))
            .iter()
            .all(|from| from == "main")
    );
    let csv = run(&["callgraph", path, "--format", "csv"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    let heading = "caller,caller_module,caller_address,callee,callee_module,callee_address,kind,sites,\
         caller_label,callee_label\n";
    assert!(csv.starts_with(heading), "{csv}");
    // The C library is there: the program was linked with it.
    let puts = csv.lines().find(|line| line.contains(",puts,libc.so"));
    assert!(
        puts.is_some_and(|line| line.contains(",0x") && line.contains(",import,1,")),
        "{csv}"
    );
}

#[test]
fn files_without_a_call_graph_are_refused_in_a_few_lines() {
    let directory = directory("refused");
    let script = directory.join("script.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let mut cases = vec![
        (PathBuf::from("/no/such/program"), "no such file"),
        (directory.clone(), "not a regular file"),
        (script, "not an ELF file"),
    ];
    let own = fs::read(env!("CARGO_BIN_EXE_proftool")).unwrap();
    let mut header = own[..64].to_vec();
    header[0x12..0x14].copy_from_slice(&8_u16.to_le_bytes());
    let mips = directory.join("mips");
    fs::write(&mips, header).unwrap();
    cases.push((mips, "ELF machine 8; x86, AArch64 and RISC-V"));
    for (path, message) in cases {
        let output = run(&["callgraph", path.to_str().unwrap()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let start = format!("proftool: could not open {}: ", path.display());
        assert!(said.starts_with(&start) && said.contains(message), "{said}");
        assert!(
            said.lines().count() <= 2 && output.stdout.is_empty(),
            "{said}"
        );
    }
}

/// A 64-bit ELF file with this code at 0x1000 and functions of these starts and sizes.
fn elf(machine: u16, code: &[u8], functions: &[(&str, u64, u64)]) -> Vec<u8> {
    let (mut symbols, mut strings) = (vec![0; 24], vec![0]);
    for (name, start, size) in functions {
        let at = u32::try_from(strings.len()).unwrap();
        symbols.extend(at.to_le_bytes());
        // A global function in section 1.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend([start.to_le_bytes(), size.to_le_bytes()].concat());
        strings.extend(name.bytes().chain([0]));
    }
    let names = b"\0.text\0.symtab\0.strtab\0";
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    // Name, type, flags, address, contents, link, size of an entry.
    let names = [&strings, &names[..]].concat();
    let sections = [
        (1_u32, 1_u32, 6_u64, 0x1000_u64, code, 0_u32, 0_u64),
        (7, 2, 0, 0, &symbols, 3, 24),
        (15, 3, 0, 0, &names, 0, 0),
    ];
    for (name, kind, flags, address, contents, link, entry) in sections {
        // The names of sections stand behind those of symbols.
        let name = name + u32::try_from(strings.len()).unwrap();
        headers.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
        for word in [flags, address, file.len() as u64, contents.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend([link.to_le_bytes(), [0; 4]].concat());
        headers.extend([1_u64.to_le_bytes(), entry.to_le_bytes()].concat());
        file.extend(contents);
    }
    let table = file.len() as u64;
    file.extend(headers);
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    file[0x10..0x12].copy_from_slice(&3_u16.to_le_bytes());
    file[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
    file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    for (at, value) in [(0x34, 64_u16), (0x3a, 64), (0x3c, 4), (0x3e, 3)] {
        file[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    file
}

/// The calls of a file as `caller -> callee: kind`.
fn calls(file: Vec<u8>) -> (Vec<String>, scan::Calls) {
    let binary = Binary::from_bytes(file).unwrap();
    let calls = scan::calls(&binary, None).unwrap();
    let name = |id| binary.function_name(&calls.functions[id].symbol).unwrap();
    let told = calls
        .sites
        .iter()
        .map(|site| match site.callee {
            scan::Callee::Function(callee) => {
                format!("{} -> {}: {:?}", name(site.caller), name(callee), site.kind)
            }
            scan::Callee::Import(import) => format!("import {}", calls.imports[import]),
        })
        .collect();
    (told, calls)
}

#[test]
fn aarch64_calls_are_found_too() {
    let words: [u32; 8] = [
        0x9400_0004, // 1000 f: bl 1010
        0xd63f_0020, //         blr x1
        0x1400_0004, //         b 1018
        0xd65f_03c0, //         ret
        0x97ff_fffc, // 1010 g: bl 1000
        0xd65f_03c0, //         ret
        0xd61f_0220, // 1018 h: br x17
        0x17ff_fffd, //         b 1010
    ];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let functions = [("f", 0x1000, 16), ("g", 0x1010, 8), ("h", 0x1018, 8)];
    let (told, calls) = calls(elf(183, &code, &functions));
    let expected = [
        "f -> g: Call",
        "f -> h: Tail",
        "g -> f: Call",
        "h -> g: Tail",
    ];
    assert_eq!(
        (told, calls.indirect()),
        (expected.map(String::from).into(), (1, 1))
    );
}

#[test]
fn functions_that_overlap_are_scanned_once() {
    // A call of the next byte, again and again, under functions that all reach to the end.
    let code = b"\xe8\xfb\xff\xff\xff".repeat(20_000);
    let names: Vec<String> = (0..20_000).map(|i| format!("f{i}")).collect();
    let functions: Vec<(&str, u64, u64)> = names
        .iter()
        .zip(0_u64..)
        .map(|(name, i)| (name.as_str(), 0x1000 + 5 * i, 100_000 - 5 * i))
        .collect();
    let (_, calls) = calls(elf(62, &code, &functions));
    assert_eq!((calls.decoded, calls.sites.len()), (100_000, 20_000));
    assert!(
        calls
            .sites
            .iter()
            .all(|site| site.kind == CallKind::Call && site.length == 5)
    );
}

#[test]
fn code_behind_an_inner_function_belongs_to_the_outer_one() {
    // 1000 outer: nop; 1001 inner: ret; 1002 (outer): call 1001
    let code = b"\x90\xc3\xe8\xfa\xff\xff\xff";
    let (told, _) = calls(elf(62, code, &[("outer", 0x1000, 7), ("inner", 0x1001, 1)]));
    assert_eq!(told, ["outer -> inner: Call"]);
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let binary = Binary::open(&support::c_library()).unwrap();
    let one = scan::calls(&binary, NonZeroUsize::new(1)).unwrap();
    let seven = scan::calls(&binary, NonZeroUsize::new(7)).unwrap();
    assert!(one.sites.len() > 1000 && one.sites.is_sorted_by_key(|site| site.at));
    assert_eq!(one, seven);
}

#[test]
fn a_call_in_an_inlined_body_belongs_to_the_inlined_function() {
    let directory = directory("inlined");
    let Some(program) = compile(&directory, POINTERS, &WITH_FRAMES) else {
        return;
    };
    let physical = document(&program, &["--function", "burn"]);
    assert!(arcs(&physical, "call").contains_key(&pair("main", "burn")));
    let logical = document(&program, &["--inline"]);
    let calls = arcs(&logical, "call");
    assert_eq!(calls.get(&pair("middle", "burn")), Some(&1));
    assert!(!calls.contains_key(&pair("main", "burn")));
    assert_eq!(
        arcs(&logical, "inlined").get(&pair("main", "middle")),
        Some(&1)
    );
}

#[test]
fn parts_of_the_graph_can_be_asked_for() {
    let directory = directory("parts");
    let Some(program) = compile(&directory, PROGRAM, &["-O2"]) else {
        return;
    };
    let names = |document: &Value| -> Vec<String> {
        let functions = document["functions"].as_array().unwrap().iter();
        let mut names: Vec<String> = functions
            .map(|f| f["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    let reached = document(&program, &["--reachable-from", "even"]);
    assert_eq!(names(&reached), ["even", "odd"]);
    let reached = document(&program, &["--reachable-from", "passed_on"]);
    assert_eq!(names(&reached), ["late", "passed_on", "puts"]);
    let cycles = document(&program, &["--cycles"]);
    assert_eq!(names(&cycles), ["even", "odd", "recursive"]);
    assert_eq!(cycles["cycles"].as_array().unwrap().len(), 1);
    let path = program.to_str().unwrap();
    let roots = String::from_utf8(run(&["callgraph", path, "--roots"]).stdout).unwrap();
    let listed: Vec<&str> = roots
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(
        listed.contains(&"main") && !listed.contains(&"late"),
        "{roots}"
    );
    let both = run(&["callgraph", path, "--roots", "--cycles"]);
    assert_eq!(both.status.code(), Some(2));
    let flat = run(&["flat", "--format", "dot"]);
    assert_ne!(flat.status.code(), Some(0));
}
