//! Where what is shown comes from: samples that are taken while it is looked at, or a recording.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use proftool::input::live::Seen;
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::page::Page;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub samples: u64,
    pub bytes: u64,
    // What a person should know of it.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    // Nothing more will come, and why: `the command exited with status 0`.
    Ended(String),
    // The part of its time that was read, or is being read.
    Recorded(Option<String>),
}

// Samples that are being taken, or were. All of it may be asked from any thread.
pub trait Source: Sync {
    // `None` before the first. Cheap.
    fn latest(&self) -> Option<Arc<Seen>>;

    // They count half after this time; `None` for no fading.
    fn set_half_life(&self, half_life: Option<Duration>);

    fn reset(&self);

    // Exactly the samples that `seen` shows: all since the beginning or the reset, without fading.
    // A file that is there already is kept as FILE.old, as `proftool record` does. The error is a
    // part of a sentence.
    fn write(&self, seen: &Seen, path: &Path) -> Result<Written, String>;

    // Cheap.
    fn state(&self) -> State;

    // Ends the taking of samples, and a command that was run for them.
    fn stop(&self);

    // Source lines, or machine code. If there is no such page, the text of the error says why.
    fn annotated(
        &self,
        _subject: &Subject,
        _function: FunctionId,
        _assembly: bool,
    ) -> Result<Page, String> {
        Err("source lines are shown of recordings only".into())
    }

    // All samples, if the text is empty.
    fn set_time(&self, _range: &str) -> Result<(), String> {
        Err("only a recording has parts".into())
    }
}
