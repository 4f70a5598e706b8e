//! The command line of proftool.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
