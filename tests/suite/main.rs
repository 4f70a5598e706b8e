//! The test suite: one binary.

#![expect(
    clippy::print_stderr,
    reason = "a test that cannot run here says so, and why"
)]

mod annotate;
mod annotate_code;
mod architecture;
mod binary;
mod call_sites;
mod callgraph;
mod cli;
mod corpus;
mod cut;
mod cut_laws;
mod cut_recordings;
mod cycles_page;
mod doctor;
mod exports;
mod filters;
mod flat;
mod folded;
mod frame_pointers;
mod gmon;
mod gmon_estimates;
mod gmon_truth;
mod go;
mod golden;
mod gprof2dot_live;
mod gprof_live;
mod graph;
mod graph_laws;
mod hostile;
mod identity;
mod imports;
mod interrupts;
mod jitdump;
mod json_text;
mod laws;
mod live;
mod manual;
mod off_cpu;
mod propagation;
mod puma;
mod puma_graph;
mod quantify;
mod record;
mod record_attach;
mod record_bounds;
mod record_counts;
mod record_events;
mod record_kept;
mod record_others;
mod record_rights;
mod record_stacks;
mod record_whole_stacks;
mod repair;
mod report;
mod report_rows;
mod sampling_error;
mod scan;
mod scan_decoding;
mod scan_inside;
mod scan_single;
mod static_golden;
mod support;
mod text_width;
mod top;
mod top_terminal;
mod tree;
mod tree_page;
mod truth;
mod unwind;
mod unwind_oracle;
mod written;
