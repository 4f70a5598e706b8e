//! The stack of an interrupt stands on that of what it interrupted, but nothing was called.

use std::fs;

use proftool::analysis::cycles::Summary;
use proftool::analysis::graph::Options;
use proftool::export::{Facts, text};
use proftool::input::folded;
use proftool::profile::{EventId, Filter, FunctionId, Profile};
use proftool::view::{Names, Subject, graph};

use crate::support::cli::proftool;
use crate::support::elf::Elf;
use crate::support::identity::json;
use crate::support::written::{CPU_CLOCK, Recording, Taken};

/// `lock` is interrupted, and the handler locks and unlocks, too.
const STACKS: &str = "\
read;lock 10
read;lock;irq;handle;lock 2
read;unlock;irq;handle;lock;unlock 1
walk;walk 4
";

fn page(profile: &Profile) -> (usize, String) {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(profile, &selection, Names::Short);
    let found = Summary::of(profile, &selection, &Options::default());
    assert_eq!(found.recursive.len(), 1, "only walk calls itself");
    let view = graph::arrange(&subject, &found.graph, &graph::Options::default());
    let mut out = Vec::new();
    let look = text::Options {
        width: 200,
        color: false,
    };
    text::write(&mut out, &view.page(&subject), &look, &Facts).unwrap();
    let text = String::from_utf8(out).unwrap();
    (found.graph.cycles.members().len(), text)
}

#[test]
fn an_interrupt_forms_no_cycle() {
    let mut profile = folded::read(STACKS.as_bytes(), &mut |_| {}).unwrap();
    let (cycles, text) = page(&profile);
    assert_eq!(cycles, 1, "as calls they would be a cycle");
    assert!(!text.contains("interrupts"), "{text}");

    let is_entry = |&id: &FunctionId| profile.functions[id].name == "irq";
    let entries = profile.functions.ids().filter(is_entry).collect();
    profile.code.set_interrupts(entries);
    let (cycles, text) = page(&profile);
    assert_eq!(cycles, 0, "{text}");
    let told = "interrupts (not calls): lock → irq (2 samples), unlock → irq (1 sample)";
    assert!(text.contains(told), "{text}");
}

/// The cycles and the functions that call themselves, in a recording of the kernel whose function
/// `entry` stands between `lock` and the handler that locks again.
fn recorded(entry: &str) -> (usize, usize) {
    const START: u64 = 0xffff_ffff_c000_0000;
    let functions = ["read", "lock", entry, "handle"];
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(7, "app");
    for (index, name) in (0..).zip(functions) {
        recording.kernel_function(name, START + index * 0x100, 0x100);
    }
    let [read, lock, entry_at, handle] = [0, 1, 2, 3].map(|index| START + index * 0x100 + 0x10);
    let stacks: [&[u64]; 3] = [
        &[lock, read],
        &[lock, handle, entry_at, lock, read],
        &[handle, entry_at, lock, read],
    ];
    for (time, kernel) in (1000..).zip(stacks) {
        recording.sample(Taken {
            task: 7,
            time,
            kernel,
            ..Taken::default()
        });
    }
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let data = directory.join(format!("interrupts-{entry}.data"));
    recording.write(&data);
    let mut command = proftool(&["cycles", "--format", "json"]);
    let output = command.arg(&data).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| json[key].as_array().unwrap().len();
    assert_eq!(json["samples"], 3, "{json}");
    (count("cycles"), count("recursive"))
}

#[test]
fn a_recorded_interrupt_of_the_kernel_forms_no_cycle() {
    assert_eq!(recorded("asm_sysvec_apic_timer_interrupt"), (0, 0));
    assert_eq!(recorded("el1h_64_irq"), (0, 0));
    // A function that is called makes it one.
    assert_eq!(recorded("deliver"), (1, 0));
}

/// The functions of user code that samples are in, by how the kernel was entered: an instruction
/// after a system call is in `next`, which begins there.
#[test]
fn a_sample_in_a_system_call_is_in_the_function_that_made_it() {
    const USER: u64 = 0x40_1000;
    const KERNEL: u64 = 0xffff_ffff_c000_0000;
    let directory = crate::support::directory("system-call");
    let program = directory.join("app");
    Elf::with_functions(&[("make", 0x1000, 0x40), ("next", 0x1040, 0x40)]).write(&program);
    let mut bytes = fs::read(&program).unwrap();
    bytes[0x103e..0x1040].copy_from_slice(&[0x0f, 0x05]);
    fs::write(&program, bytes).unwrap();
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(7, "app");
    recording.mapping(7, program.to_str().unwrap(), (USER, 0x1000), 0x1000);
    let names = [
        "entry_SYSCALL_64_after_hwframe",
        "asm_exc_page_fault",
        "work",
    ];
    for (index, name) in (0..).zip(names) {
        recording.kernel_function(name, KERNEL + index * 0x100, 0x100);
    }
    let [call, fault, work] = [0, 1, 2].map(|index| KERNEL + index * 0x100 + 0x10);
    let samples: [(&[u64], u64); 6] = [
        (&[work, call], USER + 0x40),
        (&[work, call], USER + 0x40),
        (&[work, fault], USER + 0x40),
        (&[], USER + 0x40),
        // Where no system call is, nothing was called.
        (&[work, call], USER + 0x48),
        (&[work, fault], USER + 0x20),
    ];
    for (time, (kernel, user)) in (1000..).zip(&samples) {
        recording.sample(Taken {
            task: 7,
            time,
            kernel,
            user: &[*user],
            ..Taken::default()
        });
    }
    let data = directory.join("perf.data");
    recording.write(&data);
    let flat = json(&["flat", "--min", "0"], &data);
    let total = |name: &str| {
        let mut rows = flat["functions"].as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap()["total"].as_u64()
    };
    assert_eq!([total("make"), total("next")], [Some(3), Some(3)], "{flat}");
}
