//! What an image's names come from.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::{CaveatKind, FileOffset, Id, IdVec, Svma};
use crate::binary::Binary;
use crate::trace::{Image, ImageId, ImageKind, Trace};

use super::Options;
use super::plan::Plan;

/// The source of an image's names.
pub(super) enum Home {
    /// An ELF file.
    Binary(Box<Binary>),
    /// Names by range of addresses, sorted by start: start, size, name.
    Ranges(Vec<(u64, u64, String)>),
    /// Not code but a mark.
    Mark,
    /// There is none; why, where that is to be told, and the file.
    None(Option<(CaveatKind, String)>),
}

impl Home {
    /// The stated address of an address in the image.
    pub(super) fn svma(&self, address: u64) -> Option<Svma> {
        match self {
            Home::Binary(binary) => binary.svma(FileOffset(address)),
            _ => None,
        }
    }
}

/// Finds the homes of all images that were hit.
pub(super) fn open_all(
    trace: &Trace,
    plans: &IdVec<ImageId, Plan>,
    options: &Options,
) -> IdVec<ImageId, Home> {
    let homes: Vec<Mutex<Home>> = trace
        .images
        .iter()
        .map(|_| Mutex::new(Home::None(None)))
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= homes.len() {
                return;
            }
            let id = ImageId::new(index);
            if plans[id].addresses.is_empty() {
                continue;
            }
            let home = open(trace, &trace.images[id], options);
            if let Home::Binary(binary) = &home {
                // Reading the symbols is the slow part: now, while others read theirs.
                binary.functions();
            }
            *homes[index].lock().expect("no worker panics") = home;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.workers.get().min(homes.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let homes: Vec<Home> = homes
        .into_iter()
        .map(|home| home.into_inner().expect("no worker panics"))
        .collect();
    homes.into()
}

fn open(trace: &Trace, image: &Image, options: &Options) -> Home {
    match image.kind {
        ImageKind::File => match options.finder.find(&image.path, image.build_id.as_ref()) {
            Ok(binary) => Home::Binary(Box::new(binary)),
            Err(error) => {
                let kind = match error {
                    crate::binary::Error::ChangedBuild { .. } => CaveatKind::ChangedBinary,
                    _ => CaveatKind::MissingBinary,
                };
                Home::None(Some((kind, format!("{}: {error}", image.path))))
            }
        },
        ImageKind::Mark => Home::Mark,
        ImageKind::KernelGenerated => Home::Ranges(trace.kernel_symbols.clone()),
        _ => Home::None(None),
    }
}
