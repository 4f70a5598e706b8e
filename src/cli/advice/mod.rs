//! What a user can do: the one table from facts to advice for the running command.
//!
//! The library states facts as kinds and data. Here they meet the options of `proftool`, the
//! settings of the kernel, and the flags of compilers and runtimes:
//!
//! | file | facts |
//! |---|---|
//! | [`caveats`] | what a recording or a program does not tell |
//! | [`stacks`] | incomplete stacks: how to record and how to build |
//! | [`rights`] | what this user may not see of the kernel and of others |
//! | [`sampling`] | errors and notes of the sampler, names of events |
//! | [`inputs`] | files that cannot be opened |
//! | [`code`] | machine code that cannot be read |
//! | [`questions`] | rows that are not shown, and what to look at next |

mod caveats;
mod code;
pub mod inputs;
mod questions;
pub mod rights;
pub mod sampling;
mod stacks;

use std::time::Duration;

use proftool::base::{Caveat, CaveatKind};
use proftool::export::Advice;
use proftool::sampler::Stacks;
use proftool::view::page::HiddenRows;
use proftool::view::page::StackGap;
use proftool::view::question::Question;

pub use code::without_code;
pub use stacks::{BUILD_WITH_FRAME_POINTERS, name_generated_code};

/// What the user is doing, for whom advice is worded.
#[derive(Clone, Debug)]
pub enum Situation {
    /// `record` has just made a recording.
    Record {
        /// How stacks were recorded.
        stacks: Stacks,
        /// Whether off-CPU time was recorded.
        off_cpu: bool,
        /// How long the recorder did not run meanwhile: it was stopped, or got no processor.
        stood: Duration,
    },
    /// `top` samples running programs. Its sampling options are those of `record`, and there is no
    /// file.
    Top,
    /// A view shows the profile in a file.
    View {
        /// The name of the command.
        command: &'static str,
        /// The file as it is named in a command; empty if it is the default.
        file: String,
    },
    /// `info` shows what a file contains, without looking at programs.
    Info,
    /// `doctor` checks a recording.
    Doctor,
    /// `callgraph` reads programs.
    Callgraph,
}

impl Situation {
    /// Returns how to sample with these options: a command to record, or the options alone where they
    /// can be added to the running command.
    fn sample(&self, options: &str) -> String {
        match self {
            Situation::Record { .. } | Situation::Top => options.to_owned(),
            _ if options.is_empty() => "proftool record -- COMMAND".to_owned(),
            _ => format!("proftool record {options} -- COMMAND"),
        }
    }

    /// Returns what can be done about a caveat of this kind.
    pub fn on(&self, kind: CaveatKind) -> Option<String> {
        caveats::advice(kind, self)
    }

    /// Returns how to name the directory that has the programs and libraries.
    fn files(&self) -> &'static str {
        match self {
            Situation::View { .. } | Situation::Callgraph => "--symfs DIR",
            Situation::Record { .. } | Situation::Info | Situation::Doctor => {
                "proftool report --symfs DIR"
            }
            Situation::Top => {
                "write a recording with the key w, then proftool report FILE --symfs DIR"
            }
        }
    }
}

impl Advice for Situation {
    fn on_caveat(&self, caveat: &Caveat) -> Option<String> {
        if caveat.kind == CaveatKind::GeneratedCode {
            return Some(name_generated_code(caveat.runtimes()));
        }
        let of_all = self.on(caveat.kind);
        let is_of_stacks = matches!(
            caveat.kind,
            CaveatKind::NoUnwindRules | CaveatKind::BrokenStack
        );
        let mut details = caveat.details().filter(|_| is_of_stacks);
        let Some((_, samples)) = details.find(|&(detail, _)| detail == Caveat::NO_FILE) else {
            return of_all;
        };
        let in_generated = stacks::in_generated_code(caveat.runtimes());
        // Copies lead through code without frame pointers, but not if it is JIT-compiled.
        if caveat.kind == CaveatKind::BrokenStack || samples == caveat.count {
            return Some(in_generated.to_owned());
        }
        of_all.map(|hint| format!("{hint}; {in_generated}"))
    }

    fn on_stacks(&self, gap: StackGap) -> Option<String> {
        match gap {
            StackGap::FramePointers => Some(stacks::frame_pointers().to_owned()),
            StackGap::Caveat(kind) => self.on(kind),
        }
    }

    fn on_restored(&self) -> Option<String> {
        matches!(self, Situation::View { .. } | Situation::Top).then(|| "--no-repair".to_owned())
    }

    fn on_hidden(&self, rows: &HiddenRows) -> Option<String> {
        questions::hidden(rows, self)
    }

    fn on_events(&self) -> Option<String> {
        matches!(self, Situation::View { .. }).then(|| "--event NAME".to_owned())
    }

    fn command(&self, question: &Question) -> Option<String> {
        questions::command(question, self)
    }
}
