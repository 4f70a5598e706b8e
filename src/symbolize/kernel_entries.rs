//! How the kernel is entered: by a system call, or by an interrupt, an exception or a fault.
//!
//! The stack of an interrupt stands on that of the code that was interrupted, so a sample shows
//! the two next to each other. But nothing was called: a function that is interrupted while the
//! handler happens to use it as well does not recurse.
//!
//! In a system call, the user's address is that of the instruction after it, as with callers. That
//! may be the code of another inlined function.

use rustc_hash::FxHashSet;

use crate::base::{Avma, CodeAddress, IdVec, Svma};
use crate::profile::{Builder, FunctionId};
use crate::scan;
use crate::trace::{FrameAddress, FrameId, Image, ImageId};

use super::address_lookup::in_ranges;
use super::name_source::NameSource;

/// Puts user code that has entered the kernel at its system call, where it made one.
pub(super) fn place(
    frames: &mut IdVec<FrameId, FrameAddress>,
    images: &IdVec<ImageId, Image>,
    name_sources: &IdVec<ImageId, NameSource>,
) {
    let mut interrupts: FxHashSet<u32> = FxHashSet::default();
    for frame in frames
        .iter()
        .filter(|frame| images[frame.image].kind.is_kernel())
    {
        let at = frame.address.lookup();
        let name = match &name_sources[frame.image] {
            NameSource::Kernel(symbols, moved) => {
                let function = symbols.at(Avma(at.wrapping_add(*moved)));
                function.map(|function| function.name)
            }
            NameSource::Ranges(ranges) => in_ranges(ranges, at).map(|(.., name)| name),
            _ => None,
        };
        if name.is_some_and(is_entry) {
            interrupts.insert(frame.address.recorded() as u32);
        }
    }
    for frame in frames.iter_mut() {
        let CodeAddress::InKernel { address, entry } = frame.address else {
            continue;
        };
        let before = match &name_sources[frame.image] {
            NameSource::Binary(binary, _) if !interrupts.contains(&entry) => name_sources
                [frame.image]
                .svma(address)
                .and_then(|Svma(at)| scan::system_call_before(binary, Svma(at))),
            _ => None,
        };
        let length = before.unwrap_or(0);
        frame.address = CodeAddress::Instruction(address.saturating_sub(length));
    }
}

/// Notes the entries among the kernel's functions.
pub(super) fn note(builder: &mut Builder) {
    let entries: Vec<FunctionId> = builder
        .functions()
        .filter_map(|(id, function)| {
            let name = function.linkage_name.as_deref().unwrap_or(&function.name);
            (builder.is_kernel_module(function.module) && is_entry(name)).then_some(id)
        })
        .collect();
    builder.interrupts(entries);
}

/// Whether the kernel calls its entry for interrupts, exceptions or faults this: on x86-64 from 5.8
/// (`asm_exc_page_fault`) and before, on AArch64 and on RISC-V.
fn is_entry(name: &str) -> bool {
    const STARTS: [&str; 8] = [
        "asm_exc_",
        "asm_sysvec_",
        "asm_common_interrupt",
        "asm_spurious_interrupt",
        "el0_irq",
        "el0t_64_irq",
        "el1h_64_",
        "el1t_64_",
    ];
    const NAMES: [&str; 18] = [
        "apic_timer_interrupt",
        "async_page_fault",
        "call_function_interrupt",
        "call_function_single_interrupt",
        "common_interrupt",
        "el1_error",
        "el1_irq",
        "el1_sync",
        "error_entry",
        "general_protection",
        "handle_exception",
        "irq_work_interrupt",
        "nmi",
        "page_fault",
        "reschedule_interrupt",
        "ret_from_intr",
        "xen_hvm_callback_vector",
        "hypervisor_callback",
    ];
    STARTS.iter().any(|start| name.starts_with(start)) || NAMES.contains(&name)
}
