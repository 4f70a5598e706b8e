//! Manual pages and shell completions, made from the same definitions as `--help`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap_complete::Shell;
use roff::{Roff, bold, roman};

use super::super::answer;
use super::{TOPICS, Topic};

// Where manual pages come from, at their foot.
const SOURCE: &str = concat!("proftool ", env!("CARGO_PKG_VERSION"));

/// The arguments of `proftool man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Where man1 and man7 go, such as ~/.local/share/man.
    directory: PathBuf,
}

/// The arguments of `proftool completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  proftool completions bash > \\
      ~/.local/share/bash-completion/completions/proftool
  proftool completions zsh > ~/.zfunc/_proftool
  proftool completions fish > ~/.config/fish/completions/proftool.fish")]
pub struct CompletionArgs {
    /// The shell.
    shell: Shell,
}

// Writes a manual page for proftool, each command and each topic.
pub fn man(args: &ManArgs, mut grammar: clap::Command) -> anyhow::Result<ExitCode> {
    grammar.build();
    let directory = &args.directory;
    let failed = || format!("could not write to {}", directory.display());
    let mut written = 0;
    for command in [&grammar].into_iter().chain(grammar.get_subcommands()) {
        // The name of a command is that of its page: proftool-record.
        let name = command.get_display_name().unwrap_or(command.get_name());
        let page = clap_mangen::Man::new(command.clone())
            .title(name)
            .source(SOURCE);
        write(directory, &format!("man1/{name}.1"), |out| page.render(out)).with_context(failed)?;
        written += 1;
    }
    for topic in TOPICS {
        let name = format!("man7/proftool-{}.7", topic.name);
        write(directory, &name, |out| page(topic).to_writer(out)).with_context(failed)?;
        written += 1;
    }
    answer::print(&format!(
        "wrote {written} pages to {}\n",
        directory.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub fn completions(args: &CompletionArgs, mut grammar: clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut grammar, "proftool", &mut script);
    answer::print_plain(&script)?;
    Ok(ExitCode::SUCCESS)
}

fn write(
    directory: &Path,
    name: &str,
    page: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    page(&mut bytes)?;
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap_or(directory))?;
    answer::output::write_whole(&path, &bytes)
}

fn page(topic: &Topic) -> Roff {
    let mut page = Roff::new();
    let name = format!("proftool-{}", topic.name);
    page.control("TH", [name.as_str(), "7", "", SOURCE, ""]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", topic.about))]);
    let mut is_literal = false;
    for line in topic.whole().lines() {
        let indented = line.starts_with(' ');
        if indented != is_literal && !line.is_empty() {
            page.control(if indented { "nf" } else { "fi" }, []);
            is_literal = indented;
        }
        match line.strip_prefix("# ") {
            Some(heading) => {
                page.control("SH", [heading]);
            }
            None if line.is_empty() => {
                page.control("PP", []);
            }
            None if indented => {
                page.text([bold(line)]);
            }
            None => {
                page.text([roman(line)]);
            }
        }
    }
    page
}
