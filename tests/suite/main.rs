//! The test suite: one binary.

#![expect(
    clippy::print_stderr,
    reason = "a test that cannot run here says so, and why"
)]

mod architecture;
mod binary;
mod call_sites;
mod callgraph;
mod cli;
mod corpus;
mod cut;
mod doctor;
mod flat;
mod folded;
mod frame_pointers;
mod gmon;
mod golden;
mod gprof2dot_live;
mod gprof_live;
mod graph;
mod graph_laws;
mod identity;
mod laws;
mod live;
mod off_cpu;
mod propagation;
mod puma;
mod puma_graph;
mod quantify;
mod record;
mod record_attach;
mod record_events;
mod record_others;
mod record_stacks;
mod repair;
mod report;
mod scan;
mod scan_decoding;
mod static_golden;
mod top;
mod tree;
mod truth;
mod unwind;
