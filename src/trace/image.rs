//! Images: what contains code, and what addresses in it mean.

use std::path::Path;
use std::sync::Arc;

use crate::base::{BuildId, CallerBy, CaveatKind, CodeAddress, FileId, define_id};

define_id! {
    /// A row of [`Trace::images`](super::Trace::images).
    pub ImageId
}

define_id! {
    /// A row of [`Trace::frames`](super::Trace::frames).
    pub FrameId
}

/// Something that contains code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// The path of the file, or a name in brackets, as text.
    pub path: Arc<str>,
    /// The path as it was recorded, where it is not UTF-8 and therefore not the same as the text.
    pub raw_path: Option<Box<Path>>,
    /// The build that was mapped, where the recording tells it.
    pub build_id: Option<BuildId>,
    /// Which file was mapped, where the recording tells that.
    pub file: Option<FileId>,
    pub kind: ImageKind,
}

impl Image {
    /// The path by which the file is opened.
    pub fn file_path(&self) -> &Path {
        self.raw_path.as_deref().unwrap_or(Path::new(&*self.path))
    }
}

/// What an image is, which decides what addresses in it mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// A mapped file; addresses are offsets in the file.
    File,
    /// The kernel; addresses are those of the memory that was sampled. `text` is where the symbol
    /// `_text` (or `_stext`) was.
    Kernel {
        /// The address of the reference symbol, where the recording tells it.
        text: Option<u64>,
    },
    /// A kernel module; addresses are those of the memory that was sampled.
    Module,
    /// Kernel code that was made at run time (BPF, trampolines); addresses are those in memory.
    KernelGenerated,
    /// The page of code that the kernel gives each process; addresses are offsets from its start.
    Vdso,
    /// Code that a process made at run time; addresses are those in memory.
    Generated { pid: i32 },
    /// Anonymous memory of a process over the mapping of this file, a library: a copy of its text,
    /// or code that was made at run time after the file was unmapped; addresses are those in
    /// memory.
    Replaced { pid: i32 },
    /// Code that a process made at run time and listed in this file, a jitdump; addresses are
    /// places in the file.
    JitDump {
        pid: i32,
        /// Whether it is known when code was where. If not, no address is in this image, but those
        /// in [`ImageKind::Generated`] of the process may be of its functions.
        is_timed: bool,
    },
    /// Addresses of a process at which nothing was mapped.
    Unmapped { pid: i32 },
    /// Addresses of a guest or a hypervisor.
    Guest,
    /// Not code: a mark in a stack, whose path is its name. For addresses see
    /// [`FrameAddress::flaw`].
    Mark,
}

impl ImageKind {
    /// The process whose code in no file this is.
    pub fn generated_by(self) -> Option<i32> {
        match self {
            ImageKind::Generated { pid }
            | ImageKind::Replaced { pid }
            | ImageKind::JitDump { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Whether its code is the kernel's.
    pub fn is_kernel(self) -> bool {
        matches!(
            self,
            ImageKind::Kernel { .. } | ImageKind::Module | ImageKind::KernelGenerated
        )
    }
}

/// A code address in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameAddress {
    pub image: ImageId,
    /// The address, counted as the image's kind says.
    pub address: CodeAddress,
    /// How its caller was found, if it has one.
    pub caller_by: CallerBy,
}

// What can be said of the outer end of a stack that begins with a mark, by the address of the
// mark's frame: the place here, from 1.
const FLAWS: [CaveatKind; 8] = [
    CaveatKind::CutStack,
    CaveatKind::ShortCopy,
    CaveatKind::EmptyCopy,
    CaveatKind::ShortTop,
    CaveatKind::SignalStack,
    CaveatKind::NoUnwindRules,
    CaveatKind::BrokenStack,
    CaveatKind::BrokenCopy,
];

impl FrameAddress {
    /// Returns what was said of the stack of which this frame, a mark, is the outermost.
    pub fn flaw(self) -> Option<CaveatKind> {
        let place = usize::try_from(self.address.recorded()).ok()?;
        FLAWS.get(place.checked_sub(1)?).copied()
    }

    pub(super) fn of_mark(image: ImageId, flaw: Option<CaveatKind>) -> FrameAddress {
        let place = FLAWS.iter().position(|known| Some(*known) == flaw);
        FrameAddress {
            image,
            address: CodeAddress::Instruction(place.map_or(0, |place| place as u64 + 1)),
            caller_by: CallerBy::Rules,
        }
    }
}

pub(super) fn mark_image(name: &str) -> Image {
    Image {
        file: None,
        path: name.into(),
        raw_path: None,
        build_id: None,
        kind: ImageKind::Mark,
    }
}

pub(super) fn user_image_kind(path: &str, pid: i32) -> ImageKind {
    const GENERATED: [&str; 7] = [
        "//anon",
        "/anon_hugepage",
        "/dev/zero",
        "/memfd:",
        "/SYSV",
        "anon_inode:",
        "[anon:",
    ];
    if path == "[vdso]" {
        return ImageKind::Vdso;
    }
    let generated = GENERATED.iter().any(|prefix| path.starts_with(prefix))
        || path.is_empty()
        || path.starts_with('[');
    if generated {
        ImageKind::Generated { pid }
    } else {
        ImageKind::File
    }
}
