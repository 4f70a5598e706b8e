//! `proftool record`.

/// The arguments of `proftool record`.
#[derive(clap::Args)]
pub struct RecordArgs {}

/// Records.
pub fn run(_: RecordArgs) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("recording is not there yet")
}
