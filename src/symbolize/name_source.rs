//! Where the names of an image come from.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::base::{CaveatKind, FileOffset, IdVec, Language, Svma, parallel};
use crate::binary::{Binary, JitDump, Kallsyms, PerfMap, vdso};
use crate::trace::{Image, ImageId, ImageKind, Trace};

use super::generated_names::Lists;
use super::library::{Doubt, Library};

/// The source of an image's names.
pub(super) enum NameSource {
    /// An ELF file, and why it may not be the one that ran, if it may not.
    Binary(Arc<Binary>, Doubt),
    /// Names by range of addresses, sorted by start: start, size, name.
    Ranges(Box<[(u64, u64, String)]>),
    /// The running kernel's symbols, and what to add to a recorded address to get one of now.
    Kernel(Arc<Kallsyms>, u64),
    /// Names of code that a process made, at any time.
    PerfMap(Arc<PerfMap>),
    /// Names of code that a process made, by its place in the file.
    JitDump(Arc<JitDump>),
    /// Not code but a mark.
    Mark,
    /// No source: the reason, if it is to be reported, and the file. It is boxed because millions
    /// of images may have no source.
    None(Option<Box<(CaveatKind, String)>>),
}

impl NameSource {
    pub(super) fn svma(&self, address: u64) -> Option<Svma> {
        match self {
            NameSource::Binary(binary, _) => binary.svma(FileOffset(address)),
            _ => None,
        }
    }

    /// The address under which the machine code of a frame can be found again: in an ELF file as
    /// that states it, in the kernel that of now, in a jitdump the place in the file. `None` where
    /// the code is kept nowhere.
    pub(super) fn stated(&self, address: u64) -> Option<u64> {
        match self {
            NameSource::Binary(..) => self.svma(address).map(|stated| stated.0),
            NameSource::Kernel(_, moved) => Some(address.wrapping_add(*moved)),
            NameSource::JitDump(dump) => dump.at(address).map(|_| address),
            _ => None,
        }
    }

    /// The language of functions whose symbols state none.
    pub(super) fn language(&self) -> Language {
        match self {
            NameSource::PerfMap(_) | NameSource::JitDump(_) => Language::Generated,
            NameSource::Kernel(..) | NameSource::Ranges(_) => Language::C,
            NameSource::Binary(..) | NameSource::Mark | NameSource::None(_) => Language::Unknown,
        }
    }

    /// Why the file may not be the one that ran, if it may not.
    pub(super) fn doubt(&self) -> Doubt {
        match self {
            NameSource::Binary(_, doubt) => *doubt,
            _ => None,
        }
    }
}

pub(super) fn open_all(trace: &Trace, library: &Library) -> IdVec<ImageId, NameSource> {
    let mut is_hit = IdVec::filled(false, trace.images.len());
    for frame in &trace.frames {
        is_hit[frame.image] = true;
    }
    for &image in trace.counted.iter().flat_map(|(_, images)| images) {
        is_hit[image] = true;
    }
    let hit: Vec<ImageId> = is_hit.ids().filter(|&id| is_hit[id]).collect();
    let lists = Lists::of(trace, &hit);
    let found = parallel::map(library.options.workers, &hit, |&id| {
        open(trace, &trace.images[id], &lists, library)
    });
    let unopened = |image: &Image| match image.kind {
        ImageKind::Mark => NameSource::Mark,
        _ => NameSource::None(None),
    };
    let name_sources: Vec<NameSource> = trace.images.iter().map(unopened).collect();
    let mut name_sources: IdVec<ImageId, NameSource> = name_sources.into();
    for (id, name_source) in hit.into_iter().zip(found) {
        name_sources[id] = name_source;
    }
    name_sources
}

/// Keeps what was found out about files for the next start.
pub(super) fn keep_answers(name_sources: &IdVec<ImageId, NameSource>, workers: NonZeroUsize) {
    let binaries: Vec<&Arc<Binary>> = name_sources
        .iter()
        .filter_map(|source| match source {
            NameSource::Binary(binary, _) => Some(binary),
            _ => None,
        })
        .collect();
    parallel::map(workers, &binaries, |binary| binary.keep_answers());
}

fn open(trace: &Trace, image: &Image, lists: &Lists<'_>, library: &Library) -> NameSource {
    let host = &library.host;
    let none = |kind, error: &dyn std::fmt::Display| {
        NameSource::None(Some(Box::new((kind, format!("{}: {error}", image.path)))))
    };
    match image.kind {
        ImageKind::File => match library.file_that_ran(image, &trace.recording) {
            Ok((binary, doubt)) => {
                // Reads the symbols now, while the workers open files in parallel.
                binary.functions();
                NameSource::Binary(binary, doubt)
            }
            Err(why) => NameSource::None(Some(Box::new(why))),
        },
        ImageKind::Vdso if host.may_have_made(&trace.recording) => match vdso::own() {
            Ok(vdso) if image.build_id.is_none() || vdso.build_id() == image.build_id.as_ref() => {
                NameSource::Binary(Arc::new(vdso), None)
            }
            Ok(_) => none(CaveatKind::ChangedBinary, &"it is not that of this kernel"),
            Err(error) => none(CaveatKind::MissingBinary, &error),
        },
        ImageKind::Kernel { .. } | ImageKind::Module => match host.kernel(trace, image) {
            Ok((symbols, shift)) => NameSource::Kernel(symbols, shift),
            Err(why) => NameSource::None(Some(Box::new(why))),
        },
        ImageKind::Generated { pid } | ImageKind::Replaced { pid } => {
            match lists.open(trace, image, pid, library) {
                Ok(map) => NameSource::PerfMap(map),
                Err(why) => NameSource::None(why),
            }
        }
        ImageKind::JitDump { pid, .. } => match library.dump(pid, &image.path) {
            Ok(dump) => NameSource::JitDump(dump),
            Err(error) => none(CaveatKind::BadJitDump, &error),
        },
        ImageKind::Mark => NameSource::Mark,
        ImageKind::KernelGenerated => NameSource::Ranges(trace.kernel_symbols.clone().into()),
        _ => NameSource::None(None),
    }
}
