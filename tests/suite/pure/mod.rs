//! Tests without a process or a clock: the same verdict each time. They never repeat.

mod annotate;
mod architecture;
mod corpus;
mod cut_laws;
mod exports;
mod flat;
mod function_names;
mod gmon;
mod gmon_estimates;
mod graph_laws;
mod imports;
mod laws;
mod library;
mod propagation;
mod report;
mod report_paths;
mod report_rows;
mod sampling_error;
mod text_width;
mod timeline;
mod timeline_parts;
mod tree;
mod waiting_pages;
