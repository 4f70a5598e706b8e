//! Unwinding: rules as binutils reads them, stacks of live recordings, and any number of workers.
//!
//! What needs a compiler or perf that is not there says that it is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::base::{CaveatKind, CodeAddress, Svma};
use proftool::binary::{Binary, FunctionSymbol, SymbolSource};
use proftool::perfdata::Reader;
use proftool::symbolize::{self, Library};
use proftool::trace::{self, Trace, Unwinding};
use proftool::unwind::{
    Arch, Cfa, CodeAt, End, ProcessCode, Registers, Rule, Rules, StackCopy, UnwindRow, Unwinder,
};

use crate::support::elf::Elf;
use crate::support::skipped;
use crate::support::unwind::{RECURSION, compiled, recorded};

/// The registers that rows are compared in, by their names in binutils.
fn number(machine: &str, name: &str) -> Option<u8> {
    let index = |names: &[&str]| names.iter().position(|&other| other == name);
    let at = match machine {
        "x86-64" => index(&[
            "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15", "ra",
        ]),
        "i686" => index(&["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "ra"]),
        "aarch64" => match name {
            "ra" => Some(30),
            "sp" => Some(31),
            _ => name.strip_prefix('x').and_then(|n| n.parse().ok()),
        },
        _ => index(&[
            "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3",
            "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
        ]),
    };
    at.map(|at| at as u8)
}

/// A row in the words of `readelf --debug-dump=frames-interp`, for these columns.
fn told(row: &UnwindRow, machine: &str, columns: &[&str]) -> Vec<String> {
    let cfa = match &row.cfa {
        Cfa::Register { register, offset } => format!("{register}{offset:+}"),
        Cfa::Expression(_) => "exp".to_owned(),
    };
    let cells = columns.iter().filter_map(|name| {
        let number = number(machine, name)?;
        Some(match row.rule(number) {
            None | Some(Rule::Undefined) => "u".to_owned(),
            Some(Rule::Saved(offset)) => format!("c{offset:+}"),
            Some(Rule::Value(offset)) => format!("v{offset:+}"),
            Some(Rule::Register(other)) => format!("r{other}"),
            Some(Rule::SavedAt(_)) => "exp".to_owned(),
            Some(Rule::SavedIfPointed(_) | Rule::SavedInParent(_)) => {
                unreachable!("no rule of DWARF is like this")
            }
            Some(Rule::ValueOf(_)) => "vexp".to_owned(),
        })
    });
    std::iter::once(cfa).chain(cells).collect()
}

/// The same of a line of readelf.
fn read(line: &str, machine: &str, columns: &[&str]) -> Option<(u64, Vec<String>)> {
    // The name of a register that holds another stands in parentheses behind it.
    let mut words = line
        .split_whitespace()
        .filter(|word| !word.starts_with('('));
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let cfa = words.next()?;
    let cfa = match cfa.find(['+', '-']) {
        Some(at) => format!("{}{}", number(machine, &cfa[..at])?, &cfa[at..]),
        None => cfa.to_owned(),
    };
    let mut cells = vec![cfa];
    for (name, word) in columns.iter().zip(words) {
        if number(machine, name).is_some() {
            // A register that keeps its value has no rule here.
            cells.push(if word == "s" { "u" } else { word }.to_owned());
        }
    }
    Some((address, cells))
}

/// Compares the rows of every entry of a file with readelf's; returns how many rows were compared.
fn compare(path: &Path, machine: &str) -> Option<usize> {
    let mut command = Command::new("readelf");
    command.arg("--debug-dump=frames-interp").arg(path);
    // It fails where a file names a debug file that is not there, and yet tells all rows.
    let text = command.output().ok()?.stdout;
    let text = String::from_utf8_lossy(&text);
    let rules = Rules::new(Arc::new(Binary::open(path).unwrap())).unwrap();
    let (mut compared, mut columns, mut end) = (0, Vec::new(), None);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((_, range)) = line.split_once(" pc=") {
            let range = range.split_once("..").unwrap();
            end = u64::from_str_radix(range.1, 16).ok();
        } else if line.contains(" CIE ") || line.contains("ZERO") {
            end = None;
        } else if line.contains("LOC ") && line.contains(" CFA ") {
            columns = line.split_whitespace().skip(2).collect();
        } else if let (Some((address, theirs)), Some(end)) = (read(line, machine, &columns), end) {
            // Of rows at one address the last one counts, and one behind the code none.
            let next = lines.peek().and_then(|next| read(next, machine, &columns));
            if address >= end || next.is_some_and(|(next, _)| next == address) {
                continue;
            }
            let row = rules.row(Svma(address));
            let ours = row.map(|row| told(&row, machine, &columns));
            assert_eq!(ours, Some(theirs), "{}: {line}", path.display());
            compared += 1;
        }
    }
    Some(compared)
}

#[test]
fn rows_are_those_that_readelf_computes() {
    let mut files = vec![];
    for libc in ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"] {
        let is_own = cfg!(target_arch = "x86_64") && Path::new(libc).exists();
        files.extend(is_own.then(|| (PathBuf::from(libc), "x86-64")));
    }
    let compilers = [
        ("x86_64-linux-gnu-gcc", "x86-64"),
        ("i686-linux-gnu-gcc", "i686"),
        ("aarch64-linux-gnu-gcc", "aarch64"),
        ("riscv64-linux-gnu-gcc", "riscv64"),
    ];
    for (compiler, machine) in compilers {
        for (kind, flags) in [
            ("static", &["-O2", "-static"][..]),
            (
                "debug",
                &[
                    "-O2",
                    "-g",
                    "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables",
                ][..],
            ),
        ] {
            let name = format!("rows-{kind}-{machine}");
            let program = compiled(&name, RECURSION, compiler, flags);
            files.extend(program.map(|program| (program, machine)));
        }
    }
    for (file, machine) in files {
        match compare(&file, machine) {
            Some(compared) => assert!(compared > 5, "{}: {compared}", file.display()),
            None => skipped("no readelf"),
        }
    }
}

/// A program where its file says, and nothing else.
struct Alone(Rules);

impl ProcessCode for Alone {
    fn number(&self) -> u32 {
        1
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        match self.0.row(Svma(address)) {
            Some(_) => CodeAt::Ruled {
                file: 0,
                rules: &self.0,
                address: Svma(address),
            },
            None => CodeAt::Unmapped,
        }
    }
}

/// Of a function, an address where the frame is complete: the CFA is so many bytes above the stack
/// pointer, and the return address was saved so many below the CFA.
fn framed(rules: &Rules, binary: &Binary, name: &str, sp: u8) -> (u64, u64, i64) {
    let named = |f: &&FunctionSymbol| binary.function_name(f).is_some_and(|known| known == name);
    let function = binary.functions().iter().find(named).unwrap();
    let addresses = (function.start.0..function.start.0 + function.size).step_by(2);
    let found = addresses.filter_map(|address| {
        let row = rules.row(Svma(address))?;
        match (&row.cfa, row.rule(row.return_address)) {
            (Cfa::Register { register, offset }, Some(Rule::Saved(at))) if *register == sp => {
                Some((address, u64::try_from(*offset).ok()?, *at))
            }
            _ => None,
        }
    });
    let found = found.max_by_key(|(_, size, _)| *size);
    found.unwrap_or_else(|| panic!("{name}: no frame on the stack; {:?}", rules.arch()))
}

/// Stacks of machines that are not this one are made up: from the rules, which the test above
/// holds against readelf's. What is seen here is the walk.
#[test]
fn stacks_of_other_machines_are_unwound() {
    let signature = 0x00a5_0000_0000_0000;
    for (compiler, sp, word, signed) in [
        ("aarch64-linux-gnu-gcc", 31u8, 8, signature),
        ("riscv64-linux-gnu-gcc", 2, 8, 0),
        ("i686-linux-gnu-gcc", 4, 4, 0),
        ("x86_64-linux-gnu-gcc", 7, 8, 0),
    ] {
        let flags = [
            "-O1",
            "-static",
            "-fomit-frame-pointer",
            "-fno-pie",
            "-no-pie",
            "-fasynchronous-unwind-tables",
        ];
        let Some(program) = compiled(compiler, RECURSION, compiler, &flags) else {
            continue;
        };
        let binary = Arc::new(Binary::open(&program).unwrap());
        let rules = Rules::new(binary.clone()).unwrap();
        let turns = ["odd", "even", "odd", "even", "rounds"];
        let frames = turns.map(|name| framed(&rules, &binary, name, sp));
        let start = 0x7fff_0000;
        let mut bytes = vec![0; 4096];
        let mut cfa = 0;
        for (at, (_, size, saved)) in frames.iter().enumerate() {
            cfa += size;
            // Behind the last one there is nothing: 0 is where no code is.
            let caller = frames
                .get(at + 1)
                .map_or(0, |(address, ..)| address | signed);
            let place = usize::try_from(cfa.checked_add_signed(*saved).unwrap()).unwrap();
            bytes[place..place + word].copy_from_slice(&caller.to_le_bytes()[..word]);
        }
        let (arch, code) = (rules.arch(), Alone(rules));
        let registers = Registers::unknown(arch)
            .with(u16::from(sp), start)
            .at(frames[0].0);
        let mut found = Vec::new();
        let unwind = |length: u64, found: &mut Vec<CodeAddress>| {
            let stack = StackCopy {
                thread: 1,
                start,
                bytes: &bytes[..length as usize],
                is_full: true,
            };
            found.clear();
            Unwinder::new().unwind(&code, registers.clone(), stack, found)
        };
        assert_eq!(
            unwind(4096, &mut found),
            End::Outermost,
            "{compiler}: {found:x?}"
        );
        let expected = frames.iter().map(|(address, ..)| *address);
        let recorded: Vec<u64> = found.iter().map(|frame| frame.recorded()).collect();
        assert_eq!(recorded, expected.collect::<Vec<u64>>(), "{compiler}");
        assert!(matches!(found[0], CodeAddress::Instruction(_)));
        assert!(
            found[1..]
                .iter()
                .all(|frame| matches!(frame, CodeAddress::Return(_)))
        );
        // With half of the stack there is half of the frames, and it is told.
        let half = frames[0].1 + frames[1].1;
        assert_eq!(unwind(half, &mut found), End::Copied, "{compiler}");
        assert_eq!(found.len(), 3, "{compiler}");
    }
}

#[test]
fn the_caller_of_a_linkage_stub_without_rules_is_found() {
    let source = "int puts(const char *); int main(void) { puts(\"\"); return puts(\"\"); }";
    let linker = "-Wl,-z,lazy,--no-ld-generated-unwind-info";
    let flags = ["-O1", "-fcf-protection=none", linker];
    let Some(program) = compiled("stubs", source, "x86_64-linux-gnu-gcc", &flags) else {
        return;
    };
    let binary = Arc::new(Binary::open(&program).unwrap());
    let functions = binary.functions().iter();
    let mut stubs = functions.filter(|f| f.source == SymbolSource::Plt);
    let puts = stubs.find(|f| {
        binary
            .function_name(f)
            .is_some_and(|n| n.starts_with("puts"))
    });
    let stub = puts.expect("a stub of puts").start.0;
    let rules = Rules::new(binary.clone()).unwrap();
    let (caller, ..) = framed(&rules, &binary, "main", 7);
    let code = Alone(rules);
    // Before and after the number of the slot is pushed.
    for (at, stack) in [(0, [caller, 0]), (6, [caller, 0]), (11, [1, caller])] {
        let bytes: Vec<u8> = stack.into_iter().flat_map(u64::to_le_bytes).collect();
        let stack = StackCopy {
            thread: 1,
            start: 0x7fff_0000,
            bytes: &bytes,
            is_full: true,
        };
        let registers = Registers::unknown(Arch::X86_64).with(7, stack.start);
        let mut frames = Vec::new();
        Unwinder::new().unwind(&code, registers.at(stub + at), stack, &mut frames);
        let expected = [
            CodeAddress::Instruction(stub + at),
            CodeAddress::Return(caller),
        ];
        assert_eq!(frames[..2], expected, "{at}");
    }
}

/// Of musl's `__restore_rt`, which has neither a size nor rules; the system call takes the registers from
/// the kernel's frame on the stack.
#[test]
fn the_return_from_a_signal_restores_the_registers_on_aarch64() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("restorer-aarch64");
    Elf::with_functions(&[("setjmp", 0x1000, 0), ("raise", 0x1080, 16)]).write(&file);
    let mut bytes = fs::read(&file).unwrap();
    bytes[0x12] = 183;
    // mov x8,#139; svc #0
    bytes[0x1040..0x1048].copy_from_slice(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4]);
    fs::write(&file, bytes).unwrap();
    let binary = Arc::new(Binary::open(&file).unwrap());
    let function = |at| {
        binary
            .function_at(Svma(at))
            .map(|function| function.start.0)
    };
    assert_eq!((function(0x103c), function(0x1040)), (Some(0x1000), None));

    // Each signal came while a handler returned, 0x400 bytes further out.
    let start = 0x7fff_0000_u64;
    let mut stack = vec![0; 0x1000];
    for (frame, sp, pc) in [
        (0, start + 0x400, 0x1044_u64),
        (0x400, start + 0x800, 0x1048),
    ] {
        for (offset, value) in [(560, sp), (568, pc)] {
            let place = frame + offset;
            stack[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    let code = Alone(Rules::new(binary.clone()).unwrap());
    for at in [0x1040, 0x1044, 0x1048] {
        let registers = Registers::unknown(Arch::Aarch64).with(31, start).at(at);
        let copy = StackCopy {
            thread: 1,
            start,
            bytes: &stack,
            is_full: true,
        };
        let mut frames = Vec::new();
        Unwinder::new().unwind(&code, registers, copy, &mut frames);
        assert_eq!(
            frames,
            [at, 0x1044, 0x1048].map(CodeAddress::Instruction),
            "{at:#x}"
        );
    }
    // What a handler returns to is looked up one byte before.
    assert!(
        code.0
            .row(Svma(0x103f))
            .is_some_and(|row| row.is_signal_frame)
    );
}

/// Code without any rules, in one page.
struct Unruled;

impl ProcessCode for Unruled {
    fn number(&self) -> u32 {
        1
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        match address >> 12 {
            1 => CodeAt::Unruled,
            _ => CodeAt::Unmapped,
        }
    }
}

#[test]
fn without_rules_frame_pointers_are_followed_as_far_as_they_lead_outwards() {
    let start = 0x7fff_0000;
    // Where a frame pointer was saved, what it was, and the return address behind it.
    let chain = [(0x20, start + 0x60, 0x1234), (0x60, start + 0x60, 0x1567)];
    let mut bytes = [0; 0x80];
    for (at, pointer, caller) in chain {
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(pointer));
        bytes[at + 8..at + 16].copy_from_slice(&u64::to_le_bytes(caller));
    }
    let stack = StackCopy {
        thread: 1,
        start,
        bytes: &bytes,
        is_full: true,
    };
    let at = |pointer| {
        let registers = Registers::unknown(Arch::X86_64);
        registers.with(6, pointer).with(7, start).at(0x1fff)
    };
    let mut unwinder = Unwinder::new();
    let mut frames = Vec::new();
    let end = unwinder.unwind(&Unruled, at(start + 0x20), stack, &mut frames);
    let returns = [0x1234, 0x1567].map(CodeAddress::Return);
    assert_eq!(frames[0], CodeAddress::Instruction(0x1fff));
    assert_eq!(frames[1..], returns);
    assert_eq!(end, End::Unruled);
    // Nothing that is not in the copy, or not outside of the frame, is a frame pointer.
    for pointer in [0, 1, start - 8, start + 0x21, start + 0x78, u64::MAX] {
        frames.clear();
        let end = unwinder.unwind(&Unruled, at(pointer), stack, &mut frames);
        assert_eq!((frames.len(), end), (1, End::Unruled), "{pointer:#x}");
    }
    frames.clear();
    let nowhere = at(start + 0x20).at(0x5000);
    assert_eq!(
        unwinder.unwind(&Unruled, nowhere, stack, &mut frames),
        End::Broken
    );
    assert_eq!(frames, [CodeAddress::Instruction(0x5000)]);
}

/// The trace of a recording, unwound by so many workers.
fn traced(file: &Path, workers: usize) -> Trace {
    let options = symbolize::Options {
        workers: workers.try_into().unwrap(),
        ..symbolize::Options::default()
    };
    let library = Library::new(options);
    let unwinding = Unwinding {
        rules: &library,
        workers: library.workers(),
    };
    let mut reader = Reader::open(file).unwrap();
    let everything = trace::TimeRange::default();
    trace::read(
        &mut reader,
        everything,
        Some(unwinding),
        None,
        |_| (),
        |_| (),
    )
    .unwrap()
}

#[test]
fn the_trace_is_the_same_for_any_number_of_workers() {
    let Some(program) = compiled("workers", RECURSION, "gcc", &["-O2"]) else {
        return;
    };
    let Some(file) = recorded(&program) else {
        return;
    };
    let one = traced(&file, 1);
    assert!(one.samples.len() > 20);
    assert_eq!(one.caveats.count(CaveatKind::NotUnwound), 0);
    for workers in [2, 3, 8] {
        let other = traced(&file, workers);
        assert_eq!(one.samples, other.samples);
        assert_eq!(one.caveats, other.caveats);
        assert!(one.frames.iter().eq(other.frames.iter()));
        assert!(one.paths.iter().eq(other.paths.iter()));
        assert!(one.images.iter().eq(other.images.iter()));
    }
    let deepest = one.samples.iter().map(|sample| {
        let callers = |path: &_| one.paths[*path].caller;
        std::iter::successors(Some(sample.path), callers).count()
    });
    assert!(deepest.max() > Some(35));
    assert!(
        one.paths
            .iter()
            .enumerate()
            .all(|(at, path)| { path.caller.is_none_or(|caller| caller.index() < at) })
    );
}
