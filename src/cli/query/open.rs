//! How the file of a question is read: each view asks for as much as it shows.

use std::path::PathBuf;

use proftool::input::{self, AsGprof, SourceLines, StaticCalls};
use proftool::profile::{Counts, Profile};

use super::super::failure::{self, hinted};
use super::super::progress::Meter;
use super::Query;

impl Query {
    /// Reads the profile, with these calls of the code.
    pub fn open(&self, calls: StaticCalls) -> anyhow::Result<Profile> {
        self.open_as(&self.reading(calls))
    }

    /// Reads the profile, with these calls of the code, and with what totals as ranges need if stacks
    /// were cut.
    pub fn open_for_totals(&self, calls: StaticCalls) -> anyhow::Result<Profile> {
        self.open_as(&input::Options {
            ranges: true,
            ..self.reading(calls)
        })
    }

    /// [`Query::open_with_addresses`], with what totals as ranges need and the times of samples.
    pub fn open_with_times_and_addresses(&self) -> anyhow::Result<Profile> {
        self.open_as(&input::Options {
            lines: SourceLines::OfCalls,
            addresses: true,
            ranges: true,
            keeps_times: true,
            ..self.reading(StaticCalls::Off)
        })
    }

    /// [`Query::open_for_totals`], with the lines that samples were taken in.
    pub fn open_with_lines(&self, calls: StaticCalls) -> anyhow::Result<Profile> {
        self.open_as(&input::Options {
            lines: SourceLines::OfSamples,
            ranges: true,
            ..self.reading(calls)
        })
    }

    /// [`Query::open_for_totals`], with the lines from which calls were made.
    pub fn open_with_call_lines(&self) -> anyhow::Result<Profile> {
        self.open_as(&input::Options {
            ranges: true,
            lines: SourceLines::OfCalls,
            ..self.reading(StaticCalls::Off)
        })
    }

    /// How the file is read with the lines from which calls were made, and the addresses of machine code.
    fn reading_addresses(&self) -> input::Options {
        input::Options {
            lines: SourceLines::OfCalls,
            addresses: true,
            ..self.reading(StaticCalls::Off)
        }
    }

    /// [`Query::open_with_lines_of_stacks`], with the addresses of machine code.
    pub fn open_with_addresses(&self) -> anyhow::Result<Profile> {
        self.open_as(&self.reading_addresses())
    }

    /// Reads the profile with all that any view needs, and says how.
    pub fn open_for_all_views(&self) -> anyhow::Result<(Profile, input::Options)> {
        let reading = input::Options {
            ranges: true,
            ..self.reading_addresses()
        };
        Ok((self.open_as(&reading)?, reading))
    }

    /// Reads the profile with the lines from which calls were made, for formats of stacks.
    pub fn open_with_lines_of_stacks(&self) -> anyhow::Result<Profile> {
        self.open_as(&input::Options {
            lines: SourceLines::OfCalls,
            ..self.reading(StaticCalls::Off)
        })
    }

    /// Reads a gmon.out as gprof reads it, with these calls of the code.
    pub fn open_as_gprof(&self, calls: StaticCalls) -> anyhow::Result<AsGprof> {
        let opened = input::open_as_gprof(self.file(), &self.reading(calls));
        opened?.ok_or_else(|| {
            let text = "gprof's text needs call counts, which samples do not have";
            let hint = "build with -pg and run the program; then: proftool flat gmon.out --binary PROGRAM --classic";
            hinted(text.into(), Some(hint.into()))
        })
    }

    fn open_as(&self, options: &input::Options) -> anyhow::Result<Profile> {
        let mut meter = Meter::new();
        let opened = input::open(self.file(), options, &mut |done, total| {
            self.read.set(self.read.get().max(done));
            meter.show(done, total)
        });
        let mut profile = opened?;
        let is_counted = profile.counts.as_ref().is_some_and(Counts::are_partial);
        if is_counted && self.picks_samples() {
            // They are those of all threads and of the whole time.
            profile.counts = None;
            failure::line(
                "note",
                "call counts are not shown: they are of the whole run and cannot be filtered",
            );
        }
        Ok(profile)
    }

    /// How the file is read.
    pub fn reading(&self, calls: StaticCalls) -> input::Options {
        input::Options {
            symfs: self.symfs.clone(),
            inlines: !self.no_inline,
            repairs: !self.no_repair,
            calls,
            ranges: false,
            cache: cache_directory().filter(|_| !self.no_cache),
            lines: SourceLines::None,
            addresses: false,
            time: self.time.unwrap_or_default(),
            keeps_times: false,
            program: self.binary.clone(),
            sum: self.sum.clone(),
            folded_weights: self.folded.weights(),
        }
    }
}

/// The directory for what is worth keeping (XDG base directory specification).
pub fn cache_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".cache")));
    Some(base.filter(|path| path.is_absolute())?.join("proftool"))
}
