//! Text of files that lies in anonymous memory: helpers for huge pages copy a program's text and
//! put the copy in its place.
//!
//! ```text
//!   the file      ├────── .text of the program ──────┤
//!   later              ├── //anon ──┤                        the names of the file stay
//! ```
//!
//! The kernel does not report that a file is unmapped, so a mapping over an earlier one may also
//! hold code that was made at run time where a library had been. A program's own text is not
//! unmapped while it runs: memory over it is its copy. Over a library it may be either, so that is
//! only reported.

use std::sync::Arc;

use crate::base::CaveatKind;

use super::super::memory::ProcessMemory;
use super::super::{Image, ImageId, ImageKind};
use super::Tracer;

impl Tracer<'_, '_, '_> {
    pub(super) fn map_generated(&mut self, pid: i32, (start, end): (u64, u64), image: ImageId) {
        let process = self.stacks.processes.entry(pid).or_default();
        let program = process.program();
        let covered = process.shown(start, end);
        process.change(|m| m.map(start, end, image, start));
        for (part, over, base) in covered {
            let file = &self.stacks.images.rows()[over];
            if file.kind != ImageKind::File {
                continue;
            }
            if Some(over) == program {
                self.trace
                    .caveats
                    .add_new(CaveatKind::MovedText, &file.path);
                self.remap(pid, part, over, base);
            } else {
                let replaced = Image {
                    path: Arc::clone(&file.path),
                    raw_path: None,
                    build_id: None,
                    file: None,
                    kind: ImageKind::Replaced { pid },
                };
                let image = self.stacks.images.id_of(replaced);
                self.remap(pid, part, image, part.0);
            }
        }
    }

    /// A file is mapped at `start`, from `offset` on, that may be the program of a process that ran
    /// before. Memory without a file was listed before it then, in order of address. What lies in
    /// the range that the loader has reserved for the program is a copy of its text.
    pub(super) fn map_program(&mut self, pid: i32, start: u64, offset: u64, image: ImageId) {
        let process = self.stacks.processes.entry(pid).or_default();
        if process.program().is_some() {
            return;
        }
        process.has_file(image);
        let Some(begin) = start.checked_sub(offset) else {
            return;
        };
        for (part, before, _) in process.shown(begin, start) {
            let images = self.stacks.images.rows();
            if matches!(images[before].kind, ImageKind::Generated { .. }) {
                let path = &images[image].path;
                self.trace.caveats.add_new(CaveatKind::MovedText, path);
                self.remap(pid, part, image, part.0.wrapping_sub(begin));
            }
        }
    }

    fn remap(&mut self, pid: i32, (start, end): (u64, u64), image: ImageId, base: u64) {
        let process: &mut ProcessMemory = self.stacks.processes.entry(pid).or_default();
        process.change(|m| m.map(start, end, image, base));
    }
}
