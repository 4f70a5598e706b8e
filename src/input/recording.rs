//! Recordings: perf.data of perf, proftool and others.

use std::sync::mpsc;

use crate::base::{shell_quoted, workers};
use crate::binary::Finder;
use crate::perfdata::Reader;
use crate::profile::{About, Profile};
use crate::symbolize::{self, Library};
use crate::trace::{self, Image, Recording, Scope, Unwinding};

use super::{Options, Progress, Reason};

pub(super) fn read(
    mut reader: Reader,
    options: &Options,
    progress: &mut Progress,
) -> Result<Profile, Reason> {
    let size = reader.data_size().unwrap_or(0);
    let listed = &reader.features().build_ids;
    let listed = listed.iter().map(|file| (&file.build_id, &*file.path));
    let finder = Finder::new(options.symfs.as_deref()).with_listed(listed);
    let stated = Recording::stated(&reader);
    let library = &library(options, finder).for_recording(stated);
    workers::scope(|scope| {
        // While this thread reads samples, another reads the symbols of what they are in; where
        // there is no other, names are looked for later.
        let (hits, to_prepare) = mpsc::channel::<Image>();
        let prepare = move || {
            let prepare = |image| library.prepare(&image);
            to_prepare.into_iter().for_each(prepare);
        };
        drop(scope.start(prepare));
        let unwinding = Unwinding {
            rules: library,
            workers: library.workers(),
        };
        let mut trace = trace::read(
            &mut reader,
            Scope {
                part: options.time,
                keeps_times: options.keeps_times,
            },
            Some(unwinding),
            Some(library),
            |done| progress(done, size),
            // Where nobody prepares any more, names are looked for later.
            |image| drop(hits.send(image.clone())),
        )?;
        drop(hits);
        let builder = symbolize::unfinished(&mut trace, library);
        let about = about(&trace.recording);
        drop(trace);
        let mut profile = builder.finish();
        profile.about = about;
        Ok(profile)
    })
}

pub(super) fn library(options: &Options, finder: Finder) -> Library {
    Library::new(symbolize::Options {
        finder,
        inlines: options.inlines,
        repairs: options.repairs,
        calls: options.calls,
        ranges: options.ranges,
        cache: options.cache.clone(),
        lines: options.lines,
        addresses: options.addresses,
        ..symbolize::Options::default()
    })
}

// The command is what was recorded: the recorder's command line without the recorder and its
// options, if they can be recognized.
pub(super) fn about(recording: &Recording) -> About {
    let line = &recording.command_line;
    let dashes = line.iter().position(|word| word == "--");
    let command = match dashes {
        Some(at) => &line[at + 1..],
        None => &line[..],
    };
    About {
        command: (!command.is_empty()).then(|| {
            let words: Vec<_> = command.iter().map(|word| shell_quoted(word)).collect();
            words.join(" ")
        }),
        duration: recording.duration,
        host: recording.host.clone(),
        processor: recording.processor.clone(),
        started: recording.started,
        is_unwound: recording.unwound > 0,
    }
}
