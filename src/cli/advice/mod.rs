//! What a user can do: the one table from facts to advice for the running command.
//!
//! The library states facts as kinds and data. Here they meet the options of `proftool`, the
//! settings of the kernel, and the flags of compilers and runtimes:
//!
//! | file | facts |
//! |---|---|
//! | [`remedies`] | what a recording or a program does not tell |
//! | [`stacks`] | incomplete stacks: how to record and how to build |
//! | [`rights`] | what this user may not see of the kernel and of others |
//! | [`sampling`] | errors and notes of the sampler, names of events |
//! | [`inputs`] | files that cannot be opened |
//! | [`code`] | machine code that cannot be read |
//! | [`questions`] | rows that are not shown, and what to look at next |

mod code;
pub mod inputs;
mod questions;
mod remedies;
pub mod rights;
pub mod sampling;
mod stacks;

use std::collections::BTreeSet;
use std::time::Duration;

use proftool::base::{Caveat, Remedy, Runtime};
use proftool::export::Advice;
use proftool::sampler::Stacks;
use proftool::view::page::HiddenRows;
use proftool::view::question::Question;

pub use code::without_code;
pub use stacks::name_generated_code;

// What the user is doing, for whom advice is worded.
#[derive(Clone, Debug)]
pub enum Situation {
    // `record` has just made a recording.
    Record {
        stacks: Stacks,
        off_cpu: bool,
        // How long the recorder did not run meanwhile: it was stopped, or got no processor.
        stood: Duration,
    },
    // `top` samples running programs. Its sampling options are those of `record`, and there is no
    // file.
    Top,
    View {
        command: &'static str,
        // The file and the options that shaped the answer, as further commands have them.
        query: String,
        // Whether stacks are filtered by a function.
        has_focus: bool,
    },
    // `info` shows what a file contains, without looking at programs.
    Info {
        // The file, as further commands have it.
        file: String,
    },
    Doctor {
        // The recording, as further commands have it; empty if it is another kind of file.
        file: String,
    },
    Callgraph,
}

impl Situation {
    // Caveats with what helps, each remedy once.
    pub fn told<'c>(
        &self,
        caveats: impl Iterator<Item = &'c Caveat>,
    ) -> impl Iterator<Item = (&'c Caveat, Option<String>)> {
        let mut said = BTreeSet::new();
        caveats.map(move |caveat| {
            let is_new = caveat.remedy().is_some_and(|remedy| said.insert(remedy));
            let hint = is_new.then(|| self.on_caveat(caveat)).flatten();
            (caveat, hint)
        })
    }

    // A command to record, or the options alone where they can be added to the running command.
    fn sample(&self, options: &str) -> String {
        match self {
            Situation::Record { .. } | Situation::Top => options.to_owned(),
            _ if options.is_empty() => "proftool record -- COMMAND".to_owned(),
            _ => format!("proftool record {options} -- COMMAND"),
        }
    }

    // How to name the directory that has the programs and libraries.
    fn files(&self) -> String {
        match self {
            Situation::View { .. } | Situation::Callgraph => "--symfs DIR".to_owned(),
            Situation::Record { .. } => "proftool report --symfs DIR".to_owned(),
            Situation::Info { file } | Situation::Doctor { file } => {
                let words = ["proftool report", file, "--symfs DIR"];
                let words = words.into_iter().filter(|word| !word.is_empty());
                words.collect::<Vec<_>>().join(" ")
            }
            Situation::Top => {
                "write a recording with the key w, then proftool report FILE --symfs DIR".to_owned()
            }
        }
    }
}

impl Advice for Situation {
    fn on_remedy(&self, remedy: Remedy, runtimes: &BTreeSet<Runtime>) -> Option<String> {
        remedies::sentence(remedy, self, runtimes)
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
