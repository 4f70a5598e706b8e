//! Targets: the processes that are sampled, and what they ran before the first sample.
//!
//! ```text
//!   target      which tasks: a command, processes, threads, a control group, processors
//!   command     finds the program to start       child       starts it, held before its exec
//!   process     what one process is              descendants what it has started
//!   existing    threads and mappings of before, as the records that the kernel would have written
//!   mapped      the lines of /proc/PID/maps      elsewhere   files of containers
//!   perf_maps   lists of the code that programs of containers generate       jit_dumps  with times
//!   mapped_files what is known of files without a build ID
//!   tracee      a child that is traced until its calls are counted
//! ```
//!
//! All of it comes from `/proc`, control groups and system calls about processes. It is apart from
//! the events because the same target is opened with any of them.

pub(super) mod cgroup;
pub(super) mod child;
pub(super) mod command;
pub(super) mod command_error;
pub(super) mod descendants;
pub(super) mod elf_notes;
pub(super) mod existing;
mod interpreter;
pub(super) mod jit_dumps;
pub(super) mod job_name;
pub(super) mod mapped;
pub(super) mod mapped_files;
pub(super) mod other_namespaces;
pub(super) mod perf_maps;
pub(super) mod process;
mod program_search;
pub(super) mod target;
pub(super) mod tracee;
