//! Where what is shown comes from: samples that are taken while it is looked at, or a recording.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use proftool::input::live::Seen;
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::page::Page;

/// A recording that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The samples in it.
    pub samples: u64,
    /// The size of the file.
    pub bytes: u64,
    /// What a person should know of it.
    pub note: Option<String>,
}

/// Whether there will be more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Samples are being taken.
    Running,
    /// Nothing more will come, and why: `the command exited with status 0`.
    Ended(String),
    /// A recording is looked at; the part of its time that was read, or is being read.
    Recorded(Option<String>),
}

/// Samples that are being taken, or were. All of it may be asked from any thread.
pub trait Source: Sync {
    /// Returns the newest profile; `None` before the first. Cheap.
    fn latest(&self) -> Option<Arc<Seen>>;

    /// Lets weights fade, so that they count half after this time; `None` for no fading.
    fn set_half_life(&self, half_life: Option<Duration>);

    /// Forgets all samples so far.
    fn reset(&self);

    /// Writes a perf.data of exactly the samples that `seen` shows: all since the beginning or the
    /// reset, without fading. A file that is there already is kept as FILE.old, as `proftool record` does.
    ///
    /// # Errors
    ///
    /// Why it could not be written, as a part of a sentence.
    fn write(&self, seen: &Seen, path: &Path) -> Result<Written, String>;

    /// Whether there will be more. Cheap.
    fn state(&self) -> State;

    /// Ends the taking of samples, and a command that was run for them.
    fn stop(&self);

    /// Returns the page of a function's source lines, or of its machine code.
    ///
    /// # Errors
    ///
    /// If there is no such page; the text says why.
    fn annotated(
        &self,
        _subject: &Subject,
        _function: FunctionId,
        _assembly: bool,
    ) -> Result<Page, String> {
        Err("source lines are shown of recordings only".into())
    }

    /// Reads the samples of this time only; all, if the text is empty.
    ///
    /// # Errors
    ///
    /// Why that cannot be done.
    fn set_time(&self, _range: &str) -> Result<(), String> {
        Err("only a recording has parts".into())
    }
}
