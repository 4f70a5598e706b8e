//! This machine's files: where programs, libraries, debug files and the kernel's symbols are.
//!
//! ```text
//!   finder      the file that was mapped when a program ran     places      where copies are kept
//!   libraries   what the dynamic linker would load              namespaces  files of containers
//!   kallsyms    the kernel's list of its symbols                vdso        code without a file
//!   kernel_code the kernel's code, in memory or in a vmlinux    perf_maps   generated code
//!   clock       when a sample was taken
//! ```
//!
//! Everything that depends on the machine on which this runs is here; what is inside a file is not.

pub(super) mod clock;
pub(super) mod finder;
pub(super) mod kallsyms;
pub(super) mod kernel_code;
pub(super) mod libraries;
mod namespaces;
pub(super) mod perf_maps;
mod running;
pub(super) mod search_directories;
pub mod vdso;
