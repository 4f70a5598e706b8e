//! Tests that state shares of time, or what a program's samples show. A tolerance follows from the number of
//! samples ([`crate::support::repeated`]): which samples are taken is chance.

mod beginnings;
mod call_sites;
mod callgraph;
mod compare;
mod cut_recordings;
mod doctor;
mod false_callers;
mod file_identity;
mod go;
mod identity;
mod record;
mod record_bounds;
mod record_calls;
mod record_calls_later;
mod record_counts;
mod record_crates;
mod record_events;
mod record_jobs;
mod record_others;
mod record_rights;
mod record_stacks;
mod record_whole_stacks;
mod repair;
mod stack_ends;
mod truth;
mod unwind;
