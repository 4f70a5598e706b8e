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
//! use proftool::input;
//!
//! let profile = input::open("perf.data")?;
//! for function in profile.hottest(10) {
//!     let (own, total) = (function.self_weight, function.total);
//!     println!("{own:>12} {total:>12} {}", function.name);
//! }
//! for caveat in profile.caveats.iter() {
//!     eprintln!("note: {caveat}");
//! }
//! # Ok::<(), input::Error>(())
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | open a file of any known kind | [`input::open`], with choices [`input::open_with`] |
//! | list the hottest functions | [`Profile::hottest`](profile::Profile::hottest) |
//! | filter samples, choose an event | [`profile`] |
//! | compute totals, call trees, cycles | [`analysis`], [`callgraph`] |
//! | list the machine code of a function | [`input::MachineCode`] |
//! | make tables and pages of answers | [`view`] |
//! | write text, JSON, CSV, stacks for other tools | [`export`] |
//! | sample a program | [`sampler::record`], [`input::live`] |
//!
//! The other modules serve these and the command. They are not documented here, and may change in
//! any version.
//!
//! # Features
//!
//! All are on by default. With `default-features = false`, the library reads recordings, perf
//! scripts, folded stacks and gmon.out, and computes answers.
//!
//! | feature | adds |
//! |---|---|
//! | `compare` | [`compare`] |
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
pub mod callgraph;
#[cfg(feature = "compare")]
pub mod compare;
#[cfg(feature = "export")]
pub mod export;
pub mod input;
pub mod profile;
#[cfg(feature = "record")]
pub mod sampler;
pub mod view;

#[doc(hidden)]
pub mod binary;
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod frame_pointers;
#[doc(hidden)]
pub mod names;
#[cfg(feature = "record")]
#[doc(hidden)]
pub mod patch;
#[doc(hidden)]
pub mod perfdata;
#[cfg(any(feature = "export", feature = "import"))]
#[doc(hidden)]
pub mod pprof;
#[doc(hidden)]
pub mod scan;
#[doc(hidden)]
pub mod symbolize;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod unwind;
