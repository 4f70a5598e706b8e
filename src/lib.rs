//! proftool: a sampling profiler for Linux that tells the truth about where time goes, also
//! where the program recurses. This page is the map of the house.
//!
//! There are two wings and one hall. The **source wing** knows Linux, ELF and DWARF; the
//! **meaning wing** knows none of them. They meet in the hall, [`profile`], and nowhere else. Data
//! walks through once, in one direction; no room reaches back; a room's name is the noun it owns.
//!
//! ```text
//!              source wing                        hall              meaning wing
//!
//! kernel ─▶ sampler ─▶ Record ◀─ perfdata ◀─ perf.data
//!                        │
//!                        ▼  unwind (copied stacks)
//!                      trace ─▶ Trace ──┐
//!                                       ├▶ symbolize ─▶ PROFILE ─┬▶ analysis ─▶ totals, CallTree, …
//! ELF ─▶ binary ─▶ Binary ─▶ scan ─▶ Calls          ▲            │     ▲                   │
//!                                                   │            └▶ callgraph ─▶ CallGraph ▼
//! folded text, gmon.out ── input ───────────────────┘                            view ─▶ export ─▶ bytes
//! ```
//!
//! [`sampler`] makes the same records that [`perfdata`] reads from a file: there is one path for
//! recordings of any origin. [`input`] walks the source wing for whoever has a file and wants a
//! profile; [`input::live`] walks it over and over while something is sampled.
//!
//! # Rooms
//!
//! A file or folder directly below `src/` is a room. A room names only rooms of its last column.
//! `tests/suite/architecture.rs` reads the four tables of this page and holds them against the
//! code; to move a wall, change the table first.
//!
//! | room | owns | may import |
//! |---|---|---|
//! | `base` | addresses, ids, interned names, events, caveats | std |
//! | `files` | opening what an input names: looked at first, regular files only, below a root | std |
//! | `perfdata` | the perf.data format, both directions: reader, writer, record | base |
//! | `sampler` | kernel events: perf_event_open, ring buffers, the child, synthesis from /proc | perfdata files base |
//! | `binary` | one opened ELF file: symbols, lines and inlined calls, debug files, build id; what they may cost | files base |
//! | `scan` | the calls in machine code: where, to what, of which kind | binary base |
//! | `frame_pointers` | which functions keep a frame pointer, and whether stacks can be recorded by them | scan binary base |
//! | `unwind` | user stack and registers to return addresses, by the rules of DWARF | binary perfdata base |
//! | `trace` | what happened, in addresses: images, threads, address paths, samples | perfdata unwind base |
//! | `profile` | functions, call paths (parent before child), samples, filters: the hall | base |
//! | `symbolize` | addresses to functions, distinct addresses only, on stacks held against the code; where the wings join | trace unwind scan binary profile base |
//! | `callgraph` | one node a function, one arc a pair: observed, in the code; cycles | profile base |
//! | `analysis` | pure functions over a profile, one question a file: totals, call tree, function detail, time by gprof's and other models | callgraph profile base |
//! | `view` | answers arranged as tables of typed cells | analysis callgraph profile base |
//! | `export` | bytes: text, JSON, CSV, folded, gprof's text; one file or folder a format | view analysis callgraph profile base |
//! | `input` | a file of any known kind, or what is being sampled, to a profile | sampler perfdata trace symbolize scan binary profile base |
//! | `cli` | the command line; sees the library as any user does | the library's public items |
//! | `main` | the start of the program, and its exit status | cli, the library's public items |
//!
//! A folder of a room that could stand alone is a room in the room: it names what is listed here of
//! the room around it, which sees nothing of it but its page.
//!
//! | room in a room | owns | may import of the room around it |
//! |---|---|---|
//! | `cli/top` | the live screen: what it shows, its keys, its threads | advice failure look record sampling |
//!
//! Inside a room, files do not import each other in circles, and no folder has more than 25 files. A
//! page (`mod.rs`) and the files below it count as one.
//!
//! `main.rs` declares `mod cli;` and this file does not: the command line cannot name a private
//! item. Globs import nothing but the variants of an enum, and in a room's own `mod tests` what
//! stands around it.
//!
//! # Packages
//!
//! | package | at home in |
//! |---|---|
//! | `linux-perf-event-reader` | perfdata, trace, input |
//! | `byteorder` | perfdata |
//! | `zstd-safe` | perfdata |
//! | `tempfile` | perfdata |
//! | `libc` | sampler, binary, input |
//! | `perf-event-open-sys` | sampler |
//! | `rustix` | files, binary |
//! | `cpp_demangle` | binary |
//! | `flate2` | binary |
//! | `gimli` | binary, unwind |
//! | `lzma-rust2` | binary |
//! | `memchr` | binary, scan |
//! | `object` | binary |
//! | `rustc-demangle` | binary |
//! | `iced-x86` | scan, frame_pointers |
//! | `petgraph` | callgraph, analysis |
//! | `regex` | profile, view, cli |
//! | `serde` | export |
//! | `serde_json` | export |
//! | `unicode-width` | export |
//! | `anstyle` | export, cli |
//! | `anyhow` | cli, main |
//! | `clap` | cli |
//! | `clap_complete` | cli |
//! | `clap_mangen` | cli |
//! | `roff` | cli |
//! | `toml` | cli |
//! | `indicatif` | cli |
//! | `crossterm` | cli |
//! | `ratatui` | cli |
//! | `signal-hook` | cli |
//! | `terminal_size` | cli |
//! | `hashbrown` | base, unwind, trace, profile, symbolize |
//! | `rpds` | trace |
//! | `twox-hash` | trace |
//! | `rustc-hash` | every room |
//! | `thiserror` | every room |
//! | `std::fs` | files, sampler, perfdata, binary, trace, symbolize, input, cli |
//! | `std::process` | sampler, cli, main |
//! | `std::net` | nowhere |
//!
//! The last three rows are walls of another kind: the meaning wing does no I/O, only the recorder
//! starts a program, and nothing is ever fetched.
//!
//! # Texts
//!
//! Only `cli` speaks to a person about commands. The library states facts as kinds and data, with a
//! neutral line where a text is needed; outside of `cli` no string literal names an option, a
//! `sysctl`, or a `proftool` command. Writers of pages and documents ask the caller's
//! [`export::Advice`] what can be done.
//!
//! # Unsafe code
//!
//! | file with unsafe code | what for |
//! |---|---|
//! | `sampler/targets/child.rs` | what runs between fork and exec |
//! | `sampler/kernel.rs` | system calls for kernel events, processor time and turns, as safe functions |
//! | `sampler/rings/ring.rs` | the ring buffers that the kernel writes |
//! | `sampler/signals.rs` | signal masks and descriptors |
//! | `binary/host/vdso.rs` | the vdso, which is memory of this process |
//!
//! # Glossary
//!
//! One word for one thing, in code, messages and documents.
//!
//! | word | meaning |
//! |---|---|
//! | sample | one interruption of a thread: time, thread, stack of addresses, period |
//! | event | what is counted until it interrupts: `cycles`, `cpu-clock`, page faults |
//! | period | how much of the event passed since the sample before |
//! | weight | what a sample counts for: its period, or 1 if samples are counted |
//! | stack | the addresses of a sample, leaf first as the kernel gives them |
//! | call path | the functions of a stack, outermost first, inlined functions included |
//! | frame | one place on a stack or call path |
//! | place | in a profile: a call path with the source lines from which its calls were made |
//! | leaf, root | the last and the first function of a call path |
//! | function | an identity, module and start; never a name: two functions may share one |
//! | caller, callee | the two ends of a call |
//! | call site | an instruction that calls |
//! | tail call | a jump to another function, which returns to the caller's caller |
//! | import | a function that the file calls by name and that another file defines |
//! | slot | a pointer in memory that calls go through |
//! | arc | a caller and a callee as a pair, whatever the number of calls |
//! | off-CPU | of a thread: not on a processor, from the switch away to the switch back |
//! | blocked | off-CPU as it slept or waited: event `off-cpu` |
//! | preempted | off-CPU although it could have run, as another thread did: event `preempted` |
//! | self | the weight of samples whose leaf is the function |
//! | total | the weight of samples with the function anywhere on the path, each counted once |
//! | live | of what is being sampled, without a file |
//! | round | one look at the buffers of all processors |
//! | fading | counting samples for less the longer ago they were |
//! | mark | what stands outermost on a stack that is not whole: `[truncated]`, `[broken stack]` |
//! | range | a total that is known as at least and at most, as stacks were cut |
//! | cut function | the outermost function that a cut stack still shows |
//! | recursion | a function on its own call path, at once (direct) or through others (indirect) |
//! | stub | a call in a tree that is folded into a node above it |
//! | cycle | functions that all reach each other by calls |
//! | group | a cycle as a whole, or a function outside of all cycles |
//! | flow | how much came over an arc, calls or weight: how callers share a callee's time |
//! | image | a file as it is mapped in a process at a place and time |
//! | module | a file that functions come from, as a person knows it: program, library, kernel |
//! | mapping | a range of a process's addresses that shows a part of an image |
//! | build id | the fingerprint of a linked file, in its notes and in recordings |
//! | Avma | an address in the memory of a process, as samples have it |
//! | Svma | an address as the ELF file states it, before it is moved to where it is loaded |
//! | gmon.out | what a program built with `-pg` leaves: a histogram of addresses, and counted calls |
//! | tick | one sample of a histogram |
//! | calls | how often a function was called, where it was counted; never a weight |
//! | caveat | something that could not be known, counted and told with every view |
//!
//! # Where to add what
//!
//! | for | add |
//! |---|---|
//! | a record type of perf.data | its layout in `perfdata`, its meaning in `trace` |
//! | a place where debug files are found | a step of the search in `binary` |
//! | another input format | a file in `input`, and an arm where the kind of a file is told |
//! | an analysis | a file in `analysis`: values in, a new value out, total for every profile |
//! | a check of doctor | a function in `cli/doctor`, over what `sampler`, `binary` or `frame_pointers` know |
//! | a view | a file in `view`, a subcommand in `cli` |
//! | a view of the live screen | a file in `cli/top` that makes lines of what a view has, an arm where it is prepared |
//! | an exporter | a file in `export`, and an arm where the format is chosen |
//! | a reason why something is not known | a kind of [`base::Caveat`] with its fact, its advice in `cli/advice` |
//! | advice on a fact | a sentence in `cli/advice`; the library has no flags, settings or commands in its texts |
//! | a room | a row above, below everything that it imports |
//! | a package | a row above; its types stay in its room |

pub mod analysis;
pub mod base;
pub mod binary;
pub mod callgraph;
pub mod export;
pub mod files;
pub mod frame_pointers;
pub mod input;
pub mod perfdata;
pub mod profile;
pub mod sampler;
pub mod scan;
pub mod symbolize;
pub mod trace;
pub mod unwind;
pub mod view;
