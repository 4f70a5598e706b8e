//! Machine code and source lines of recorded programs: against objdump and addr2line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::input::{SourceClaim, SourceFiles, SourceOptions, Syntax};
use proftool::scan::Disassembler;
use serde_json::Value;

use crate::support::call_sites::{recorded, source};
use crate::support::cli::proftool;
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{compile_text, directory, ran, skipped};

/// What objdump prints of a program: text by address, without names and comments.
fn objdump(program: &Path, syntax: Syntax) -> Option<BTreeMap<u64, String>> {
    let mut command = Command::new("objdump");
    command.args(["-d", "--no-show-raw-insn"]).arg(program);
    if syntax == Syntax::Intel {
        command.args(["-M", "intel"]);
    }
    let output = ran(&mut command)?;
    let output = String::from_utf8_lossy(&output.stdout);
    let text = |rest: &str| {
        let text = rest.split('#').next().unwrap_or_default().trim();
        let end = text.find(" <").unwrap_or(text.len());
        text[..end].to_owned()
    };
    let line = |line: &str| {
        let (address, rest) = line.trim_start().split_once(":\t")?;
        Some((u64::from_str_radix(address, 16).ok()?, text(rest)))
    };
    Some(output.lines().filter_map(line).collect())
}

/// Text that is the same for both: objdump writes out prefixes without effect, and in Intel syntax it
/// writes negative offsets from the instruction pointer without a sign.
fn comparable(text: &str) -> String {
    let words = text.split_whitespace();
    let words = words.skip_while(|word| matches!(*word, "data16" | "cs" | "ds" | "repz" | "rex.W"));
    let text: Vec<&str> = words.collect();
    let text = text.join(" ").replace("%cs:", "").replace("%ds:", "");
    let Some((before, offset)) = text.split_once("[rip+0xffffffff") else {
        return text;
    };
    let (offset, after) = offset.split_once(']').unwrap();
    let offset = u32::from_str_radix(offset, 16).unwrap().wrapping_neg();
    format!("{before}[rip-{offset:#x}]{after}")
}

#[test]
fn instructions_of_a_whole_library_are_those_of_objdump() {
    let library = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let Ok(binary) = Binary::open(library) else {
        return skipped("there is no libc of x86-64");
    };
    for syntax in [Syntax::Att, Syntax::Intel] {
        let Some(expected) = objdump(library, syntax) else {
            return;
        };
        instructions_are_those_of_objdump(&binary, syntax, &expected);
    }
}

fn instructions_are_those_of_objdump(
    binary: &Binary,
    syntax: Syntax,
    expected: &BTreeMap<u64, String>,
) {
    let code = binary.code().unwrap();
    let mut disassembler = Disassembler::new(code.machine, syntax).unwrap();
    let (mut compared, mut other, mut buffer) = (0u64, Vec::new(), Vec::new());
    for stretch in binary.stretches() {
        let Some(piece) = code.piece(stretch.start, stretch.end) else {
            continue;
        };
        let bytes = code.read(piece, &mut buffer).unwrap();
        let mut found = Vec::new();
        assert!(disassembler.read(bytes, stretch.start, usize::MAX, &mut found));
        // objdump goes on where a function ends inside of an instruction.
        let Some(first) = found
            .first()
            .filter(|first| expected.contains_key(&first.at.0))
        else {
            continue;
        };
        assert_eq!(first.at, stretch.start);
        let mut next = stretch.start;
        for instruction in found {
            assert_eq!(instruction.at, next, "one after the other");
            next = Svma(next.0 + u64::from(instruction.length));
            let Some(text) = expected.get(&instruction.at.0) else {
                continue;
            };
            compared += 1;
            if comparable(text) != comparable(&instruction.text) {
                other.push(format!(
                    "{:x}: {text} / {}",
                    instruction.at, instruction.text
                ));
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
    // Names of a few instructions and prefixes differ between versions of binutils. In Intel syntax, so do the forms
    // of absolute addresses (`fs:0x28`) and of string instructions (`stos DWORD PTR es:[rdi],eax`).
    let few = match syntax {
        Syntax::Att => compared / 2000,
        Syntax::Intel => compared / 100,
    };
    let shown = &other[..other.len().min(40)];
    assert!(
        other.len() as u64 <= few,
        "{syntax:?}: {} of {compared}: {shown:#?}",
        other.len()
    );
}

fn json(arguments: &[&str]) -> Value {
    let output = proftool(arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_recorded_function_has_the_code_of_objdump_and_the_lines_of_addr2line() {
    let Some((program, recording)) = recorded("annotated", "-O1") else {
        return;
    };
    let Some(expected) = objdump(&program, Syntax::Att) else {
        return;
    };
    let recording = recording.to_str().unwrap();
    let flat = json(&["flat", recording]);
    let text = std::fs::read_to_string(source()).unwrap();
    for name in ["descend", "even", "odd"] {
        let answer = json(&["annotate", name, recording]);
        let function = &answer["function"];
        let rows = flat["functions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(
            (&function["self"], &function["total"]),
            (&row["self"], &row["total"])
        );
        // Lines and what has none add up to the function.
        let files = answer["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{name}");
        let mut own = answer["unknown_line"]["self"].as_u64().unwrap_or(0);
        for line in files[0]["lines"].as_array().unwrap() {
            own += number(&line["self"]);
            let place = number(&line["line"]) as usize - 1;
            assert_eq!(line["text"].as_str(), text.lines().nth(place), "{name}");
            assert!(number(&line["total"]) <= number(&function["total"]));
        }
        assert_eq!(own, number(&function["self"]));
        // So do the instructions.
        let code = &answer["code"];
        let instructions = code["instructions"].as_array().unwrap();
        let own: u64 = instructions.iter().map(|i| number(&i["self"])).sum();
        assert_eq!(own + number(&code["outside"]), number(&code["self"]));
        assert!(!instructions.is_empty());
        let mut lookup = Command::new("addr2line");
        lookup.args(["-i", "-e"]).arg(&program);
        for instruction in instructions {
            let address = number(&instruction["address"]);
            let found = instruction["text"].as_str().unwrap();
            assert_eq!(
                comparable(found),
                comparable(&expected[&address]),
                "{address:x}"
            );
            if found.starts_with("call") && !found.contains('*') {
                assert!(instruction["callee"].is_string(), "{instruction}");
            }
        }
        for instruction in instructions {
            let mut lookup = Command::new("addr2line");
            lookup.arg("-e").arg(&program);
            lookup.arg(format!("{:#x}", number(&instruction["address"])));
            let Some(told) = ran(&mut lookup) else {
                return;
            };
            let told = String::from_utf8_lossy(&told.stdout);
            let line = told.trim().rsplit(':').next().unwrap_or_default();
            let line = line.split(' ').next().and_then(|line| line.parse().ok());
            assert_eq!(instruction["line"].as_u64(), line, "{told}");
        }
    }
}

#[test]
fn sources_are_found_by_the_end_of_their_path_and_only_as_regular_files() {
    let room = directory("annotate-sources");
    let deep = room.join("project/src");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a.c"), "int moved;\n").unwrap();
    let read = |directory: Option<&PathBuf>, file: &str| {
        let mut files = SourceFiles::new(&SourceOptions {
            directory: directory.map(PathBuf::as_path),
            ..SourceOptions::default()
        });
        let source = files.read(file, &SourceClaim::default(), 1).ok()?;
        source.line(1).map(str::to_owned)
    };
    let moved = Some("int moved;".to_owned());
    assert_eq!(read(Some(&room), "/build/of/project/src/a.c"), moved);
    assert_eq!(read(Some(&deep), "/build/of/project/src/a.c"), moved);
    assert_eq!(read(Some(&deep), "/build/../other/./a.c"), moved);
    assert_eq!(read(None, deep.join("a.c").to_str().unwrap()), moved);
    assert_eq!(read(Some(&room), "/build/of/a.c"), None);
    // No path leads out of the directory.
    assert_eq!(read(Some(&room.join("project")), "../../src/a.c"), moved);
    assert_eq!(read(Some(&room), "../../../../../../etc"), None);
    for special in ["/dev/null", "/dev/zero", "/proc", "/"] {
        assert_eq!(read(None, special), None, "{special}");
    }
}

#[test]
fn source_that_the_compiler_embedded_is_shown_where_the_file_is_gone() {
    let room = directory("annotate-embedded");
    let (source, program) = (room.join("sum.c"), room.join("sum"));
    let text = "int sum(int n)\n{\n\treturn n * 7; /* \u{e4} */\n}\nint main(void)\n{\n\treturn sum(3);\n}\n";
    std::fs::write(&source, text).unwrap();
    let mut clang = Command::new("clang");
    clang.args(["-gdwarf-5", "-gembed-source", "-O0", "-o"]);
    if ran(clang.arg(&program).arg(&source)).is_none() {
        return skipped("there is no clang");
    }
    let binary = Binary::open(&program).unwrap();
    let name = |symbol| binary.function_name(symbol);
    let mut functions = binary.functions().iter();
    let sum = functions.find(|symbol| name(symbol).as_deref() == Some("sum"));
    let sum = sum.unwrap();
    // By the path of the frame, up to a limit, and no other path.
    let lines = binary.lines();
    let path = source.to_str().unwrap();
    let embedded = |path, limit| lines.embedded_source(sum.start, path, limit);
    assert_eq!(embedded(path, 1 << 20).as_deref(), Some(text));
    assert_eq!(embedded(path, text.len()), None);
    assert_eq!(embedded("/other/sum.c", 1 << 20), None);

    let code = binary.code().unwrap();
    let offset = code.piece(sum.start, sum.end()).unwrap().offset.0;
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(7, "sum");
    let (page, base) = (offset & !0xfff, 0x5000_0000);
    recording.mapping(7, program.to_str().unwrap(), (base, 0x2000), page);
    for time in [10, 20] {
        recording.sample(Taken {
            task: 7,
            time,
            user: &[base + offset - page],
            ..Taken::default()
        });
    }
    let data = room.join("perf.data");
    recording.write(&data);
    let data = data.to_str().unwrap();
    // All sources: the target directory may be anywhere.
    let file = || json(&["annotate", "sum", data, "--source", "all"])["files"][0].clone();
    assert_eq!(file()["embedded"], false);
    std::fs::remove_file(&source).unwrap();
    let file = file();
    assert_eq!(file["embedded"], true);
    assert_eq!(file["found"], *program.to_str().unwrap());
    let texts = file["lines"].as_array().unwrap().iter();
    let texts: Vec<_> = texts.map(|line| line["text"].as_str().unwrap()).collect();
    assert!(texts.contains(&"\treturn n * 7; /* \u{e4} */"), "{texts:?}");
    let page = proftool(&["annotate", "sum", data]).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    let words: Vec<&str> = page.split_whitespace().collect();
    let heading = format!("{path} (embedded in {})", program.display());
    assert!(words.join(" ").contains(&heading), "{page}");
}

#[test]
fn with_the_self_weight_as_base_the_percentages_are_those_of_perf_annotate() {
    let Some((_, recording)) = recorded("annotated-base", "-O1") else {
        return;
    };
    let recording = recording.to_str().unwrap();
    let mut compared = 0;
    for name in ["descend", "even", "odd"] {
        let mut perf = Command::new("perf");
        perf.args(["annotate", "--stdio", "-i", recording, "-s", name]);
        let Some(told) = ran(&mut perf) else {
            return skipped("there is no perf");
        };
        // `    5.88 :   1139:   mov    %edi,%eax`
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let expected = told.lines().filter_map(|line| {
            let mut parts = line.split(':');
            let share: f64 = parts.next()?.trim().parse().ok()?;
            let address = u64::from_str_radix(parts.next()?.trim(), 16).ok()?;
            Some((address, share))
        });
        let expected: BTreeMap<u64, f64> = expected.filter(|&(_, share)| share > 0.0).collect();
        let arguments = ["annotate", name, recording, "--asm", "--base", "self"];
        let mut command = proftool(&arguments);
        let output = command.args(["--format", "csv"]).output().unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        let column = |title| head.iter().position(|name| *name == title).unwrap();
        assert!(!head.contains(&"total_percent"), "{head:?}");
        let (share, address) = (column("self_percent"), column("address"));
        let rows = table.lines().filter(|row| row.starts_with("instruction,"));
        let found = rows.filter_map(|row| {
            let cells: Vec<&str> = row.split(',').collect();
            let address = cells[address].trim_start_matches("0x");
            let share: f64 = cells[share].parse().unwrap();
            Some((u64::from_str_radix(address, 16).ok()?, share))
        });
        let found: BTreeMap<u64, f64> = found.filter(|&(_, share)| share >= 0.005).collect();
        let addresses = |of: &BTreeMap<u64, f64>| of.keys().copied().collect::<Vec<u64>>();
        assert_eq!(addresses(&found), addresses(&expected), "{name}: {told}");
        for (address, share) in &found {
            let told = expected[address];
            assert!(
                (share - told).abs() < 0.0051,
                "{name} {address:x}: {share} {told}"
            );
        }
        compared += found.len();
    }
    assert!(compared > 0);
}

#[test]
fn without_stacks_a_total_has_inlined_functions_and_is_said_to() {
    let room = directory("annotate-without-stacks");
    let text = "static volatile unsigned sink;\n\
        static inline __attribute__((always_inline)) void spin(unsigned n) { while (n--) sink += n; }\n\
        int main(void) { spin(100000000); return 0; }\n";
    let program = room.join("it");
    if compile_text("gcc", &["-O1", "-g"], text, &program).is_none() {
        return;
    }
    let data = room.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-o"]);
    if ran(perf.arg(&data).arg(&program)).is_none() {
        return;
    }
    let flat = json(&["flat", data.to_str().unwrap(), "--limit", "0", "--min", "0"]);
    let row = |name| {
        let mut rows = flat["functions"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == name).unwrap();
        (number(&row["self"]), number(&row["total"]))
    };
    let ((own, total), (inlined, _)) = (row("main"), row("spin"));
    assert_eq!((own + inlined, inlined > own), (total, true));
    let caveats = flat["caveats"].as_array().unwrap().iter();
    let said: Vec<&str> = caveats
        .map(|caveat| caveat["text"].as_str().unwrap())
        .collect();
    let expected = "recorded without call stacks: totals include inlined functions, but no calls";
    assert!(said.contains(&expected), "{said:?}");
}

/// The names of the functions whose code an address is, innermost first, as addr2line finds them.
fn functions_at(program: &Path, address: u64) -> Option<Vec<String>> {
    let mut lookup = Command::new("addr2line");
    lookup.args(["-f", "-i", "-e"]).arg(program);
    let told = ran(lookup.arg(format!("{address:#x}")))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    Some(told.lines().step_by(2).map(str::to_owned).collect())
}

#[test]
fn an_inlined_function_has_its_instructions_in_all_functions_that_hold_them() {
    let room = directory("annotate-copies");
    let text = "static volatile unsigned sink;\n\
        #define INLINE static inline __attribute__((always_inline))\n\
        INLINE unsigned turn(unsigned n) { return (n << 7 | n >> 25) ^ sink; }\n\
        INLINE unsigned mix(unsigned n) { sink = n * 31; return turn(n) + sink; }\n\
        __attribute__((noinline)) void left(unsigned n) { sink += mix(n) * n; }\n\
        __attribute__((noinline)) void right(unsigned n) { while (n--) sink -= mix(n); }\n\
        int main(void) { left(7); right(9); return 0; }\n";
    let program = room.join("it");
    if compile_text("gcc", &["-O1", "-g", "-no-pie"], text, &program).is_none() {
        return;
    }
    let binary = Binary::open(&program).unwrap();
    let code = binary.code().unwrap();
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(7, "it");
    // Each byte of `left` is sampled once, and of `right` twice.
    let mut expected: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    let (mut time, mut mix_itself) = (0, 0);
    for (holder, times) in [("left", 1), ("right", 2)] {
        let name = |symbol| binary.function_name(symbol);
        let mut functions = binary.functions().iter();
        let symbol = functions.find(|&symbol| name(symbol).as_deref() == Some(holder));
        let symbol = symbol.unwrap();
        let offset = code.piece(symbol.start, symbol.end()).unwrap().offset.0;
        let (page, base) = (offset & !0xfff, symbol.start.0 & !0xfff);
        if holder == "left" {
            recording.mapping(7, program.to_str().unwrap(), (base, 0x2000), page);
        }
        for address in symbol.start.0..symbol.end().0 {
            let Some(functions) = functions_at(&program, address) else {
                return;
            };
            let inlined = &functions[..functions.len() - 1];
            if inlined.iter().any(|name| name == "mix") {
                expected.entry(holder).or_default().insert(address, times);
            }
            mix_itself += if functions[0] == "mix" { times } else { 0 };
            for _ in 0..times {
                time += 10;
                recording.sample(Taken {
                    task: 7,
                    time,
                    user: &[address],
                    period: Some(1),
                    ..Taken::default()
                });
            }
        }
    }
    assert_eq!(expected.len(), 2);
    let data = room.join("perf.data");
    recording.write(&data);
    let data = data.to_str().unwrap();
    let answer = json(&["annotate", "mix", data, "--asm"]);
    assert!(
        answer["code"].is_null() && answer["no_code"].is_null(),
        "{answer}"
    );
    assert_eq!(number(&answer["function"]["self"]), mix_itself);
    let copies = answer["copies"].as_array().unwrap();
    let holders: Vec<_> = (copies.iter())
        .map(|copy| copy["inlined_into"].as_str().unwrap())
        .collect();
    assert_eq!(holders, ["right", "left"]);
    let mut all = 0;
    for copy in copies {
        let mut expected = expected[copy["inlined_into"].as_str().unwrap()].clone();
        for instruction in copy["code"]["instructions"].as_array().unwrap() {
            let (start, length) = (
                number(&instruction["address"]),
                number(&instruction["length"]),
            );
            let bytes = (start..start + length).map(|at| expected.remove(&at).unwrap());
            let weight = bytes.sum::<u64>();
            assert_eq!(number(&instruction["self"]), weight, "{instruction}");
            assert_eq!(number(&instruction["total"]), weight, "{instruction}");
            all += weight;
        }
        assert!(expected.is_empty(), "{expected:?}");
    }
    assert_eq!(number(&answer["function"]["total"]), all);
    let page = proftool(&["annotate", "mix", data, "--asm"])
        .output()
        .unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    let right = page.find("Inlined into right").unwrap();
    assert!(page.find("Inlined into left").unwrap() > right, "{page}");
    assert!(page.contains("(inlined turn)"), "{page}");
}
