//! Writes results as bytes, one format per file.
//!
//! | module | format | from |
//! |---|---|---|
//! | [`text`] | aligned tables for a terminal | a [`Page`](crate::view::page::Page) |
//! | [`csv`] | RFC 4180 | a [`Table`](crate::view::table::Table) |
//! | [`dot`] | Graphviz | a [`Drawing`](crate::view::drawing::Drawing) |
//! | [`json`] | schema `proftool/1` | each view |
//! | [`folded`] | folded stacks | a call tree |
//! | [`pprof`] | pprof's protobuf | [`CallStacks`](crate::analysis::call_stacks::CallStacks) |
//! | [`callgrind`] | costs and calls for callgrind_annotate and KCachegrind | call stacks |
//! | [`speedscope`] | the JSON of speedscope | call stacks |
//! | [`firefox`] | a processed profile of the Firefox Profiler | call stacks |
//! | [`otlp`] | OpenTelemetry's profiles | call stacks |
//! | `parquet` | a table for databases, by the feature `parquet` | call stacks |
//! | [`perf_script`] | the text of perf script | call stacks |
//! | [`svg`] | a flame graph | a call tree and its frames |
//! | [`html`] | one page for a browser | all views of an event |
//! | [`bolt`] | calls for llvm-bolt | counted or sampled calls |
//! | [`gprof`] | the text of GNU gprof 2.40 | a profile of a gmon.out |
//! | [`puma`] | the table of HP's Puma | a call tree |
//!
//! Names come from outside and may hold anything. Each writer makes them safe in the way of its
//! format, so that no text ever has a control character, a C1 code or a mark that reorders
//! text. Writers return the errors of their output, and no others.
//!
//! Writers state facts. The caller's [`Advice`] adds what a person can do.

mod advice;
pub mod bolt;
pub mod callgrind;
pub mod csv;
pub mod dot;
pub mod firefox;
pub mod folded;
pub mod gprof;
pub mod html;
pub mod json;
mod locations;
pub mod markdown;
mod naming;
pub mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perf_script;
pub mod pprof;
pub mod puma;
mod sentences;
pub mod shown;
pub mod speedscope;
pub mod svg;
pub mod text;

pub use advice::{Advice, Facts};
