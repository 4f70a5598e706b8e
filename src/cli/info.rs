//! `proftool info`.

use std::process::ExitCode;

use proftool::export::json;
use proftool::input;
use proftool::view::info;

use super::advice::Situation;
use super::answer::{self, Forms};
use super::look::Output;
use super::progress::Meter;
use super::query::{FoldedInput, InputFile, file_in_command};

/// The arguments of `proftool info`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputFile,
    #[command(flatten)]
    folded: FoldedInput,
    #[command(flatten)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  perf record -o - ./app | proftool info -
  proftool info --format json | jq .records";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut meter = Meter::new();
    let opened = input::contents(
        args.input.path(),
        args.folded.weights(),
        &mut |done, total| meter.show(done, total),
    );
    let contents = opened?;
    drop(meter);
    let forms = Forms {
        page: &|| info::page(&contents),
        table: &|| info::events(&contents),
        json: &|out, advice| json::info::write(out, &contents, advice),
        dot: None,
    };
    let file = file_in_command(args.input.path());
    let situation = Situation::Info { file };
    answer::give(&args.output, &situation, &contents.caveats, &forms)
}
