//! What a program has mapped, as it is found in a process.

use std::path::PathBuf;

/// A file that a program has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedImage {
    pub(crate) path: PathBuf,
    pub(crate) identity: FileIdentity,
    /// Whether the program starts in it.
    pub(crate) is_program: bool,
    /// Whether it is the dynamic linker.
    pub(crate) is_loader: bool,
    /// Its executable mappings, in order of address.
    pub(crate) mappings: Vec<CodeMapping>,
    /// The first address of all of its mappings, and the address behind the last.
    pub(crate) span: (u64, u64),
}

/// Which file is mapped, as the kernel identifies files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    /// Major and minor number of its device.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// An executable mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The position in the file of what is at `start`.
    pub(crate) offset: u64,
}

/// A place in the dynamic linker at which it calls a function for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoaderStop {
    /// The stated address of that function.
    pub(crate) at: u64,
    /// How often it is called until the libraries that the program is linked with are relocated.
    pub(crate) stops: u32,
}

/// A file in which calls are to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its place among the images.
    pub(crate) image: usize,
    /// The counter's number of the file.
    pub(crate) file: usize,
    /// What is added to addresses stated in the file to get those in memory (wrapping).
    pub(crate) bias: u64,
    /// Whether the dynamic linker changes its instructions when it relocates it.
    pub(crate) changes_code: bool,
    /// The number of stubs, which is also that of counters.
    pub(crate) stubs: usize,
}
