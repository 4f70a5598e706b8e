//! Programs without a recording: their functions, and the calls in their code.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::code::{self, Scanned};
use super::definitions::Definitions;
use super::demangled::name_for_people;
use super::folded;
use super::identity::{Identities, nothing_read};
use super::name_source::NameSource;
use super::names::Names;
use super::{Options, StaticCalls};
use crate::base::{CaveatKind, Caveats, IdVec, utf8};
use crate::binary::{Binary, Error};
use crate::profile::{Builder, Profile};
use crate::trace::{Image, ImageId, ImageKind};

/// The code of a file that cannot be looked at, and why.
#[derive(Debug, thiserror::Error)]
#[error("file {index}: {reason}")]
pub struct UnreadableCode {
    /// The place of the file in the list, from 0.
    pub index: usize,
    /// Why.
    pub reason: Error,
}

/// The functions of these files and all calls in their code; there are no samples.
///
/// # Errors
/// The first of the files whose code cannot be looked at, by its place, and why.
pub fn programs(files: Vec<Binary>, options: &Options) -> Result<Profile, UnreadableCode> {
    let image = |binary: &Binary| Image {
        file: None,
        path: utf8(binary.path().as_os_str().as_bytes()).into(),
        raw_path: None,
        build_id: binary.build_id().cloned(),
        kind: ImageKind::File,
    };
    let images: IdVec<ImageId, Image> = files.iter().map(image).collect::<Vec<_>>().into();
    let name_sources: IdVec<ImageId, NameSource> = files
        .into_iter()
        .map(|file| NameSource::Binary(Arc::new(file), None))
        .collect::<Vec<_>>()
        .into();

    let mut builder = Builder::default();
    let names = Names::new(&name_sources);
    let lines = nothing_read(&name_sources);
    let mut identities = Identities::new(&images, &name_sources, &names, lines, &mut builder);
    let mut refusals = Vec::new();
    let scanned = code::scan(&name_sources, None, options.workers, |binary, error| {
        let place = images
            .iter()
            .position(|i| *i.path == *utf8(binary.path().as_os_str().as_bytes()));
        refusals.push(UnreadableCode {
            index: place.unwrap_or(0),
            reason: error,
        });
    });
    if let Some(first) = refusals.into_iter().next() {
        return Err(first);
    }
    let options = Options {
        calls: StaticCalls::All,
        ..options.clone()
    };
    let definitions = Definitions::new(code::binaries(&scanned), Some(&options.finder));
    code::add(
        &scanned,
        FxHashSet::default(),
        &definitions,
        &mut identities,
        &options,
        &mut builder,
    );
    name_for_people(&mut builder, options.workers);
    identities.complete(&mut builder);
    for file in &scanned {
        tell(builder.caveats(), file);
    }
    Ok(builder.finish())
}

/// Adds caveats about a file.
fn tell(caveats: &mut Caveats, file: &Scanned) {
    // Indirect calls are not among them: each function has their number.
    let (binary, calls) = (&file.binary, &file.calls);
    let path = binary.path().display();
    let nameless = calls
        .functions
        .iter()
        .filter(|function| {
            let name = binary.function_name(&function.symbol);
            name.is_none_or(|name| name.is_empty())
        })
        .count() as u64;
    let counts = [
        (CaveatKind::InsideCalls, calls.inside_calls),
        (CaveatKind::AstrayCalls, calls.astray),
        (CaveatKind::UndecodedCode, calls.undecoded),
    ];
    for (kind, count) in counts {
        if count > 0 {
            caveats.add(kind, count);
        }
    }
    for function in &calls.functions {
        if let Some(others) = folded::others(binary, &function.symbol) {
            caveats.add_detail(CaveatKind::FoldedFunctions, 1, others);
        }
    }
    if nameless > 0 && !binary.has_symbols() {
        caveats.add(CaveatKind::NamelessFunctions, nameless);
    }
    if calls.functions.is_empty() {
        caveats.add_detail(CaveatKind::NoFunctions, 1, path.to_string());
    } else if calls.sites.is_empty() && calls.indirect().0 == 0 {
        caveats.add_detail(CaveatKind::NoCalls, 1, path.to_string());
    }
    for problem in binary.problems().iter().chain(&calls.problems) {
        caveats.add_detail(CaveatKind::DamagedFile, 1, format!("{path}: {problem}"));
    }
}
