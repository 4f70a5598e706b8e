//! Tests that state what happens within a time: a process that ends, a screen that changes, a wait that is
//! measured. They wait for an event, not for a time, wherever there is one.

mod browse;
mod kept_answers;
mod off_cpu;
mod record;
mod record_arguments;
mod record_attach;
mod record_calls_faults;
mod record_calls_killed;
mod record_calls_later;
mod record_calls_limit;
mod record_events;
mod record_jobs;
mod record_kept;
mod record_others;
mod top;
mod top_terminal;
mod views;
