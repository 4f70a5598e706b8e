//! Answers computed from a profile: pure functions, one question per file.
//!
//! | module | question |
//! |---|---|
//! | [`inclusive`] | how much weight is in a function or path, and how much in and under it? |
//! | [`tree`] | who calls whom, from the root inwards or from the leaf outwards? |
//! | [`call_stacks`] | which stacks have samples, and which calls on them add up to totals? |
//! | [`detail`] | to which callers does a function's time go, and from which callees is it? |
//! | [`detail::pairs`] | what does each callee contribute to each caller? |
//! | [`call_sites`] | from which lines does a function call, and from which is it called? |
//! | [`cut`] | how much larger can a total be, where stacks were cut? |
//! | [`lines`] | on which source lines does a function spend its self weight? |
//! | [`threads`] | which threads and commands does the weight belong to? |
//! | [`threads::timeline`] | how is the weight of threads and functions distributed over time? |
//! | [`waits`] | from which functions do threads leave their processor? |
//! | [`attribution`] | which callers account for the weight? The result of the models below |
//! | [`measured`] | the same, as stacks show it |
//! | [`propagation`] | the same, as gprof estimates it from numbers of calls |
//! | [`fonseca`] | the same inside cycles, as Fonseca's rule estimates it |
//! | [`gprof`] | which figures does GNU gprof compute, to the last bit? |
//! | [`estimated`] | which totals follow from these estimates, if no stacks were recorded? |
//! | [`error`] | how wrong is gprof's estimate, compared with stacks? |
//! | [`sampling_error`] | how far may a share be off because not every event was recorded? |
//! | [`recursion`] | how deep does recursion go? |
//! | [`breaking`] | the removal of which arcs breaks a cycle? |
//! | [`forwarders`] | which of the user's functions hand nearly all of their time to one other? |
//! | [`places`] | how much of the time is spent in the kernel, in libraries, in programs? |
//! | [`same_samples`] | which functions are on exactly the same samples? |
//! | [`coverage`] | how much of the code's call graph did samples touch? |
//! | [`flow`] | how much came over each arc, by calls or by weight? |
//!
//! A view shows several answers at once. Each of these modules computes them in one value, its
//! `Summary`:
//!
//! | module | figures |
//! |---|---|
//! | [`flat`] | all functions: weights, and what cut stacks hide |
//! | [`report`] | the first questions about a recording |
//! | [`function`] | one function |
//! | [`annotate`] | one function by source line and by address of its machine code |
//! | [`graph`] | the calls that count, their cycles, how weight is shared among callers |
//! | [`cycles`] | recursion: entries of cycles, depths, the calls whose removal breaks them |
//! | [`owners`] | crates, libraries and directories |
//! | [`tree`] | the call tree, and why recursion is collapsed as far as it is |
//! | [`code`] | the calls in the code, and what samples showed of them |
//!
//! All take a [`Profile`](crate::profile::Profile) and a
//! [`Selection`](crate::profile::Selection) of it and give a new value. None does I/O, fails, or
//! recurses; each is a few loops over distinct paths and rows.

pub mod annotate;
pub mod attribution;
pub mod breaking;
pub mod call_sites;
pub mod call_stacks;
pub mod called;
pub mod code;
pub mod coverage;
pub mod cut;
pub mod cycles;
pub mod detail;
pub mod error;
pub mod estimated;
pub mod flat;
pub mod flow;
pub mod fonseca;
pub mod forwarders;
pub mod function;
pub mod gprof;
pub mod graph;
pub mod inclusive;
pub mod lines;
pub mod measured;
pub mod owners;
pub mod places;
pub mod propagation;
pub mod recursion;
pub mod report;
pub mod same_samples;
pub mod sampled_calls;
pub mod sampling_error;
pub mod threads;
pub mod tree;
pub mod waits;
