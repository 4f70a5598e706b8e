//! Stacks of programs at each of their instructions, unwound by `proftool::unwind` and by framehop.
//!
//! The programs (`fixtures/programs/stepped.c`, compiled in several ways) run their code one
//! instruction at a time and write registers and stack of each: prologues and epilogues, stubs of
//! the linker, the C library and signal handlers, all of them and always the same.
//!
//! framehop keeps only three registers: the program counter, the stack pointer and the frame
//! pointer. Where a rule needs another, and where there is no rule, it goes by the frame pointer.
//! Stacks are compared up to such a frame, and only few may have one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use object::{Object, ObjectSection, ObjectSegment};
use proftool::base::{CodeAddress, FileOffset, Svma};
use proftool::binary::Binary;
use proftool::unwind::{
    Arch, Cfa, CodeAt, End, ProcessCode, Registers, Rule, Rules, StackCopy, UnwindRow, Unwinder,
};

use crate::support::{compile, directory, fixture, ran, skipped};

/// Numbers of registers in DWARF.
const RBP: u8 = 6;

const RSP: u8 = 7;

const RIP: u8 = 16;

/// `mov $15,%eax; syscall`: where signal handlers return to, by which gdb knows it too.
const SIGRETURN: &[u8] = b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05";

/// Where registers lie behind the stack pointer of a handler that has returned: `uc_mcontext` of the
/// kernel's `struct ucontext`.
const SAVED_BP: u64 = 40 + 10 * 8;

const SAVED_SP: u64 = 40 + 15 * 8;

const SAVED_PC: u64 = 40 + 16 * 8;

/// Code of a file in the memory of the program.
struct Mapped {
    start: u64,
    end: u64,
    /// What is to be added to an address as the file states it.
    bias: u64,
    rules: Rules,
    code: Vec<u8>,
}

/// The memory of a program, for both unwinders.
struct Process {
    mapped: Vec<Mapped>,
    framehop: UnwinderX86_64<Vec<u8>>,
    /// How far off the rules are: 0 but where a wrong rule is to be seen.
    shift: u64,
}

impl Process {
    /// From what the program says of its memory.
    fn new(maps: &str) -> Process {
        let mut process = Process {
            mapped: Vec::new(),
            framehop: UnwinderX86_64::new(),
            shift: 0,
        };
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [range, rights, offset, _, _, path] = words[..] else {
                continue;
            };
            if rights.contains('x') && path.starts_with('/') {
                let number = |text| u64::from_str_radix(text, 16).unwrap();
                let (start, end) = range.split_once('-').unwrap();
                process.map(
                    Path::new(path),
                    (number(start), number(end)),
                    number(offset),
                );
            }
        }
        process
    }

    fn map(&mut self, path: &Path, (start, end): (u64, u64), offset: u64) {
        let rules = Rules::new(Arc::new(Binary::open(path).unwrap())).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let data = section.uncompressed_data().unwrap().into_owned();
            Some((section.address()..section.address() + section.size(), data))
        };
        let (eh_frame, eh_frame_hdr) = (section(".eh_frame"), section(".eh_frame_hdr"));
        let sections = ExplicitModuleSectionInfo {
            text_svma: section(".text").map(|(range, _)| range),
            got_svma: section(".got").map(|(range, _)| range),
            eh_frame_svma: eh_frame.as_ref().map(|(range, _)| range.clone()),
            eh_frame: eh_frame.map(|(_, data)| data),
            eh_frame_hdr_svma: eh_frame_hdr.as_ref().map(|(range, _)| range.clone()),
            eh_frame_hdr: eh_frame_hdr.map(|(_, data)| data),
            ..ExplicitModuleSectionInfo::default()
        };
        // By the segments of the file, not by what the code under test says of them.
        let segments = file.segments().map(|s| (s.address(), s.file_range()));
        let stated = segments.filter_map(|(address, (from, size))| {
            let holds = (from..from + size).contains(&offset);
            holds.then(|| address + (offset - from))
        });
        let stated = stated.last().unwrap();
        let bias = start - stated;
        assert_eq!(rules.svma(FileOffset(offset)), Some(Svma(stated)));
        let name = path.display().to_string();
        self.framehop
            .add_module(Module::new(name, start..end, bias, sections));
        let (from, size) = (offset as usize, (end - start) as usize);
        let code = bytes[from..bytes.len().min(from + size)].to_vec();
        self.mapped.push(Mapped {
            start,
            end,
            bias,
            rules,
            code,
        });
    }

    fn at(&self, address: u64) -> Option<(usize, &Mapped)> {
        let mut mapped = self.mapped.iter().enumerate();
        mapped.find(|(_, mapped)| (mapped.start..mapped.end).contains(&address))
    }

    /// What the rules say of an address.
    fn row(&self, address: u64) -> Option<UnwindRow> {
        let (_, mapped) = self.at(address)?;
        mapped.rules.row(Svma(address - mapped.bias))
    }

    /// Whether this is where signal handlers return to.
    fn is_sigreturn(&self, address: u64) -> bool {
        let code = self.at(address).and_then(|(_, mapped)| {
            let from = usize::try_from(address - mapped.start).ok()?;
            mapped.code.get(from..)
        });
        code.is_some_and(|code| code.starts_with(SIGRETURN))
    }
}

impl ProcessCode for Process {
    fn number(&self) -> u32 {
        1
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        let Some((file, mapped)) = self.at(address) else {
            return CodeAt::Unmapped;
        };
        CodeAt::Ruled {
            file: file as u32,
            rules: &mapped.rules,
            address: Svma((address - mapped.bias).wrapping_add(self.shift)),
        }
    }
}

/// Registers and stack at one instruction.
struct Moment<'a> {
    registers: [u64; 17],
    stack: StackCopy<'a>,
}

impl<'a> Moment<'a> {
    fn take(bytes: &mut &'a [u8]) -> Option<Moment<'a>> {
        let (words, rest) = bytes.split_first_chunk::<{ 18 * 8 }>()?;
        let word = |at: usize| u64::from_le_bytes(words[at * 8..][..8].try_into().unwrap());
        let registers: [u64; 17] = std::array::from_fn(word);
        let (stack, rest) = rest.split_at(usize::try_from(word(17)).unwrap());
        *bytes = rest;
        Some(Moment {
            registers,
            stack: StackCopy {
                thread: 1,
                start: registers[usize::from(RSP)],
                bytes: stack,
                is_full: false,
            },
        })
    }

    fn pc(&self) -> u64 {
        self.registers[usize::from(RIP)]
    }

    fn word(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.stack.start)?).ok()?;
        let word = self.stack.bytes.get(from..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }
}

/// The addresses of a stack, and whether it ends where a program begins.
#[derive(Debug, Default, PartialEq)]
struct Stack {
    frames: Vec<CodeAddress>,
    is_whole: bool,
}

/// `thread`: an unwinder takes over what is the same in the last stack of that number.
fn ours(process: &Process, moment: &Moment, thread: i32, unwinder: &mut Unwinder) -> Stack {
    let numbered = moment.registers.iter().zip(0u16..);
    let registers = numbered.fold(
        Registers::unknown(Arch::X86_64),
        |known, (&value, number)| known.with(number, value),
    );
    let mut frames = Vec::new();
    let registers = registers.at(moment.pc());
    let stack = StackCopy {
        thread,
        ..moment.stack
    };
    let end = unwinder.unwind(process, registers, stack, &mut frames);
    Stack {
        frames,
        is_whole: end == End::Outermost,
    }
}

fn theirs(process: &Process, moment: &Moment, cache: &mut CacheX86_64) -> Stack {
    let [bp, sp] = [RBP, RSP].map(|number| moment.registers[usize::from(number)]);
    let mut registers = UnwindRegsX86_64::new(moment.pc(), sp, bp);
    let mut stack = Stack::default();
    let mut address = FrameAddress::from_instruction_pointer(moment.pc());
    let mut read = |address| moment.word(address).ok_or(());
    while stack.frames.len() < 1000 {
        stack.frames.push(match address {
            FrameAddress::InstructionPointer(at) => CodeAddress::Instruction(at),
            FrameAddress::ReturnAddress(at) => CodeAddress::Return(at.get()),
        });
        // framehop has no expressions that read memory, by which the rules lead out of a handler:
        // the kernel's `struct sigcontext` on top of the stack says where it was interrupted.
        if process.is_sigreturn(address.address()) {
            *stack.frames.last_mut().unwrap() = CodeAddress::Instruction(address.address());
            let at = registers.sp();
            let saved = [SAVED_BP, SAVED_SP, SAVED_PC].map(|offset| moment.word(at + offset));
            let [Some(bp), Some(sp), Some(pc)] = saved else {
                break;
            };
            registers = UnwindRegsX86_64::new(pc, sp, bp);
            address = FrameAddress::from_instruction_pointer(pc);
            continue;
        }
        let unwinder = &process.framehop;
        let caller = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
        let Ok(Some(caller)) = caller else {
            stack.is_whole = caller == Ok(None);
            break;
        };
        address = FrameAddress::from_return_address(caller).unwrap();
    }
    stack
}

/// What was seen in the stacks of a program.
#[derive(Debug, Default)]
struct Comparison {
    /// The stacks of which both unwinders say the same, to where the program began.
    same: usize,
    /// Those of them that go through a signal handler.
    signals: usize,
    /// The stacks with a frame that framehop cannot leave, which are the same up to there.
    beyond_framehop: usize,
    different: Vec<String>,
}

/// Whether framehop, which knows three registers, can leave a frame by its rules.
fn is_for_framehop(row: &UnwindRow) -> bool {
    let known = |register: &u8| [RBP, RSP].contains(register);
    let cfa = matches!(&row.cfa, Cfa::Register { register, .. } if known(register));
    let is_saved =
        |rule: Option<&Rule>| matches!(rule, None | Some(Rule::Saved(_) | Rule::Undefined));
    row.is_signal_frame || (cfa && is_saved(row.rule(RBP)) && is_saved(row.rule(RIP)))
}

fn compare(process: &Process, mut bytes: &[u8]) -> Comparison {
    let mut compared = Comparison::default();
    let (mut unwinder, mut cache) = (Unwinder::new(), CacheX86_64::new());
    let mut stacks = 1..;
    while let (Some(moment), Some(number)) = (Moment::take(&mut bytes), stacks.next()) {
        let alone = ours(process, &moment, number, &mut unwinder);
        let ours = ours(process, &moment, 0, &mut unwinder);
        assert_eq!(ours, alone, "the last stack changed it");
        let theirs = theirs(process, &moment, &mut cache);
        let last = theirs.frames.iter().position(|frame| {
            let row = process.row(frame.lookup());
            !row.is_some_and(|row| is_for_framehop(&row))
        });
        let to_last = last.map(|last| ..=last);
        if ours == theirs && ours.is_whole {
            compared.same += 1;
            let interrupted = |frame: &CodeAddress| matches!(frame, CodeAddress::Instruction(_));
            compared.signals += usize::from(ours.frames[1..].iter().any(interrupted));
        } else if ours.is_whole
            && to_last.is_some_and(|to| ours.frames.get(to) == theirs.frames.get(to))
        {
            compared.beyond_framehop += 1;
        } else {
            let difference = format!("at {:#x}:\n{ours:x?}\n{theirs:x?}", moment.pc());
            compared.different.push(difference);
        }
    }
    compared
}

/// What the program, compiled, writes: its memory, and its moments.
fn stepped(name: &str, compiler: &str, flags: &[&str]) -> Option<(Process, Vec<u8>)> {
    if !cfg!(target_arch = "x86_64") {
        skipped("single steps are for x86-64");
        return None;
    }
    let folder = directory(&format!("unwind-stepped-{name}"));
    let source = fixture("stepped.c");
    let program = compile(compiler, flags, &source, &folder.join("stepped"))?;
    let file = folder.join("moments");
    let done = ran(Command::new(program).arg(&file))?;
    let maps = String::from_utf8(done.stdout).unwrap();
    let moments = std::fs::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    Some((Process::new(&maps), moments))
}

#[test]
fn stacks_at_every_instruction_are_those_of_framehop() {
    // Without lazy binding, of which the code has frames that framehop cannot leave.
    let bound = "-Wl,-z,now";
    for (name, compiler, flags) in [
        ("plain", "gcc", ["-O0", bound]),
        ("optimized", "gcc", ["-O2", bound]),
        ("pointers", "gcc", ["-fno-omit-frame-pointer", bound]),
        ("lazy", "gcc", ["-Os", "-Wl,-z,lazy"]),
        ("static", "gcc", ["-O3", "-static"]),
        ("clang", "clang", ["-O2", bound]),
    ] {
        let Some((process, moments)) = stepped(name, compiler, &flags) else {
            continue;
        };
        let Comparison {
            same,
            signals,
            beyond_framehop,
            different,
        } = compare(&process, &moments);
        assert_eq!(different, [""; 0], "{name}");
        let beyond = if name == "lazy" { same / 2 } else { same / 20 };
        assert!(
            same > 3000 && signals > 5 && beyond_framehop < beyond,
            "{name}: {same} {signals} {beyond_framehop}"
        );
    }
}

#[test]
fn framehop_would_show_a_wrong_rule() {
    let flags = ["-O2", "-Wl,-z,now"];
    let Some((mut process, moments)) = stepped("wrong", "gcc", &flags) else {
        return;
    };
    // The rule of the byte before: that of another place at the first instruction behind a push.
    process.shift = u64::MAX;
    let compared = compare(&process, &moments);
    assert!(compared.different.len() > 100, "{compared:?}");
    assert!(compared.same > 1000, "{}", compared.same);
}
