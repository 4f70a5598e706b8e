//! Answers computed from a profile: pure functions, one question a file.
//!
//! | module | question |
//! |---|---|
//! | [`inclusive`] | how much weight is in a function or call path itself, and how much under it? |
//! | [`tree`] | who calls whom from the root inwards, or from the leaf outwards? |
//! | [`call_stacks`] | which distinct stacks have samples, and which calls on them add up to totals? |
//! | [`detail`] | to whom is the time of one function distributed, and from where does it come? |
//! | [`detail::pairs`] | the same of all functions at once: what do callees contribute to callers? |
//! | [`call_sites`] | from which lines does a function call, and from which is it called? |
//! | [`cut`] | how much more may a total be where stacks were cut? |
//! | [`lines`] | on which source lines does a function spend its own weight? |
//! | [`threads`] | which threads and commands does the weight belong to? |
//! | [`threads::timeline`] | and when did threads and functions have it? |
//! | [`waits`] | from which functions do threads leave their processor? |
//! | [`attribution`] | which callers does the weight belong to? The result of the models below |
//! | [`measured`] | which caller is it on behalf of, as stacks show it? |
//! | [`propagation`] | and as gprof estimates it from numbers of calls? |
//! | [`fonseca`] | and inside of cycles? |
//! | [`gprof`] | and which figures does GNU gprof itself make of it, to the last bit? |
//! | [`estimated`] | which totals follow from that where no stacks were recorded? |
//! | [`error`] | how wrong is gprof's estimate, where stacks know better? |
//! | [`sampling_error`] | how far may a share be off because not every event was recorded? |
//! | [`recursion`] | how deep does recursion go? |
//! | [`breaking`] | which arcs make a cycle one? |
//! | [`same_samples`] | which functions are on exactly the same samples? |
//! | [`coverage`] | how much of the code's call graph did samples touch? |
//! | [`flow`] | how much came over each arc, by calls or by weight? |
//!
//! A view shows several answers at once. Each of these computes them in one value, its `Summary`:
//!
//! | module | figures |
//! |---|---|
//! | [`flat`] | of all functions: weights, and what cut stacks hide |
//! | [`report`] | what one wants to know first |
//! | [`function`] | all that is known of one function |
//! | [`annotate`] | of one function by source line and by address of its machine code |
//! | [`graph`] | of callers and callees: the calls that count, their cycles, whose account weight is on |
//! | [`cycles`] | of recursion: what is entered, how deep it goes, what breaks it |
//! | [`owners`] | of crates, libraries and directories |
//! | [`code`] | of the calls that code contains, and what samples showed of them |
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
pub mod function;
pub mod gprof;
pub mod graph;
pub mod inclusive;
pub mod lines;
pub mod measured;
pub mod owners;
pub mod propagation;
pub mod recursion;
pub mod report;
pub mod same_samples;
pub mod sampled_calls;
pub mod sampling_error;
pub mod threads;
pub mod tree;
pub mod waits;
