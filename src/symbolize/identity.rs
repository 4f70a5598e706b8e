//! Which names and places are one function.
//!
//! A function with code is its start in its image, whatever it is called. An inlined call is the
//! function whose definition its entry of debug information leads to: see
//! [`super::function_copies`]. Code that a compiler moved out of a function (`f.cold`) is the
//! function's.

mod statements;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::base::{IdVec, KERNEL, Language, Svma};
use crate::binary::{DefinitionId, Lines};
use crate::profile::{Builder, Function, FunctionId, FunctionKind, Module, ModuleId};
use crate::trace::{FrameAddress, Image, ImageId, ImageKind};

use self::statements::Said;
use super::address_lookup::ImageLines;
use super::function_copies::{self, Class, CopySource, FunctionCopies};
use super::limits::TextLeft;
use super::name_source::NameSource;
use super::names::Names;

/// What distinguishes functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// It starts there.
    Start(ImageId, u64),
    /// It has no bounds, but this name.
    Named(ImageId, String),
    /// Only inlined copies of it are known; the number of what they are copies of.
    Inlined(ImageId, usize),
    /// Only the name by which it is called is known, and perhaps the file that defines it.
    Import(Box<(String, String)>),
}

/// The functions found so far.
pub(super) struct Identities<'a> {
    keys: FxHashMap<Key, FunctionId>,
    /// The functions of the last image and address that have nothing else known about them. Frames
    /// come in order of both, and there may be millions of them.
    nameless: Vec<(FrameAddress, FunctionId)>,
    modules: IdVec<ImageId, ModuleId>,
    names: &'a Names<'a>,
    name_sources: &'a IdVec<ImageId, NameSource>,
    lines: ImageLines<'a>,
    copies: FunctionCopies,
    /// What debug information states about functions, apart from their names.
    said: FxHashMap<FunctionId, Said>,
    /// Functions with code of their own that have copies, or are copies, where no sample was taken.
    copied: Vec<FunctionId>,
    /// Where the units of the definitions that were asked for were compiled.
    directories: Vec<(ModuleId, String)>,
}

/// Returns debug information before anything of it was read.
pub(super) fn nothing_read<'a>(name_sources: &'a IdVec<ImageId, NameSource>) -> ImageLines<'a> {
    let lines: Vec<OnceLock<Box<Lines<'a>>>> =
        name_sources.iter().map(|_| OnceLock::new()).collect();
    lines.into()
}

impl<'a> Identities<'a> {
    pub(super) fn new(
        images: &IdVec<ImageId, Image>,
        name_sources: &'a IdVec<ImageId, NameSource>,
        names: &'a Names<'a>,
        lines: ImageLines<'a>,
        builder: &mut Builder,
    ) -> Identities<'a> {
        let modules: Vec<ModuleId> = images
            .iter()
            .map(|image| {
                let id = builder.module(module(image));
                if let Some(build_id) = &image.build_id {
                    builder.build_id(id, build_id);
                }
                if image.kind.is_kernel() {
                    builder.kernel_module(id);
                }
                id
            })
            .collect();
        Identities {
            keys: FxHashMap::default(),
            nameless: Vec::new(),
            modules: modules.into(),
            names,
            name_sources,
            lines,
            copies: FunctionCopies::default(),
            said: FxHashMap::default(),
            copied: Vec::new(),
            directories: Vec::new(),
        }
    }

    pub(super) fn module(&self, image: ImageId) -> ModuleId {
        self.modules[image]
    }

    pub(super) fn lines(&self, image: ImageId) -> Option<&Lines<'a>> {
        lines(self.name_sources, &self.lines, image)
    }

    /// Takes note of the definitions of an image that samples hit, and of the functions with code,
    /// by start and symbol, that stem from them: before any of them is asked for.
    pub(super) fn learn(
        &mut self,
        image: ImageId,
        definitions: &[DefinitionId],
        code: &[(u64, Cow<'_, str>, DefinitionId)],
    ) {
        let Some(lines) = lines(self.name_sources, &self.lines, image) else {
            return;
        };
        let names = self.names;
        let place = CopySource {
            image,
            lines,
            names,
        };
        self.copies.learn(&place, definitions, code);
        let module = self.modules[image];
        for of_unit in definitions.chunk_by(|one, other| one.is_of_unit(*other)) {
            let described = of_unit.first().and_then(|&id| lines.describe(id));
            let directory = described.and_then(|described| described.directory);
            let is_new = |it: &&str| {
                let last = self.directories.last();
                last.is_none_or(|(last, known)| *last != module || known != it)
            };
            if let Some(directory) = directory.as_deref().filter(is_new) {
                self.directories.push((module, directory.to_owned()));
            }
        }
    }

    /// Notes which functions the clones among these are, by start and symbol, where samples have
    /// not shown it: before any of them is asked for.
    pub(super) fn learn_clones<'n>(
        &mut self,
        image: ImageId,
        functions: impl Iterator<Item = (u64, Cow<'n, str>)>,
    ) {
        let Some(lines) = lines(self.name_sources, &self.lines, image) else {
            return;
        };
        let clones = functions.filter(|(_, symbol)| function_copies::is_clone(symbol));
        let mut code: Vec<(u64, Cow<'n, str>, DefinitionId)> = clones
            .filter_map(|(start, symbol)| {
                let definition = lines.definition_at(Svma(start))?.id;
                Some((start, symbol, definition))
            })
            .collect();
        // A function that is made already keeps the key that it was made with.
        code.retain(|&(start, _, definition)| {
            let class = self.copies.known(image, definition);
            let inlined = class.map(|class| Key::Inlined(image, class));
            let keys = [Some(Key::Start(image, start)), inlined];
            !keys.iter().flatten().any(|key| self.keys.contains_key(key))
        });
        let mut definitions: Vec<DefinitionId> = code.iter().map(|&(.., id)| id).collect();
        definitions.sort_unstable();
        definitions.dedup();
        self.learn(image, &definitions, &code);
    }

    /// The linkage name, or else the plain one, of a function that has no symbol.
    pub(super) fn name(&mut self, image: ImageId, definition: DefinitionId) -> Option<String> {
        if !self.copies.text.has_names(image, definition) {
            return None;
        }
        let name = self.lines(image)?.name(definition)?.into_owned();
        self.copies.text.take_name(name.len());
        Some(name)
    }

    pub(super) fn text_left(&mut self) -> &mut TextLeft {
        &mut self.copies.text
    }

    /// The function that an address belongs to by its place: by its start, by its name, or alone.
    pub(super) fn physical(
        &mut self,
        builder: &mut Builder,
        frame: FrameAddress,
        start: Option<u64>,
        name: Option<&str>,
    ) -> FunctionId {
        // Frames have to come in order of image and address.
        if let Some(start) = start {
            let whole = name.and_then(|name| self.names.whole(frame.image, name));
            let (start, name) = whole.map_or((start, name), |(start, name)| (start, Some(name)));
            let start = self.copies.first_copy(frame.image, start);
            return self.starting_at(builder, frame.image, start, name);
        }
        let module = self.modules[frame.image];
        if let Some(name) = name {
            let language = self.name_sources[frame.image].language();
            let key = Key::Named(frame.image, name.to_owned());
            let function = || builder.function(named(name, module, None, language));
            return *self.keys.entry(key).or_insert_with(function);
        }
        if matches!(self.name_sources[frame.image], NameSource::Mark) {
            let key = Key::Named(frame.image, String::new());
            return *self.keys.entry(key).or_insert_with(|| {
                builder.function(Function {
                    kind: FunctionKind::Mark,
                    ..unknown(module, None, builder.module_name(module).to_owned())
                })
            });
        }
        // A table of all nameless addresses would grow with them. Frames come in order, so those of
        // the last address are enough.
        let place = |frame: &FrameAddress| (frame.image, frame.address.lookup());
        if let Some((last, _)) = self.nameless.last()
            && place(last) != place(&frame)
        {
            self.nameless.clear();
        }
        let known = self.nameless.iter().find(|(known, _)| *known == frame);
        if let Some(&(_, function)) = known {
            return function;
        }
        let name_source = &self.name_sources[frame.image];
        let lookup = frame.address.lookup();
        let address = name_source.svma(lookup).map_or(lookup, |svma| svma.0);
        let name = format!("{}+{address:#x}", builder.module_name(module));
        let function = builder.function(unknown(module, Some(address), name));
        self.nameless.push((frame, function));
        function
    }

    pub(super) fn known(&self, image: ImageId, start: u64) -> Option<FunctionId> {
        self.keys.get(&self.key_at(image, start)).copied()
    }

    /// Where the functions of each image that are [known](Identities::known) start, in order.
    pub(super) fn starts(&self) -> IdVec<ImageId, Vec<Svma>> {
        let mut starts = IdVec::filled(Vec::new(), self.modules.len());
        let of_keys = self.keys.keys().filter_map(|key| match *key {
            Key::Start(image, start) => Some((image, start)),
            _ => None,
        });
        for (image, start) in of_keys.chain(self.copies.starts()) {
            if self.known(image, start).is_some() {
                starts[image].push(Svma(start));
            }
        }
        for starts in starts.iter_mut() {
            starts.sort_unstable();
            starts.dedup();
        }
        starts
    }

    pub(super) fn starting_at(
        &mut self,
        builder: &mut Builder,
        image: ImageId,
        start: u64,
        name: Option<&str>,
    ) -> FunctionId {
        let module = self.modules[image];
        let key = self.key_at(image, start);
        let start = self.copies.first_copy(image, start);
        let name = self.copies.cloned(image, start).or(name);
        let language = self.name_sources[image].language();
        *self.keys.entry(key).or_insert_with(|| {
            builder.function(match name {
                Some(name) => named(name, module, Some(start), language),
                None => unknown(module, Some(start), format!("sub_{start:x}")),
            })
        })
    }

    fn key_at(&self, image: ImageId, start: u64) -> Key {
        let inlined = self.copies.inlined_at(image, start);
        let start = || Key::Start(image, self.copies.first_copy(image, start));
        inlined.map_or_else(start, |class| Key::Inlined(image, class))
    }

    /// The function of this name whose code is not looked at; its home is the file that defines
    /// it, and where it starts there, if that is known.
    pub(super) fn import(
        &mut self,
        builder: &mut Builder,
        name: &str,
        name_source: Option<(PathBuf, Svma)>,
    ) -> FunctionId {
        let (module, start) = match name_source {
            Some((path, start)) => (of_file(&path.to_string_lossy()), Some(start.0)),
            None => (of_file("[import]"), None),
        };
        let key = Key::Import(Box::new((module.path.clone(), name.to_owned())));
        let module = builder.module(module);
        *self
            .keys
            .entry(key)
            .or_insert_with(|| builder.function(named(name, module, start, Language::Unknown)))
    }

    pub(super) fn known_inlined(
        &mut self,
        image: ImageId,
        definition: DefinitionId,
    ) -> Option<FunctionId> {
        let class = self.class(image, definition)?;
        let key = inlined_key(image, class);
        self.keys.get(&key).copied()
    }

    /// The function of a call that was inlined; `None` where debug information names none.
    pub(super) fn inlined(
        &mut self,
        builder: &mut Builder,
        image: ImageId,
        definition: DefinitionId,
    ) -> Option<FunctionId> {
        let key = inlined_key(image, self.class(image, definition)?);
        if let Some(&known) = self.keys.get(&key) {
            return Some(known);
        }
        let class = self.class(image, definition)?.clone();
        let source_name = class.source_name().map(str::to_owned);
        let (name, start, arguments) = (class.name, class.start, class.arguments);
        let language = class.described.language;
        let declared = class
            .declared
            .filter(|_| class.is_declared || start.is_none());
        let symbol = start.and_then(|start| {
            if let Some(name) = self.copies.cloned(image, start) {
                return Some(Cow::Borrowed(name));
            }
            self.names.at(image, start)
        });
        let name = symbol.as_deref().unwrap_or(&name);
        let function = builder.function(named(name, self.modules[image], start, language));
        self.keys.insert(key, function);
        let opening = || self.opening_line(image, start?);
        let declared = declared.or_else(opening);
        let said = Said {
            declared,
            arguments,
            source_name,
            language,
        };
        self.said.insert(function, said);
        Some(function)
    }

    fn class(&mut self, image: ImageId, definition: DefinitionId) -> Option<&Class> {
        let lines = lines(self.name_sources, &self.lines, image)?;
        let names = self.names;
        let place = CopySource {
            image,
            lines,
            names,
        };
        self.copies.class(&place, definition)
    }

    /// Takes note of where a function with code is declared: as its definition says, if it is that
    /// of its symbol; else the line of its first instruction stands for it.
    pub(super) fn declare(
        &mut self,
        function: FunctionId,
        image: ImageId,
        start: u64,
        symbol: &str,
        definition: Option<DefinitionId>,
    ) {
        if self.said.contains_key(&function) {
            return;
        }
        let class = definition
            .and_then(|definition| self.class(image, definition))
            .filter(|class| class.is_of_part(symbol));
        let is_copied = class.is_some_and(Class::is_inlined) || function_copies::is_clone(symbol);
        let arguments = class.and_then(|class| class.arguments.clone());
        let language = class.map_or(Language::Unknown, |class| class.described.language);
        let source_name = class.and_then(|class| class.source_name().map(str::to_owned));
        let declared = class
            .filter(|class| class.is_declared)
            .and_then(|class| class.declared.clone())
            .or_else(|| self.opening_line(image, start));
        let said = Said {
            declared,
            arguments,
            source_name,
            language,
        };
        if is_copied {
            self.copied.push(function);
        }
        self.said.insert(function, said);
    }

    /// The functions with code of their own that may have copies where no sample was taken, by
    /// debug information.
    pub(super) fn copied(&self) -> &[FunctionId] {
        &self.copied
    }

    fn opening_line(&self, image: ImageId, start: u64) -> Option<(String, u32)> {
        let (file, line) = self.lines(image)?.line_at(Svma(start))?;
        Some((file.to_owned(), line))
    }
}

fn inlined_key(image: ImageId, class: &Class) -> Key {
    match class.start {
        Some(start) => Key::Start(image, start),
        None => Key::Inlined(image, class.id),
    }
}

fn lines<'l, 'a>(
    name_sources: &'a IdVec<ImageId, NameSource>,
    lines: &'l ImageLines<'a>,
    image: ImageId,
) -> Option<&'l Lines<'a>> {
    match &name_sources[image] {
        NameSource::Binary(binary, _) => {
            Some(lines[image].get_or_init(|| Box::new(binary.lines())))
        }
        _ => None,
    }
}

fn named(name: &str, module: ModuleId, address: Option<u64>, language: Language) -> Function {
    Function {
        name: name.to_owned(),
        linkage_name: None,
        declared_at: None,
        module,
        address,
        kind: FunctionKind::Named,
        language,
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
        language: Language::Unknown,
    }
}

fn of_file(path: &str) -> Module {
    let trimmed = path.trim_end_matches(" (deleted)");
    let last = trimmed.rsplit('/').next().filter(|last| !last.is_empty());
    Module {
        name: last.unwrap_or(path).to_owned(),
        path: path.to_owned(),
    }
}

fn module(image: &Image) -> Module {
    let name = match image.kind {
        ImageKind::Kernel { .. } => KERNEL.to_owned(),
        ImageKind::Generated { pid }
        | ImageKind::Replaced { pid }
        | ImageKind::JitDump { pid, .. } => format!("[generated {pid}]"),
        ImageKind::Unmapped { .. } => "[unmapped]".to_owned(),
        _ => return of_file(&image.path),
    };
    Module {
        name,
        path: image.path.to_string(),
    }
}
