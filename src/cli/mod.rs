//! The command line.

mod record;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Where a program spends its time, truthfully.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Record a command's samples into a perf.data file.
    Record(record::RecordArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Commands::Record(args) => record::run(args),
    };
    result.unwrap_or(ExitCode::FAILURE)
}
