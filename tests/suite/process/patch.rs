//! The room `patch`: what is written into a program to count its calls is held against a decoder,
//! for programs that compilers make and for files in which anything stands.

use std::fs;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use proftool::base::Svma;
use proftool::binary::{Binary, FunctionSymbol};
use proftool::patch::{self, CallForm, Form, ImagePlan, STUB, StubArea};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::support;

/// Functions that call each other in all forms, and data that look like calls.
const PROGRAM: &str = r#"
__attribute__((noipa)) int leaf(int x) { return x * 3; }
__attribute__((noipa)) int tail(int x) { return leaf(x + 1); }
__attribute__((noipa)) int maybe(int x) { if (x & 1) return leaf(x); return x; }
extern int puts(const char *);
__attribute__((noipa)) int (*volatile pointer)(int) = leaf;
int reads(void);
__asm__(
    ".text\n.globl reads\n.type reads, @function\n"
    "reads: cmp %edi, %esi\n call by_flag\n ret\n.size reads, .-reads\n"
    ".byte 0xe8\n .long leaf - . - 4\n"
    ".type by_flag, @function\n"
    "by_flag: sete %al\n movzbl %al, %eax\n ret\n.size by_flag, .-by_flag\n");
int main(int argc, char **argv) {
    (void)argv;
    puts("x");
    return leaf(argc) + tail(argc) + maybe(argc) + pointer(1) + reads();
}
"#;

fn decoded(bytes: &[u8], at: u64) -> Instruction {
    Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode()
}

/// Where a direct call or jump leads, or the slot of an indirect one.
fn leads(instruction: &Instruction) -> u64 {
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            instruction.near_branch_target()
        }
        FlowControl::IndirectCall | FlowControl::IndirectBranch => {
            assert_eq!(instruction.memory_base(), Register::RIP);
            instruction.memory_displacement64()
        }
        other => panic!("{other:?}"),
    }
}

/// Holds every change and every stub against the decoder. `file` is the same file, read again.
fn check(plan: &ImagePlan, file: &Binary, bias: u64, area: StubArea) {
    let mut end = 0;
    for change in &plan.changes {
        let length = usize::from(change.length);
        let (old, new) = (&change.old[..length], &change.new[..length]);
        assert!(change.at >= end, "changes do not overlap");
        end = change.at + change.length as u64;
        let stated = Svma(change.at.wrapping_sub(bias));
        let function = file.function_at(stated).expect("it is in a function");
        assert!(function.has_stated_end() && Svma(stated.0 + length as u64) <= function.end());
        let before = decoded(old, change.at);
        let after = decoded(new, change.at);
        assert_eq!((before.len(), usize::from(change.length)), (length, length));
        let is_slot = before.is_call_near_indirect() || before.is_jmp_near_indirect();
        let is_jump = matches!(
            before.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        );
        if is_slot {
            assert!(length - after.len() <= usize::from(is_jump), "{new:x?}");
        } else {
            assert_eq!(before.mnemonic(), after.mnemonic());
            assert_eq!(
                old[..length - 4],
                new[..length - 4],
                "only the distance changes"
            );
            let callee = Svma(leads(&before).wrapping_sub(bias));
            let starts = file.function_at(callee).map(|function| function.start);
            assert_eq!(starts, Some(callee));
        }
        let stub = area.stubs + (change.site * STUB) as u64;
        assert_eq!(leads(&after), stub);
        let counter = area.counters + change.site as u64 * 8;
        let bytes = &plan.stubs[change.site * STUB..][..STUB];
        check_stub(bytes, stub, counter, leads(&before), is_slot);
    }
}

fn check_stub(bytes: &[u8], at: u64, counter: u64, callee: u64, is_slot: bool) {
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let mut next = decoder.decode();
    let saves_flags = next.mnemonic() == Mnemonic::Pushfq;
    if saves_flags {
        next = decoder.decode();
    }
    assert_eq!(
        (next.mnemonic(), next.has_lock_prefix()),
        (Mnemonic::Inc, true)
    );
    assert_eq!(next.op0_kind(), OpKind::Memory);
    assert_eq!(next.memory_displacement64(), counter);
    if saves_flags {
        assert_eq!(decoder.decode().mnemonic(), Mnemonic::Popfq);
    }
    let jump = decoder.decode();
    assert_eq!((jump.mnemonic(), leads(&jump)), (Mnemonic::Jmp, callee));
    assert_eq!(jump.is_jmp_near_indirect(), is_slot);
}

fn area_for(bias: u64) -> StubArea {
    StubArea {
        stubs: bias.wrapping_add(0x1000_0000),
        counters: bias.wrapping_add(0x1800_0000),
        offset: 0,
    }
}

fn plan_of(bytes: Vec<u8>, bias: u64) -> Option<ImagePlan> {
    let area = area_for(bias);
    let plan = patch::changes(Binary::from_bytes(bytes.clone()).ok()?, bias, area).ok()?;
    check(&plan, &Binary::from_bytes(bytes).ok()?, bias, area);
    Some(plan)
}

fn program(name: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let directory = support::directory(name);
    let program = support::compile_text("gcc", flags, PROGRAM, &directory.join("prog"))?;
    Some(fs::read(program).unwrap())
}

#[test]
fn programs_are_changed_at_calls_only() {
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("the program is assembly of x86-64");
    }
    for (name, flags) in [
        ("patch-pie", &["-O2"][..]),
        ("patch-fixed", &["-O2", "-no-pie"]),
        ("patch-got", &["-O2", "-fno-plt"]),
        ("patch-stripped", &["-O2", "-s"]),
        ("patch-cet", &["-O2", "-fcf-protection=full"]),
    ] {
        let Some(bytes) = program(name, flags) else {
            return;
        };
        let bias = if flags.contains(&"-no-pie") {
            0
        } else {
            0x5555_5555_4000
        };
        let plan = plan_of(bytes, bias).expect("it is a program");
        assert!(plan.changes.len() >= 5, "{name}: {}", plan.changes.len());
        // One callee reads flags that its caller has set.
        let stubs = plan.stubs.chunks_exact(STUB);
        let saving = stubs.filter(|stub| stub[0] == 0x9c).count();
        assert_eq!(saving, if flags.contains(&"-s") { 0 } else { 1 }, "{name}");
    }
}

/// Data in functions that look like calls of `marked`, next to calls of it.
const DATA_IN_CODE: &str = r#"
__attribute__((noipa)) void marked(void) {}
__asm__(
    ".text\n"
    ".macro literal\n .byte 0xe8\n .long marked - . - 4\n.endm\n"
    ".macro begin name\n .globl \\name\n .type \\name, @function\n \\name:\n.endm\n"
    ".macro end name\n .size \\name, .-\\name\n.endm\n"
    "begin jumps_over\n jmp 1f\n literal\n1: call marked\n ret\nend jumps_over\n"
    "begin behind\n call marked\n ret\n literal\n ret\nend behind\n"
    "begin table\n cmp $2, %edi\n ja 2f\n lea 1f(%rip), %rdx\n mov %edi, %edi\n"
    " movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
    "1: .long 3f - 1b, 2f - 1b, 3f - 1b\n literal\n"
    // Linear decoding finds instructions again.
    " .fill 15, 1, 0x90\n"
    "3: call marked\n2: ret\nend table\n"
    "begin pops\n call 1f\n literal\n1: pop %rax\n call marked\n ret\nend pops\n"
    "begin dies\n mov $60, %eax\n syscall\n hlt\nend dies\n"
    "begin last\n push %rax\n call dies\n literal\n ret\nend last\n"
    "begin overlaps\n test %edi, %edi\n je 1f+1\n1: call marked\n ret\nend overlaps\n"
    "begin unknown\n jmp *%rdi\n literal\n ret\nend unknown\n");
int main(void) { return 0; }
"#;

#[test]
fn data_in_functions_that_look_like_calls_are_left_alone() {
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("the program is assembly of x86-64");
    }
    for flags in [&["-O2"][..], &["-O2", "-no-pie"]] {
        let directory = support::directory("patch-data");
        let program = directory.join("prog");
        let Some(program) = support::compile_text("gcc", flags, DATA_IN_CODE, &program) else {
            return;
        };
        let bytes = fs::read(program).unwrap();
        let file = Binary::from_bytes(bytes.clone()).unwrap();
        let start = |name: &str| {
            let of = |function: &&FunctionSymbol| file.function_name(function).unwrap() == name;
            file.functions().iter().find(of).unwrap().start
        };
        let plan = plan_of(bytes, 0).unwrap();
        let calls = plan.changes.iter().filter(|change| {
            let call = decoded(&change.old[..usize::from(change.length)], change.at);
            leads(&call) == start("marked").0
        });
        let mut callers: Vec<String> = calls
            .map(|change| file.function_at(Svma(change.at)).unwrap())
            .map(|function| file.function_name(function).unwrap().into_owned())
            .collect();
        callers.sort_unstable();
        assert_eq!(
            callers,
            ["behind", "jumps_over", "pops", "table"],
            "{flags:?}"
        );
    }
}

#[test]
fn the_own_test_program_is_changed_at_calls_only() {
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("calls are counted on x86-64 only");
    }
    let own = fs::read(crate::support::record::PROFTOOL).unwrap();
    let plan = plan_of(own, 0x5555_5555_4000).expect("it is a program");
    assert!(plan.changes.len() > 10_000);
}

#[test]
fn what_is_out_of_reach_is_left_alone() {
    let Some(bytes) = program("patch-far", &["-O2"]) else {
        return;
    };
    let area = StubArea {
        stubs: 1 << 40,
        counters: (1 << 40) + (1 << 20),
        offset: 0,
    };
    let plan = patch::changes(Binary::from_bytes(bytes).unwrap(), 0, area).unwrap();
    assert!(plan.changes.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_instruction_keeps_its_length_and_leads_to_the_stub(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..10),
            any::<[u8; 4]>().prop_map(|d| [&[0xe8][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0x67, 0xe8][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0x66, 0x66, 0x48, 0xe8][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0xe9][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0x0f, 0x85][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0xff, 0x15][..], &d].concat()),
            any::<[u8; 4]>().prop_map(|d| [&[0xf2, 0xff, 0x25][..], &d].concat()),
        ],
        at in 0x10_0000_0000u64..0x20_0000_0000,
        away in -0x7fff_0000i64..0x7fff_0000,
    ) {
        if let Some(form) = CallForm::read(&bytes, at) {
            let before = decoded(&bytes, at);
            prop_assert_eq!(before.len(), bytes.len());
            prop_assert_eq!(leads(&before), form.to);
            prop_assert_eq!(
                form.form != Form::Direct,
                before.is_call_near_indirect() || before.is_jmp_near_indirect()
            );
            let stub = at.wrapping_add_signed(away);
            let new = form.led_to(stub, &bytes, at).expect("it is in reach");
            let after = decoded(&new[..bytes.len()], at);
            prop_assert_eq!(leads(&after), stub);
            prop_assert_eq!(after.is_call_near(), before.is_call_near() || before.is_call_near_indirect());
        }
    }
}

/// Files in which anything stands, made of a program by changing some of its bytes.
#[test]
fn hostile_files_are_changed_at_decoded_calls_only() {
    let Some(bytes) = program("patch-hostile", &["-O2"]) else {
        return;
    };
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..200 {
        let mut hostile = bytes.clone();
        for _ in 0..1 + next(60) {
            let at = next(hostile.len());
            hostile[at] = [0xe8, 0xff, 0x15, 0xe9, next(256) as u8][next(5)];
        }
        plan_of(hostile, 0x5555_5555_4000);
    }
}

#[test]
fn files_that_made_a_fuzzer_stop_are_planned() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds/patch");
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(Binary::from_bytes(bytes.clone()).is_ok());
        // That there is nothing to plan is an answer.
        let _ = plan_of(bytes, 0);
    }
}
