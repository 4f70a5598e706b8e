//! Where the kernel is entered by an interrupt, an exception or a fault.
//!
//! The stack of such an entry stands on that of the code that was interrupted, so a sample shows
//! the two next to each other. But nothing was called: a function that is interrupted while the
//! handler happens to use it as well does not recurse.

use crate::profile::{Builder, FunctionId};

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
    const STARTS: [&str; 6] = [
        "asm_exc_",
        "asm_sysvec_",
        "asm_common_interrupt",
        "asm_spurious_interrupt",
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
