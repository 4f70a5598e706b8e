//! How the file of a question is read: each view asks for as much as it shows.

use std::path::{Path, PathBuf};

use proftool::input::{self, AsGprof, SourceLines, StaticCalls};
use proftool::profile::{Counts, Profile, SumOfRuns};

use super::super::failure::{self, hinted};
use super::super::progress::Meter;
use super::Query;

// What a view needs beyond the functions on stacks. Each takes time: line tables are large, and
// ranges need the code.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    pub calls: StaticCalls,
    // What totals as ranges need if stacks were cut.
    pub ranges: bool,
    // The lines of samples, or those from which calls were made.
    pub lines: SourceLines,
    pub addresses: bool,
    pub times: bool,
}

impl Needs {
    // For totals, as ranges if stacks were cut.
    pub const TOTALS: Needs = Needs {
        ranges: true,
        ..Needs::STACKS
    };
    // For stacks and nothing else.
    pub const STACKS: Needs = Needs {
        calls: StaticCalls::Off,
        ranges: false,
        lines: SourceLines::None,
        addresses: false,
        times: false,
    };
    // For stacks with the lines from which calls were made.
    pub const LINES: Needs = Needs {
        lines: SourceLines::OfCalls,
        ..Needs::STACKS
    };
    pub const ADDRESSES: Needs = Needs {
        addresses: true,
        ..Needs::LINES
    };
}

impl Query {
    pub fn open(&self, needs: Needs) -> anyhow::Result<Profile> {
        let mut profile = match self.recordings() {
            [file] => self.open_file(file, needs)?,
            files => {
                let mut sum = SumOfRuns::default();
                for file in files {
                    sum.add(&self.open_file(file, needs)?);
                }
                sum.finish()
            }
        };
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

    // Of a gmon.out only the first, with which the others are read.
    fn recordings(&self) -> &[PathBuf] {
        match (self.files(), &self.binary) {
            ([first, ..], Some(_)) => std::slice::from_ref(first),
            (files, _) => files,
        }
    }

    fn open_file(&self, file: &Path, needs: Needs) -> anyhow::Result<Profile> {
        let mut meter = Meter::new();
        let before = self.read.get();
        let opened = input::open_with(file, &self.reading(needs), &mut |done, total| {
            self.read.set(self.read.get().max(before + done));
            meter.show(done, total)
        });
        Ok(opened?)
    }

    // With these calls of the code.
    pub fn open_as_gprof(&self, calls: StaticCalls) -> anyhow::Result<AsGprof> {
        let needs = Needs {
            calls,
            ..Needs::STACKS
        };
        let opened = input::open_as_gprof(self.file(), &self.reading(needs));
        opened?.ok_or_else(|| {
            let text = "gprof's text needs call counts, which samples do not have";
            let hint = "build with -pg and run the program; then: proftool flat gmon.out --binary \
                PROGRAM --classic";
            hinted(text.into(), Some(hint.into()))
        })
    }

    pub fn reading(&self, needs: Needs) -> input::Options {
        input::Options {
            symfs: self.symfs.clone(),
            inlines: !self.no_inline,
            repairs: !self.no_repair,
            calls: needs.calls,
            ranges: needs.ranges,
            cache: cache_directory().filter(|_| !self.no_cache),
            lines: needs.lines,
            addresses: needs.addresses,
            time: self.time.unwrap_or_default(),
            keeps_times: needs.times,
            program: self.binary.clone(),
            sum: match &self.binary {
                Some(_) => self
                    .files()
                    .iter()
                    .skip(1)
                    .chain(&self.sum)
                    .cloned()
                    .collect(),
                None => self.sum.clone(),
            },
            folded_weights: self.folded.weights(),
        }
    }
}

// The directory for what is worth keeping (XDG base directory specification).
pub fn cache_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".cache")));
    Some(base.filter(|path| path.is_absolute())?.join("proftool"))
}
