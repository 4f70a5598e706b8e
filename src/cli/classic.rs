//! The text of GNU gprof, for what reads it.

use proftool::export::gprof::{self, Options};
use proftool::profile::Profile;

use super::failure::hinted;

/// Whether gprof's own text is printed.
#[derive(clap::Args, Debug)]
pub struct Classic {
    /// Print a gmon.out exactly as GNU gprof 2.40 does.
    #[arg(long)]
    classic: bool,
    /// With --classic: also print functions without time or calls (gprof -z).
    #[arg(short, long, requires = "classic")]
    zeros: bool,
}

impl Classic {
    /// Whether it is.
    pub fn is_asked_for(&self) -> bool {
        self.classic
    }

    /// What gprof's text of the profile is to have, if it is asked for.
    pub fn options(&self, profile: &Profile) -> anyhow::Result<Option<Options>> {
        if !self.classic {
            return Ok(None);
        }
        if !gprof::can_write(profile) {
            let text = "gprof's text needs call counts, which samples do not have";
            let hint = "build with -pg and run the program; then: proftool flat gmon.out --binary PROGRAM --classic";
            return Err(hinted(text.into(), Some(hint.into())));
        }
        Ok(Some(Options { zeros: self.zeros }))
    }
}
