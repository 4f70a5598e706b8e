//! Which copies of code are one function: programs built here, and the calls in their code.
//!
//! Each call in a program stands in a chain of inlined functions, so the calls show which functions
//! debug information makes of the copies. What cannot be built here is said on stderr as
//! `skipped: …`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::base::Svma;
use proftool::binary::{Binary, demangle};
use proftool::input::{MachineCode, Options as ReadOptions, Syntax};
use proftool::profile::{Function, Profile};
use serde_json::Value;

use crate::support::elf::Elf;
use crate::support::identity::{json, profile, recursive};
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{directory, ran, skipped};

/// Builds these sources in a directory of their own; says why if that is not possible.
pub(super) fn build(name: &str, compiler: &[&str], sources: &[(&str, &str)]) -> Option<PathBuf> {
    let directory = directory(&format!("identity-{name}"));
    let (program, flags) = compiler.split_first().unwrap();
    let mut command = Command::new(program);
    command.current_dir(&directory);
    command.args(flags).args(["-o", "it"]);
    for (file, text) in sources {
        fs::write(directory.join(file), text).unwrap();
        if !file.ends_with(".h") {
            command.arg(file);
        }
    }
    ran(&mut command).map(|_| directory.join("it"))
}

pub(super) fn named<'p>(profile: &'p Profile, name: &str) -> Vec<&'p Function> {
    let functions = profile.functions.iter();
    functions.filter(|function| function.name == name).collect()
}

/// The lines where these functions are declared, sorted, by the last part of the file's name.
fn declared(functions: &[&Function]) -> Vec<String> {
    let place = |function: &&Function| {
        let line = function.declared_at.as_ref();
        line.map_or("nowhere".into(), |line| {
            let file = line.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", line.line)
        })
    };
    let mut places: Vec<String> = functions.iter().map(place).collect();
    places.sort();
    places
}

pub(super) const INLINE: &str = "#define IN __attribute__((always_inline)) static inline\n\
    #define OUT __attribute__((noinline, noclone))\nvoid leaf(int);\n";

#[test]
fn inlined_functions_of_one_name_in_two_files_are_two() {
    let a = "#include \"in.h\"\nvoid b_run(void);\nIN void step(void) { leaf(1); b_run(); }\n\
        OUT void a_run(void) { step(); leaf(3); }\nint main(void) { a_run(); return 0; }\n";
    let b = "#include \"in.h\"\nIN void step(void) { leaf(2); leaf(5); }\n\
        OUT void b_run(void) { step(); leaf(4); }\nOUT void leaf(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n";
    let sources = [("in.h", INLINE), ("a.c", a), ("b.c", b)];
    let compilers: [&[&str]; 4] = [
        &["gcc", "-O2", "-g"],
        &["gcc", "-O2", "-g1"],
        &["clang", "-O2", "-g", "-w"],
        &["clang", "-O2", "-gline-tables-only", "-w"],
    ];
    for (index, compiler) in compilers.into_iter().enumerate() {
        let Some(program) = build(&format!("steps{index}"), compiler, &sources) else {
            continue;
        };
        let profile = profile(&program);
        let steps = named(&profile, "step");
        assert_eq!(declared(&steps), ["a.c:3", "b.c:2"], "{compiler:?}");
        assert!(recursive(&profile).is_empty(), "{compiler:?}");
    }
}

#[test]
fn an_inlined_copy_is_the_function_of_its_own_file() {
    let file = |run: &str, main: &str| {
        format!(
            "#include \"in.h\"\nIN int work(int n) {{ leaf(n); return n * {}; }}\n\
             int (*volatile {run}_pointer)(int) = work;\n\
             OUT int {run}(int n) {{ int r = work(n); leaf(r); return r; }}\n{main}",
            run.len()
        )
    };
    let a = file(
        "first",
        "int second(int);\nint main(void) { return first(1) + second(2); }\n",
    );
    let b = file(
        "second",
        "OUT void leaf(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n",
    );
    let sources = [("in.h", INLINE), ("a.c", &*a), ("b.c", &*b)];
    let compilers: [&[&str]; 3] = [
        &["gcc", "-O2", "-g"],
        &["gcc", "-O2", "-g1"],
        &["gcc", "-O2", "-g", "-flto"],
    ];
    for (index, compiler) in compilers.into_iter().enumerate() {
        let Some(program) = build(&format!("work{index}"), compiler, &sources) else {
            continue;
        };
        let profile = profile(&program);
        let all = profile.functions.iter();
        let works: Vec<&Function> = all.filter(|f| f.name.starts_with("work")).collect();
        let starts: Vec<bool> = works.iter().map(|work| work.address.is_some()).collect();
        assert_eq!(starts, [true, true], "{compiler:?}");
        // Each of the two contains the copy of its own file, which is the code of its own file.
        let calls = profile.code.calls();
        let of = |name: &str| {
            let found = calls.iter().find(|call| {
                profile.functions[call.from].name == name
                    && profile.functions[call.to].name.starts_with("work")
            });
            found.map(|call| call.to)
        };
        let (first, second) = (of("first"), of("second"));
        assert!(first.is_some() && second.is_some(), "{compiler:?}");
        assert_ne!(first, second, "{compiler:?}");
    }
}

#[test]
fn an_inline_function_of_a_header_is_one_wherever_it_is_compiled() {
    let header = format!("{INLINE}IN void shared(int n) {{ leaf(n); leaf(n + 1); }}\n");
    let a =
        "#include \"in.h\"\nvoid b_run(void);\nint main(void) { shared(1); b_run(); return 0; }\n";
    let b = "#include \"in.h\"\nvoid b_run(void) { shared(2); }\n\
        OUT void leaf(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n";
    let sources = [("in.h", &*header), ("a.c", a), ("b.c", b)];
    let Some(program) = build("header", &["gcc", "-O2", "-g"], &sources) else {
        return;
    };
    let profile = profile(&program);
    assert_eq!(declared(&named(&profile, "shared")), ["in.h:4"]);
}

#[test]
fn names_without_linkage_names_are_qualified_by_what_is_around_them() {
    let source = "__attribute__((noinline)) void leaf(int n) { asm volatile(\"\" : : \"r\"(n)); }\n\
        namespace { __attribute__((always_inline)) inline void handle(int n) { leaf(n); leaf(2); } }\n\
        int main() {\n  auto one = [] { leaf(3); leaf(4); };\n\
        auto two = [&] { one(); leaf(5); };\n  auto three = [&](int n) { two(); leaf(n); };\n\
        three(7); handle(6); leaf(8); return 0; }\n";
    let flags = ["g++", "-O2", "-g"];
    let Some(program) = build("lambdas", &flags, &[("it.cc", source)]) else {
        return;
    };
    let profile = profile(&program);
    for (name, line) in [
        ("main::{lambda()#1}::operator()() const", "it.cc:4"),
        ("main::{lambda()#2}::operator()() const", "it.cc:5"),
        ("main::{lambda(int)#1}::operator()(int) const", "it.cc:6"),
        ("(anonymous namespace)::handle(int)", "it.cc:2"),
    ] {
        let found = named(&profile, name);
        let all: Vec<&str> = profile.functions.iter().map(|f| &*f.name).collect();
        assert_eq!(declared(&found), [line], "{name}: {all:?}");
    }
    assert!(recursive(&profile).is_empty());
}

/// GCC splits `put` after its quick test and inlines the part back into it.
const SPLIT: &str = "#include <stdlib.h>\nvolatile int on; static char *volatile pool;\n\
    void put(void *p) { if (__builtin_expect(!p, 1)) return; if (on) pool = p; \
    for (int i = 0; i < 3; i++) pool = 0; free(p); on++; }\n\
    __attribute__((cold, noinline)) void use(char *a, char *b) { put(a); put(b); put(a + 1); }\n\
    int main(int c, char **v) { use(v[0], v[c]); put(v[1]); put(v[2]); return 0; }\n";

#[test]
fn a_split_off_part_that_is_inlined_back_is_not_a_call() {
    let Some(program) = build("split", &["gcc", "-O2", "-g"], &[("it.c", SPLIT)]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let lines = binary.lines();
    let mut parts = 0;
    for function in binary.functions() {
        for offset in 0..function.size {
            let mut frames = Vec::new();
            lines.frames(Svma(function.start.0 + offset), &mut frames);
            parts += frames.iter().filter(|frame| frame.is_split_off).count();
        }
    }
    if parts == 0 {
        skipped("this gcc does not put the part of put() back");
    }
    let profile = profile(&program);
    assert!(recursive(&profile).is_empty(), "{:?}", recursive(&profile));
}

/// GCC splits `put`, inlines it into its callers, and the part back into it.
const SPLIT_AND_INLINED: &str = "volatile int on; static char *volatile pool;\n\
    void put(char *p) { if (__builtin_expect(!p, 1)) return; if (on) pool = p; on++; pool = 0; }\n\
    __attribute__((noinline)) void use(char **all, int n) { for (int i = 0; i < n; i++) put(all[i]); }\n\
    int main(int c, char **v) { use(v, c); put(v[c]); return 0; }\n";

#[test]
fn a_part_is_inlined_with_the_function_that_it_is_of() {
    let sources = [("it.c", SPLIT_AND_INLINED)];
    let Some(program) = build("split-inlined", &["gcc", "-O2", "-g"], &sources) else {
        return;
    };
    let (profile, binary) = (profile(&program), Binary::open(&program).unwrap());
    let lines = binary.lines();
    let options = ReadOptions {
        inlines: true,
        ..ReadOptions::default()
    };
    let code = MachineCode::new(&profile, Syntax::Att, &options);
    let (mut inlined, mut of_parts) = (0, 0);
    for (id, function) in profile.functions.enumerate() {
        if !["main", "use"].contains(&&*function.name) {
            continue;
        }
        let listing = code.listing(id, function.address.into_iter()).unwrap();
        for instruction in &listing.instructions {
            let mut frames = Vec::new();
            lines.frames(Svma(instruction.address), &mut frames);
            let position = listing.position_of(instruction).unwrap();
            let name = position.inlined.map(|name| &listing.names[name]);
            let is_inlined = frames.len() > 1;
            assert_eq!(name, is_inlined.then_some("put"), "{frames:?}");
            inlined += usize::from(is_inlined);
            of_parts += usize::from(frames[0].is_split_off);
        }
    }
    assert!(inlined > 0);
    if of_parts == 0 {
        skipped("this gcc does not put the part of put() back");
    }
}

#[test]
fn recursion_that_was_inlined_is_recursion() {
    let source = "struct t { struct t *l, *r; int v; };\nvoid leaf(int);\n\
        int walk(struct t *p) {\n  if (!p) return 0;\n  leaf(p->v);\n\
        int s = walk(p->l);\n  s ^= walk(p->r) * 3;\n  return s + p->v;\n}\n\
        __attribute__((noinline, noclone)) void leaf(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n\
        int main(void) { struct t x = {0, 0, 3}, y = {&x, 0, 4}; return walk(&y); }\n";
    let Some(program) = build("walk", &["gcc", "-O3", "-g"], &[("it.c", source)]) else {
        return;
    };
    assert_eq!(
        recursive(&profile(&program)).first().map(String::as_str),
        Some("walk")
    );
}

#[test]
fn debug_information_decides_which_function_a_clone_is() {
    let source = "#include <stdlib.h>\n\
        static int depth(const char *tree, int node, int scale) {\n\
        if (node > 1000) return scale;\n\
        int l = depth(tree, 2 * node + 1, scale), r = depth(tree, 2 * node + 2, scale);\n\
        return (l > r ? l : r) + tree[node];\n}\n\
        int main(int c, char **v) { return depth(calloc(9999, 1), c, 7); }\n";
    let Some(program) = build("clone", &["gcc", "-O2", "-g"], &[("it.c", source)]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let is_clone =
        |name: &str| name.starts_with("depth.constprop") || name.starts_with("depth.isra");
    let mut names = binary
        .functions()
        .iter()
        .filter_map(|f| binary.function_name(f));
    if !names.any(|name| is_clone(&name)) {
        skipped("this gcc makes no clone of depth()");
        return;
    }
    let profile = profile(&program);
    assert_eq!(recursive(&profile), ["depth"]);
    assert_eq!(named(&profile, "depth").len(), 1);
    let mut others = profile
        .functions
        .iter()
        .filter(|f| is_clone(&f.name) || f.name.contains("[clone"));
    assert!(others.next().is_none());
}

#[test]
fn the_mark_of_thin_link_time_optimization_is_no_part_of_a_name() {
    assert_eq!(demangle("work.llvm.4711"), "work");
    assert_eq!(demangle("_ZL4workv.llvm.4711"), "work()");
    assert_eq!(demangle("work.llvm.x"), "work.llvm.x");
}

#[test]
fn a_label_as_it_is_printed_filters_by_its_function() {
    let a = "#include \"in.h\"\nvolatile unsigned long sink; void b_run(void);\n\
        OUT static void step(void) { for (int i = 0; i < 30000; i++) sink += i; }\n\
        int main(void) { for (int i = 0; i < 2000; i++) { step(); b_run(); } return 0; }\n";
    let b = "#include \"in.h\"\nextern volatile unsigned long sink;\n\
        OUT static void step(void) { for (int i = 0; i < 10000; i++) sink += i; }\n\
        void b_run(void) { step(); sink++; }\n";
    let sources = [("in.h", INLINE), ("a.c", a), ("b.c", b)];
    let compiler = ["gcc", "-O1", "-g", "-fno-omit-frame-pointer"];
    let Some(program) = build("labels", &compiler, &sources) else {
        return;
    };
    let data = program.with_extension("data");
    let mut record = crate::support::cli::proftool(&["record", "-q", "-e", "cpu-clock:u", "-o"]);
    let recorded = record.arg(&data).arg(&program).output().unwrap();
    if !recorded.status.success() {
        let reason = String::from_utf8_lossy(&recorded.stderr);
        skipped(&format!("cannot record here: {}", reason.trim_end()));
        return;
    }
    let json = |args: &[&str]| {
        let mut command = crate::support::cli::proftool(args);
        let output = command.args(["--format", "json"]).arg(&data).output();
        serde_json::from_slice::<serde_json::Value>(&output.unwrap().stdout).unwrap()
    };
    let flat = json(&["flat"]);
    let rows = flat["functions"].as_array().unwrap().iter();
    let steps: Vec<_> = rows.filter(|row| row["name"] == "step").collect();
    assert_eq!(steps.len(), 2, "{flat}");
    for step in steps {
        let label = step["label"].as_str().unwrap();
        assert!(label.starts_with("step ("), "{label}");
        assert_eq!(json(&["flat", "--focus", label])["total"], step["total"]);
        let without = json(&["flat", "--ignore", label])["total"].as_u64();
        assert_eq!(
            without.zip(step["total"].as_u64()).map(|(a, b)| a + b),
            flat["total"].as_u64()
        );
        assert_eq!(json(&["detail", label])["function"]["total"], step["total"]);
        assert_eq!(
            json(&["tree", "--root", label])["roots"][0]["total"],
            step["total"]
        );
    }
}

/// A recording of two files, whose code lies at these addresses, with these stacks, innermost
/// frame first.
fn two_files(test: &str, files: [Elf; 2], stacks: &[&[u64]]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("identity-{test}"));
    fs::create_dir_all(&directory).unwrap();
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(1, "app");
    for ((name, start), file) in [("app", APP), ("libapp.so", LIBRARY)]
        .into_iter()
        .zip(files)
    {
        let path = directory.join(name);
        file.write(&path);
        recording.mapping(1, path.to_str().unwrap(), (start, 0x1000), 0x1000);
    }
    for (time, user) in (1000..).zip(stacks) {
        recording.sample(Taken {
            task: 1,
            time,
            user,
            ..Taken::default()
        });
    }
    let data = directory.join("perf.data");
    recording.write(&data);
    data
}

const APP: u64 = 0x40_1000;

const LIBRARY: u64 = 0x70_1000;

/// Names that collide within a file and between files, and that are no simple regular expressions.
const COLLIDING: [&str; 12] = [
    "step",
    "step",
    "step",
    "operator()(int) const",
    "operator()(int) const",
    "main::{lambda()#1}::operator()() const",
    "a::b<x[3], y*>::c(d+, e?)",
    "<app::Parser as core::iter::Iterator>::next",
    "<app::Parser as core::iter::Iterator>::next",
    "^start$",
    "back\\slash|or",
    "(anonymous namespace)::run(int)",
];

#[test]
fn every_label_that_flat_prints_is_accepted_where_a_function_is_asked_for() {
    let functions: Vec<(&str, u64, u64)> = (0..)
        .zip(COLLIDING)
        .map(|(index, name)| (name, 0x1000 + index * 0x40, 0x40))
        .collect();
    let files = [
        Elf::with_functions(&functions),
        Elf::with_functions(&functions),
    ];
    // Each function of the program calls one of the library; weights tell them all apart.
    let mut stacks: Vec<Vec<u64>> = Vec::new();
    for index in 0..COLLIDING.len() as u64 {
        let own = APP + index * 0x40 + 8;
        let library = LIBRARY + (COLLIDING.len() as u64 - 1 - index) * 0x40 + 8;
        stacks.extend(vec![vec![library, own]; 2 * index as usize + 1]);
        stacks.extend(vec![vec![own]; 40]);
    }
    let stacks: Vec<&[u64]> = stacks.iter().map(Vec::as_slice).collect();
    let data = two_files("printed", files, &stacks);
    let flat = json(&["flat", "--limit", "0", "--min", "0"], &data);
    let rows = flat["functions"].as_array().unwrap().iter();
    // The functions have no code that sets a frame up, so that their callers are missing.
    let rows: Vec<&Value> = rows.filter(|row| row["name"] != "[broken stack]").collect();
    assert_eq!(rows.len(), 2 * COLLIDING.len(), "{flat}");
    let text =
        crate::support::cli::proftool(&["flat", "--limit", "0", "--min", "0", "--names", "full"])
            .env("COLUMNS", "400")
            .arg(&data)
            .output()
            .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for row in rows {
        let label = row["label"].as_str().unwrap();
        let all = [&row["self"], &row["total"]];
        let detail = json(&["detail", label], &data);
        let marked = format!("≈{label}");
        assert_eq!(json(&["detail", &marked], &data), detail, "{label}");
        let focused = json(&["flat", "--focus", &marked], &data);
        assert_eq!(focused["total"], row["total"], "{marked}");
        let found = &detail["function"];
        assert_eq!([&found["self"], &found["total"]], all, "{label}");
        let tree = json(&["tree", "--min", "0", "--root", label], &data);
        assert_eq!(&tree["roots"][0]["total"], all[1], "{label}: {tree}");
        let focused = json(&["flat", "--focus", label], &data);
        assert_eq!(&focused["total"], all[1], "{label}");
        let without = json(&["flat", "--ignore", label], &data);
        let sum = without["total"].as_u64().unwrap() + all[1].as_u64().unwrap();
        assert_eq!(Some(sum), flat["total"].as_u64(), "{label}");
        assert!(text.contains(label), "{label} is not as printed:\n{text}");
    }
}

#[test]
fn parts_in_sections_of_their_own_are_their_function() {
    let parts = [
        "walk",
        "walk.__part.1",
        "walk.__part.12",
        "walk.cold",
        "walk.eh",
    ];
    // What is called so without a whole is not known to be a part.
    let names = [&parts[..], &["other.__part.1"]].concat();
    let functions: Vec<(&str, u64, u64)> = (0..)
        .zip(names)
        .map(|(index, name)| (name, 0x1000 + index * 0x40, 0x40))
        .collect();
    let stacks: Vec<[u64; 1]> = (0..6).map(|index| [APP + index * 0x40 + 8]).collect();
    let stacks: Vec<&[u64]> = stacks.iter().map(|stack| &stack[..]).collect();
    let files = [Elf::with_functions(&functions), Elf::with_functions(&[])];
    let data = two_files("parts", files, &stacks);
    let flat = json(&["flat", "--min", "0"], &data);
    let rows = flat["functions"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["self"] != 0);
    let row = |row: &'_ Value| {
        (
            row["name"].as_str().unwrap().to_owned(),
            row["self"].as_u64(),
        )
    };
    let found: Vec<_> = rows.map(row).collect();
    let [walk, other] =
        [("walk", 5), ("other.__part.1", 1)].map(|(name, own)| (name.to_owned(), Some(own)));
    assert_eq!(found, [walk, other]);
}

#[test]
fn no_note_counts_a_sample_for_each_of_its_frames() {
    // Callbacks to and fro between two files without symbols.
    let stack: Vec<u64> = (0..8)
        .map(|depth| {
            if depth % 2 == 0 {
                APP + 0x20
            } else {
                LIBRARY + 0x20
            }
        })
        .collect();
    let stacks = [&stack[..], &stack[..3], &stack[1..4], &stack[2..3]];
    let files = [Elf::with_functions(&[]), Elf::with_functions(&[])];
    let data = two_files("bare", files, &stacks);
    let mut counted = Vec::new();
    for view in ["flat", "report", "tree", "graph", "cycles"] {
        let answer = json(&[view], &data);
        let samples = answer["samples"].as_u64().unwrap();
        assert_eq!(samples, 4);
        for caveat in answer["caveats"].as_array().unwrap() {
            let text = caveat["text"].as_str().unwrap();
            let (number, what) = text.split_once(' ').unwrap_or_default();
            let Ok(number) = number.replace(',', "").parse::<u64>() else {
                continue;
            };
            if what.starts_with("sample") {
                assert!(number <= samples, "{view}: {text}");
                counted.push(text.to_owned());
            }
        }
    }
    let told = "4 samples with frames in code without symbols";
    assert!(
        counted.iter().any(|text| text.contains(told)),
        "{counted:?}"
    );
}

#[test]
fn one_name_for_the_code_of_several_functions_is_said_to_be_one_of_them() {
    let functions = [
        ("_Z8checksuml", 0x1000, 0x40),
        ("_Z5addupl", 0x1000, 0x40),
        ("_Z6totalsl", 0x1000, 0x40),
        // A constructor for objects and for bases, and aliases of C, are one function each.
        ("_ZN1AC1Ev", 0x1040, 0x40),
        ("_ZN1AC2Ev", 0x1040, 0x40),
        ("read", 0x1080, 0x40),
        ("__libc_read", 0x1080, 0x40),
        // Views show both as std::fill.
        ("_ZSt4fillIPiiEvT_S1_RKT0_", 0x10c0, 0x40),
        ("_ZSt4fillIPjjEvT_S1_RKT0_", 0x10c0, 0x40),
    ];
    let files = [
        Elf::with_functions(&functions),
        Elf::with_functions(&functions[3..]),
    ];
    let others = [APP + 0x48, APP + 0x88, APP + 0xc8];
    let recursion = [APP + 8, APP + 0x10, APP + 0x48];
    let stacks: [&[u64]; 3] = [&others, &recursion, &[APP + 0x20]];
    let data = two_files("folded", files, &stacks);
    let folded = |json: &Value, kind: &str| -> Vec<String> {
        let caveats = json["caveats"].as_array().unwrap().iter();
        let caveats = caveats.filter(|caveat| caveat["kind"] == kind);
        let texts = caveats.map(|caveat| caveat["text"].as_str().unwrap().to_owned());
        texts.collect()
    };
    let names = "shown under one name: checksum is also addup, totals";
    let samples = "2 samples with frames in code that several functions share";
    assert_eq!(
        folded(&json(&["flat"], &data), "folded-code"),
        [format!("{samples}, {names}")]
    );
    let program = data.with_file_name("app");
    let shares = "1 function shares its code with others";
    assert_eq!(
        folded(&json(&["callgraph"], &program), "folded-functions"),
        [format!("{shares}, {names}")]
    );
    let library = data.with_file_name("libapp.so");
    let graph = json(&["callgraph"], &library);
    assert!(folded(&graph, "folded-functions").is_empty(), "{graph}");
}
