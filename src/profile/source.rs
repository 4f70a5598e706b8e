//! What debug information says of functions and modules beyond names and declarations.

use super::{FunctionId, ModuleId};

/// Names as the source has them, and where modules were compiled. Few functions have such a name:
/// only those of which it says more than the linkage name.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// In order of function.
    names: Vec<(FunctionId, Box<str>)>,
    /// In order of module and directory, each once.
    directories: Vec<(ModuleId, Box<str>)>,
}

impl Source {
    /// The name of a function by debug information, without what it is qualified by:
    /// `{async_fn#0}`. `None` where it says no more than the linkage name, or is not known.
    pub fn name(&self, function: FunctionId) -> Option<&str> {
        let place = self.names.binary_search_by_key(&function, |(id, _)| *id);
        Some(&*self.names[place.ok()?].1)
    }

    /// The directories in which the compilers of a module ran, as far as functions of it were
    /// looked up.
    pub fn directories(&self, module: ModuleId) -> impl Iterator<Item = &str> {
        let start = self.directories.partition_point(|(id, _)| *id < module);
        let rest = self.directories[start..].iter();
        let own = rest.take_while(move |(id, _)| *id == module);
        own.map(|(_, directory)| &**directory)
    }

    pub(super) fn add_name(&mut self, function: FunctionId, name: &str) {
        self.names.push((function, name.into()));
    }

    pub(super) fn add_directory(&mut self, module: ModuleId, directory: &str) {
        self.directories.push((module, directory.into()));
    }

    /// Puts both in order.
    pub(super) fn finish(&mut self) {
        self.names.sort_unstable();
        self.names.dedup_by_key(|(function, _)| *function);
        self.directories.sort_unstable();
        self.directories.dedup();
    }
}
