//! Which names and places are one function.
//!
//! A physical function is its start in its image, whatever it is called. An inlined call is known
//! by linkage name only: it is the function of that name in the same image when there is exactly
//! one, else a function of its own. Code that a compiler moved out of a function (`f.cold`) is the
//! function's.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

use crate::base::{IdVec, KERNEL, Svma};
use crate::profile::{Builder, Function, FunctionId, FunctionKind, Module, ModuleId};
use crate::trace::{FrameAddress, Image, ImageId, ImageKind};

use super::home::Home;
use super::names::Names;

/// What a function is told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// It starts there.
    Start(ImageId, u64),
    /// It has no bounds, but this name.
    Named(ImageId, String),
    /// Nothing is known but the address.
    Address(FrameAddress),
    /// Nothing is known but the name by which it is called, and at best the file that defines it.
    Import(String, String),
}

/// The functions found so far.
pub(super) struct Identities<'a> {
    keys: FxHashMap<Key, FunctionId>,
    modules: IdVec<ImageId, ModuleId>,
    names: Names<'a>,
    homes: &'a IdVec<ImageId, Home>,
}

impl<'a> Identities<'a> {
    pub(super) fn new(
        images: &IdVec<ImageId, Image>,
        homes: &'a IdVec<ImageId, Home>,
        builder: &mut Builder,
    ) -> Identities<'a> {
        let modules: Vec<ModuleId> = images
            .iter()
            .map(|image| builder.module(module(image)))
            .collect();
        Identities {
            keys: FxHashMap::default(),
            modules: modules.into(),
            names: Names::new(homes),
            homes,
        }
    }

    /// The function that an address belongs to by its place: by its start, by its name, or alone.
    pub(super) fn physical(
        &mut self,
        builder: &mut Builder,
        frame: FrameAddress,
        bounds: Option<(u64, u64)>,
        name: Option<&str>,
    ) -> FunctionId {
        if let Some((start, _)) = bounds {
            let whole = name.and_then(|name| self.names.whole(frame.image, name));
            let (start, name) = whole.map_or((start, name), |(start, name)| (start, Some(name)));
            return self.starting_at(builder, frame.image, start, name);
        }
        let key = match name {
            Some(name) => Key::Named(frame.image, name.to_owned()),
            None => Key::Address(frame),
        };
        let module = self.modules[frame.image];
        let home = &self.homes[frame.image];
        *self.keys.entry(key).or_insert_with(|| {
            let function = match (name, home) {
                (Some(name), _) => named(name, module, None),
                (None, Home::Mark) => Function {
                    kind: FunctionKind::Mark,
                    ..unknown(module, None, builder.module_name(module).to_owned())
                },
                (None, _) => {
                    let lookup = frame.address.lookup();
                    let address = home.svma(lookup).map_or(lookup, |svma| svma.0);
                    let name = format!("{}+{address:#x}", builder.module_name(module));
                    unknown(module, Some(address), name)
                }
            };
            builder.function(function)
        })
    }

    /// The function that starts there, if it has been met.
    pub(super) fn known(&self, image: ImageId, start: u64) -> Option<FunctionId> {
        self.keys.get(&Key::Start(image, start)).copied()
    }

    /// The function that starts there.
    pub(super) fn starting_at(
        &mut self,
        builder: &mut Builder,
        image: ImageId,
        start: u64,
        name: Option<&str>,
    ) -> FunctionId {
        let module = self.modules[image];
        *self
            .keys
            .entry(Key::Start(image, start))
            .or_insert_with(|| {
                builder.function(match name {
                    Some(name) => named(name, module, Some(start)),
                    None => unknown(module, Some(start), format!("sub_{start:x}")),
                })
            })
    }

    /// The function of this name whose code is not looked at; its home is the file that defines
    /// it, and where it starts there, if that is known.
    pub(super) fn import(
        &mut self,
        builder: &mut Builder,
        name: &str,
        home: Option<(PathBuf, Svma)>,
    ) -> FunctionId {
        let (module, start) = match home {
            Some((path, start)) => (of_file(&path.to_string_lossy()), Some(start.0)),
            None => (of_file("[import]"), None),
        };
        let key = Key::Import(module.path.clone(), name.to_owned());
        let module = builder.module(module);
        *self
            .keys
            .entry(key)
            .or_insert_with(|| builder.function(named(name, module, start)))
    }

    /// The function of a call that was inlined, if it has been met.
    pub(super) fn known_inlined(&mut self, image: ImageId, name: &str) -> Option<FunctionId> {
        let key = self.inlined_key(image, name);
        self.keys.get(&key).copied()
    }

    /// The function of a call that was inlined.
    pub(super) fn inlined(
        &mut self,
        builder: &mut Builder,
        image: ImageId,
        name: &str,
    ) -> FunctionId {
        let key = self.inlined_key(image, name);
        let start = match key {
            Key::Start(_, start) => Some(start),
            _ => None,
        };
        let module = self.modules[image];
        *self
            .keys
            .entry(key)
            .or_insert_with(|| builder.function(named(name, module, start)))
    }

    fn inlined_key(&mut self, image: ImageId, name: &str) -> Key {
        match self.names.start(image, name) {
            Some(start) => Key::Start(image, start),
            None => Key::Named(image, name.to_owned()),
        }
    }
}

/// A function under its linkage name; the name for people is made when all are known.
fn named(name: &str, module: ModuleId, address: Option<u64>) -> Function {
    Function {
        name: name.to_owned(),
        linkage_name: None,
        declared_at: None,
        module,
        address,
        kind: FunctionKind::Named,
    }
}

fn unknown(module: ModuleId, address: Option<u64>, name: String) -> Function {
    Function {
        name,
        linkage_name: None,
        declared_at: None,
        module,
        address,
        kind: FunctionKind::Unknown,
    }
}

/// How a file is called.
fn of_file(path: &str) -> Module {
    let trimmed = path.trim_end_matches(" (deleted)");
    let last = trimmed.rsplit('/').next().filter(|last| !last.is_empty());
    Module {
        name: last.unwrap_or(path).to_owned(),
        path: path.to_owned(),
    }
}

/// How an image is called.
fn module(image: &Image) -> Module {
    let name = match image.kind {
        ImageKind::Kernel { .. } => KERNEL.to_owned(),
        ImageKind::Generated { pid } => format!("[generated {pid}]"),
        ImageKind::Unmapped { .. } => "[unmapped]".to_owned(),
        _ => return of_file(&image.path),
    };
    Module {
        name,
        path: image.path.clone(),
    }
}
