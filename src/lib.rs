//! Reads recordings of Linux programs, resolves every address to its function, and computes where
//! the time goes: the library behind the command `proftool`.
//!
//! A sample counts once in a function's total, however often the function is on its stack. So no
//! total exceeds 100 %, even in recursive programs. Everything unknown (lost samples, truncated
//! stacks, missing symbols) is counted in [`base::Caveats`], which every profile has.
//!
//! # The hottest functions of a recording
//!
//! ```no_run
//! use std::path::Path;
//!
//! use proftool::analysis::inclusive;
//! use proftool::input::{self, Options};
//! use proftool::profile::Filter;
//!
//! let path = Path::new("perf.data");
//! let profile = input::open(path, &Options::default(), &mut |_done, _total| ())?;
//! let event = profile.main_event().ok_or("no samples")?;
//! let selection = profile.select(event, &Filter::default());
//! let weights = inclusive::by_function(&profile, &selection);
//!
//! let mut functions: Vec<_> = profile.functions.ids().collect();
//! functions.sort_by_key(|&id| std::cmp::Reverse(weights.self_weight[id]));
//! for &id in functions.iter().take(10) {
//!     let (own, total) = (weights.self_weight[id], weights.total[id]);
//!     println!("{own:>12} {total:>12} {}", profile.functions[id].name);
//! }
//! for caveat in profile.caveats.iter() {
//!     eprintln!("note: {caveat}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | open a file of any known kind | [`input::open`] |
//! | filter samples, choose an event | [`profile`] |
//! | compute totals, call trees, cycles | [`analysis`], [`callgraph`] |
//! | list the machine code of a function | [`input::MachineCode`] |
//! | make tables and pages of answers | [`view`] |
//! | write text, JSON, CSV, stacks for other tools | [`export`] |
//! | encode or decode pprof's profiles | [`pprof`] |
//! | sample a program | [`sampler::record`], [`input::live`] |
//! | read or write perf.data itself | [`perfdata`] |
//! | find the calls in machine code | [`scan`] |
//! | count the calls of a program that was not built for it | [`patch`] |
//!
//! # Features
//!
//! All are on by default. With `default-features = false`, the library reads recordings, perf
//! scripts, folded stacks and gmon.out, and computes answers.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` | the command `proftool`, and all features below but `parquet` |
//! | `export` | [`export`] |
//! | `import` | reading profiles of pprof and speedscope by [`input`] |
//! | `parquet` | [`export::parquet`], with `export` |
//! | `record` | [`sampler`], [`patch`] and [`input::live`] |
//! | `xz` | the symbols that Fedora packs into stripped programs (`.gnu_debugdata`) |
//!
//! A file may need a feature that the build lacks. That is reported: for formats as
//! [`Reason::NotBuiltIn`](input::Reason::NotBuiltIn), for symbols as a caveat of the profile.
//!
//! # Conventions
//!
//! Values are in the event's own unit: nanoseconds for clocks and off-CPU time, else occurrences.
//! Nothing here prints, and nothing but [`sampler`] starts a program. `src/ARCHITECTURE.md`
//! describes how the code is laid out, and why.

#[doc = include_str!("ARCHITECTURE.md")]
mod architecture {}

pub mod analysis;
pub mod base;
pub mod binary;
pub mod cache;
pub mod callgraph;
#[cfg(feature = "export")]
pub mod export;
pub mod files;
pub mod frame_pointers;
pub mod input;
pub mod names;
#[cfg(feature = "record")]
pub mod patch;
pub mod perfdata;
#[cfg(any(feature = "export", feature = "import"))]
pub mod pprof;
pub mod profile;
#[cfg(feature = "record")]
pub mod sampler;
pub mod scan;
pub mod symbolize;
pub mod trace;
pub mod unwind;
pub mod view;
