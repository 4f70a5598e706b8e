//! The text of GNU gprof, for what reads it.

use std::io::{self, Write};
use std::process::ExitCode;

use proftool::analysis::gprof::{Figures, figures};
use proftool::export::gprof::Options;
use proftool::input::AsGprof;

use super::answer;
use super::look::Look;
use super::query::Query;

/// Whether gprof's own text is printed.
#[derive(clap::Args, Debug)]
pub struct Classic {
    /// Print a gmon.out as GNU gprof 2.40 does.
    #[arg(long)]
    classic: bool,
    /// With --classic: also unused functions (gprof -z).
    #[arg(short, long, requires = "classic")]
    zeros: bool,
}

impl Classic {
    pub fn is_asked_for(&self) -> bool {
        self.classic
    }

    pub fn give(
        &self,
        query: &Query,
        look: &Look,
        command: &'static str,
        read: &AsGprof,
        write: impl Fn(&mut dyn Write, &Figures, &Options) -> io::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let AsGprof { profile, histogram } = read;
        let selection = query.select(profile)?;
        let figures = figures(profile, &selection, histogram);
        let options = Options { zeros: self.zeros };
        let write = |out: &mut dyn Write| write(out, &figures, &options);
        answer::give_text(
            &look.output,
            &query.shown_by(command),
            &profile.caveats,
            &write,
        )
    }
}
