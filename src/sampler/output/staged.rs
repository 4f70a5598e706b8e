//! A log before which records go through a stage.

use std::io::{self, Seek, Write};

use super::log::{Log, description};
use crate::perfdata::writer::time_record;
use crate::sampler::kernel;
use crate::sampler::session::bounds::End;
use crate::sampler::session::participants::{Open, Sink};

/// Changes records between the kernel's buffers and the file. It works in a thread of its own; the
/// one that calls these functions empties the buffers meanwhile.
pub trait Stage {
    /// Begins, before the first records, when signals are held back in this thread. `head` is a
    /// recording without records, which describes the events and the machine; `records` are about
    /// what was there before, and are in the file already. Returns whether it takes part.
    fn begin(&mut self, head: Vec<u8>, records: Vec<u8>) -> bool;

    /// An empty vector, with memory that is not needed any more.
    fn room(&mut self) -> Vec<u8>;

    /// Takes the records of one pass over all buffers.
    fn give(&mut self, records: Vec<u8>);

    /// Returns the next records that are to be written, in order, if some are ready; after
    /// [`Stage::end`] it waits for them until there are no more.
    fn take(&mut self) -> Option<Vec<u8>>;

    /// Nothing more is to come.
    fn end(&mut self);

    /// How many samples have kept the copies of their stacks.
    fn kept(&self) -> u64;
}

pub(in crate::sampler) struct Staged<'a, W> {
    pub(in crate::sampler) log: Log<W>,
    stage: Option<&'a mut dyn Stage>,
}

impl<'a, W: Write + Seek> Staged<'a, W> {
    /// Lets the stage begin.
    pub(in crate::sampler) fn new(
        log: Log<W>,
        stage: Option<&'a mut dyn Stage>,
        open: &Open,
    ) -> io::Result<Staged<'a, W>> {
        let mut staged = Staged { log, stage: None };
        if let Some(stage) = stage {
            let (head, records) = description(open)?;
            staged.stage = stage.begin(head, records).then_some(stage);
        }
        Ok(staged)
    }

    /// How many samples have kept their copies; `None` if all have.
    pub(in crate::sampler) fn kept(&self) -> Option<u64> {
        self.stage.as_ref().map(|stage| stage.kept())
    }

    fn write(&mut self) -> io::Result<()> {
        if let Some(stage) = &mut self.stage {
            while let Some(records) = stage.take() {
                self.log.append_round(&records)?;
            }
        }
        Ok(())
    }
}

impl<W: Write + Seek> Sink for Staged<'_, W> {
    fn begin(&mut self, open: &Open) -> io::Result<()> {
        self.log.begin(open)?;
        self.log.is_staged = self.stage.is_some();
        Ok(())
    }

    fn pass(&mut self, open: &mut Open) -> io::Result<()> {
        let Some(stage) = &mut self.stage else {
            // What the stage would have taken out of copies.
            open.session.clear_arguments();
            return self.log.pass(open);
        };
        let begin = kernel::now();
        let mut drained = stage.room();
        open.session.drain_into(&mut drained);
        // What is mapped is looked at now: soon it may be gone.
        self.log.look(&drained);
        // Should the recorder be killed, threads that are off have been until now at least.
        if open.session.has_switches() {
            drained.extend(time_record(begin));
        }
        if self.log.why_full().is_none() {
            stage.give(drained);
        }
        self.write()
    }

    fn finish(&mut self, open: &Open) -> io::Result<()> {
        if let Some(stage) = &mut self.stage {
            stage.end();
        }
        self.write()?;
        self.log.finish(open)
    }

    fn wants_end(&self) -> Option<End> {
        self.log.wants_end()
    }
}
