//! The calls and jumps of single functions, across files.

mod c_runtime;
mod calls;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::{FileOffset, IdVec, Svma};
use crate::binary::{Binary, Exports, FunctionSymbol, SymbolSource};
use crate::cache::{Kept, Place};
use crate::scan::{self, Callees, Destination, Exits, FileTables, LeavingKind, Single};
use crate::trace::{ImageId, Trace};

use super::callers::{self, Callers};
use super::frames::Frames;
use super::function_exits::{Function, FunctionStart, Site, To, WayOut};
use super::mapped::{self, Mapped};
use super::memo::Memo;
use crate::symbolize::definitions::Definitions;
use crate::symbolize::library::Library;
use crate::symbolize::name_source::NameSource;
use crate::symbolize::names::{Names, base_of_part};

// The code of larger files is not read as a whole, in bytes.
const LARGE: u64 = 32 << 20;

// What the calls of a file are kept under.
const KEPT_CALLERS: &str = "callers";
// What is kept of how control leaves functions.
const KEPT_EXITS: &str = "exits";

// The largest number of parts of a function that are checked.
const PARTS: usize = 8;

/// The tables of each image, read when its code is first asked for.
pub(super) type AllTables<'h> = IdVec<ImageId, OnceCell<Option<Box<FileTables<'h>>>>>;

/// The code of all files.
pub(super) struct Code<'h> {
    name_sources: &'h IdVec<ImageId, NameSource>,
    pub(super) frames: Frames<'h>,
    tables: &'h AllTables<'h>,
    singles: IdVec<ImageId, OnceCell<Option<Box<Single<'h>>>>>,
    files: Vec<ImageId>,
    definitions: Definitions<'h>,
    mapped: Mapped<'h>,
    /// Names of imported functions, with whether it is certain which function they are.
    imports: Memo<Rc<str>, bool>,
    names: &'h Names<'h>,
    mains: Memo<ImageId, Option<FunctionStart>>,
    choices: Memo<FunctionStart, Rc<[FunctionStart]>>,
    /// All calls of files; `None` where that was not looked into.
    callers: Memo<ImageId, Option<Rc<Callers>>>,
    functions: Memo<FunctionStart, Option<Rc<Function>>>,
    /// How control leaves what starts at a place, alone; `None` where its code cannot be read.
    exits: Memo<FunctionStart, Option<Rc<Exits>>>,
    kept_exits: IdVec<ImageId, OnceCell<Kept<8>>>,
    /// The calls of each of these by where they return to, in order of address.
    returns: Memo<FunctionStart, Rc<[(u64, u32)]>>,
    wholes: Memo<FunctionStart, FunctionStart>,
    task_starts: Memo<FunctionStart, bool>,
    starts: Memo<FunctionStart, bool>,
}

impl<'h> Code<'h> {
    pub(super) fn new(
        trace: &'h Trace,
        name_sources: &'h IdVec<ImageId, NameSource>,
        names: &'h Names<'h>,
        tables: &'h AllTables<'h>,
        library: &'h Library,
    ) -> Code<'h> {
        let files = name_sources
            .enumerate()
            .filter_map(|(image, source)| match source {
                NameSource::Binary(binary, _) => Some((image, binary)),
                _ => None,
            });
        let (files, binaries): (Vec<ImageId>, Vec<&Arc<Binary>>) = files.unzip();
        Code {
            name_sources,
            tables,
            frames: Frames::new(trace, library),
            singles: name_sources
                .iter()
                .map(|_| OnceCell::new())
                .collect::<Vec<_>>()
                .into(),
            files,
            definitions: Definitions::new(binaries, None),
            mapped: Mapped::new(trace, name_sources, library),
            imports: Memo::default(),
            names,
            mains: Memo::default(),
            choices: Memo::default(),
            callers: Memo::default(),
            functions: Memo::default(),
            exits: Memo::default(),
            kept_exits: name_sources
                .iter()
                .map(|_| OnceCell::new())
                .collect::<Vec<_>>()
                .into(),
            returns: Memo::default(),
            wholes: Memo::default(),
            task_starts: Memo::default(),
            starts: Memo::default(),
        }
    }

    pub(super) fn binary(&self, image: ImageId) -> Option<&'h Arc<Binary>> {
        match &self.name_sources[image] {
            NameSource::Binary(binary, _) => Some(binary),
            _ => None,
        }
    }

    pub(super) fn function_at(&self, image: ImageId, at: u64) -> Option<FunctionStart> {
        let symbol = self.binary(image)?.function_at(Svma(at))?;
        Some(self.whole(FunctionStart::of(image, symbol.start)))
    }

    pub(super) fn full_name(&self, place: FunctionStart) -> Option<Cow<'h, str>> {
        let binary = self.binary(place.image)?;
        binary.function_name(binary.function_at(Svma(place.start))?)
    }

    pub(super) fn is_program(&self, image: ImageId) -> bool {
        let binary = self.binary(image);
        binary.is_some_and(|binary| mapped::is_program(binary))
    }

    /// Returns the `main` of the program that code of this image runs in, if it is known: the image
    /// is the program, or only one program was mapped.
    pub(super) fn main_around(&self, image: ImageId) -> Option<FunctionStart> {
        self.mains.get(&image, || {
            let is_program = self.is_program(image);
            let program = is_program
                .then_some(image)
                .or_else(|| self.mapped.only_program());
            self.main_of(program?)
        })
    }

    pub(super) fn mains(&self) -> Option<Vec<FunctionStart>> {
        let programs = self.mapped.programs()?.iter();
        Some(programs.filter_map(|&image| self.main_of(image)).collect())
    }

    fn main_of(&self, image: ImageId) -> Option<FunctionStart> {
        let binary = self.binary(image)?;
        let is_main = |symbol: &&FunctionSymbol| {
            let name = binary.function_name(symbol);
            name.is_some_and(|name| name == "main")
        };
        let main = binary.functions().iter().find(is_main)?;
        Some(FunctionStart::of(image, main.start))
    }

    pub(super) fn starts_at(&self, image: ImageId, at: u64) -> bool {
        let place = FunctionStart { image, start: at };
        self.function_start(image, at) == Some(place)
    }

    pub(super) fn function_start(&self, image: ImageId, at: u64) -> Option<FunctionStart> {
        let symbol = self.binary(image)?.function_at(Svma(at))?;
        Some(FunctionStart::of(image, symbol.start))
    }

    fn whole(&self, part: FunctionStart) -> FunctionStart {
        let FunctionStart { image, start } = part;
        let whole = || {
            let binary = self.binary(image)?;
            let symbol = binary.function_at(Svma(start))?;
            let nameless = symbol.source == SymbolSource::Unwind;
            let name = binary.function_name(symbol).filter(|_| !nameless)?;
            Some(self.names.whole(image, &name)?.0)
        };
        self.wholes.get(&part, || FunctionStart {
            image,
            start: whole().unwrap_or(start),
        })
    }

    pub(super) fn stub(&self, place: FunctionStart) -> Option<String> {
        let binary = self.binary(place.image)?;
        let symbol = binary.function_at(Svma(place.start))?;
        let name = (symbol.source == SymbolSource::Plt).then(|| binary.function_name(symbol))??;
        Some(name.strip_suffix("@plt").unwrap_or(&name).to_owned())
    }

    fn file(&self, image: ImageId) -> Option<usize> {
        self.files.iter().position(|&file| file == image)
    }

    fn exports(&self, image: ImageId) -> Option<&Exports> {
        Some(self.definitions.exports(self.file(image)?))
    }

    fn chooses(&self, place: FunctionStart) -> bool {
        let binary = self.binary(place.image);
        binary.is_some_and(|binary| binary.chosen_name(Svma(place.start)).is_some())
    }

    pub(super) fn is_exported_as(&self, place: FunctionStart, name: &str) -> bool {
        let exports = self.exports(place.image);
        let start = exports.and_then(|exports| exports.start(name.as_bytes()));
        start.is_some_and(|start| start.0 == place.start)
    }

    /// The function whose code, or a part of it, holds this stated address; `None` where its code
    /// cannot be read.
    pub(super) fn function_around(&self, image: ImageId, at: u64) -> Option<Rc<Function>> {
        let start = self.function_start(image, at)?;
        self.function(start)
    }

    /// The function whose code, or a part of it, starts here; `None` where it cannot be read.
    pub(super) fn function(&self, place: FunctionStart) -> Option<Rc<Function>> {
        self.functions.get(&place, || self.read(place).map(Rc::new))
    }

    fn read(&self, place: FunctionStart) -> Option<Function> {
        let image = place.image;
        let whole = self.whole(place);
        let mut function = Function {
            is_complete: true,
            ..Function::default()
        };
        let mut ways: FxHashMap<(bool, To, Option<Rc<str>>), usize> = FxHashMap::default();
        // Parts of the function that were moved elsewhere are left for others as the function is.
        let mut parts = vec![place.start];
        let mut next = 0;
        while let Some(&start) = parts.get(next) {
            next += 1;
            let Some(exits) = self.exits(FunctionStart { image, start }) else {
                // The tables of a file take long to read, and what was kept needs none.
                self.single(image)?;
                function.is_complete = false;
                continue;
            };
            function.is_complete &= exits.is_complete;
            for leaving in &exits.sites {
                let is_call = leaving.kind == LeavingKind::Call;
                let part = match leaving.to {
                    Destination::Function(start) if !is_call => Some(start.0),
                    _ => None,
                };
                let (to, name) = self.destination(image, leaving.to.clone());
                if let Some(part) = part.filter(|_| to == To::Function(whole)) {
                    let is_new = !parts.contains(&part);
                    function.is_complete &= !is_new || parts.len() < PARTS;
                    if is_new && parts.len() < PARTS {
                        parts.push(part);
                    }
                    continue;
                }
                let site = Site {
                    at: leaving.at.0,
                    end: calls::behind(leaving),
                };
                let ways_out = &mut function.ways_out;
                let way = *ways.entry((is_call, to, name.clone())).or_insert_with(|| {
                    ways_out.push(WayOut {
                        is_call,
                        to,
                        name,
                        sites: Vec::new(),
                    });
                    ways_out.len() - 1
                });
                ways_out[way].sites.push(site);
            }
        }
        Some(function)
    }

    /// What is called by what starts here: see [`Single::callees_in_sight`].
    pub(super) fn callees_in_sight(&self, place: FunctionStart) -> Option<Callees> {
        let single = self.single(place.image)?;
        let mut callees = single.callees_in_sight(Svma(place.start))?;
        let name = self.full_name(place);
        callees.are_more |= name.is_some_and(|name| scan::is_thunk(&name));
        Some(callees)
    }

    /// All that is called by what starts here: see [`Single::callees`].
    pub(super) fn callees(&self, place: FunctionStart) -> Option<Callees> {
        self.single(place.image)?.callees(Svma(place.start))
    }

    /// The functions that a function of this kind chooses from, whose addresses it takes; sorted.
    pub(super) fn choices(&self, chooser: FunctionStart) -> Rc<[FunctionStart]> {
        let FunctionStart { image, start } = chooser;
        self.choices.get(&chooser, || {
            let single = self.single(image);
            let taken = single.and_then(|single| single.addresses_taken(Svma(start)));
            let taken = taken.unwrap_or_default().into_iter();
            taken.map(|start| FunctionStart::of(image, start)).collect()
        })
    }

    /// Whether it is certain which function is called by this name: all files that were mapped
    /// could be read, and one of them defines it, in one version.
    pub(super) fn is_certain_import(&self, name: &Rc<str>) -> bool {
        self.imports.get(name, || self.mapped.define_once(name))
    }

    /// All calls of a file, from callees to callers; `None` where finding them would take long.
    pub(super) fn callers(&self, image: ImageId) -> Option<Rc<Callers>> {
        let binary = self.binary(image)?;
        self.callers.get(&image, || {
            let code = binary.code().ok()?;
            let size = code.range().end().saturating_sub(*code.range().start());
            if size > LARGE {
                return None;
            }
            let place = binary.place_to_keep(KEPT_CALLERS);
            let kept = place.as_ref().and_then(Place::load).and_then(Callers::kept);
            if let Some(kept) = kept {
                return Some(Rc::new(kept));
            }
            let calls = scan::calls(binary, None).ok()?;
            let exports = binary.exports();
            let exported = exports.addresses().map(|start| start.0);
            let contents = callers::contents(&calls, exported)?;
            if let Some(place) = place.filter(|_| calls.problems.is_empty()) {
                place.store(&contents);
            }
            Callers::kept(contents.into()).map(Rc::new)
        })
    }

    /// The stated addresses of a function's first byte and of what is behind its last.
    pub(super) fn bounds(&self, place: FunctionStart) -> Option<(u64, u64)> {
        let symbol = self.binary(place.image)?.function_at(Svma(place.start))?;
        Some((symbol.start.0, symbol.end().0))
    }

    pub(super) fn function_before(&self, image: ImageId, at: u64) -> Option<FunctionStart> {
        let functions = self.binary(image)?.functions();
        let behind = functions.partition_point(|function| function.start.0 <= at);
        let before = functions.get(behind.checked_sub(1)?)?;
        Some(FunctionStart::of(image, before.start))
    }

    /// The stated addresses of the code around one that is in no function: from the end of the
    /// function before to the start of the next.
    pub(super) fn between_functions(&self, image: ImageId, at: u64) -> Option<(u64, u64)> {
        let functions = self.binary(image)?.functions();
        let behind = functions.partition_point(|function| function.start.0 <= at);
        let before = functions.get(behind.checked_sub(1)?)?;
        let next = functions.get(behind)?;
        Some((before.end().0.min(at), next.start.0))
    }

    /// Whether a function is one that the dynamic linker may run when another one is called for the
    /// first time: its own, and those that choose functions.
    pub(super) fn may_run_while_linking(&self, place: FunctionStart) -> bool {
        let exports = self.exports(place.image);
        self.chooses(place)
            || exports.is_some_and(|exports| exports.start(b"__tls_get_addr").is_some())
    }

    pub(super) fn is_part(&self, part: FunctionStart, of: FunctionStart) -> bool {
        let names = self.full_name(part).zip(self.full_name(of));
        part.image == of.image
            && names.is_some_and(|(part, whole)| base_of_part(&part) == Some(&*whole))
    }

    fn single(&self, image: ImageId) -> Option<&Single<'h>> {
        let binary = self.binary(image)?;
        let tables = &self.tables[image];
        let single = self.singles[image].get_or_init(|| {
            let tables = tables.get_or_init(|| FileTables::read(binary).ok().map(Box::new));
            let tables = tables.as_deref()?;
            Some(Box::new(Single::new(tables)))
        });
        single.as_deref()
    }

    /// Where a stated address of code stands in the file.
    pub(super) fn offset(&self, image: ImageId, at: u64) -> Option<FileOffset> {
        let code = self.binary(image)?.code().ok()?;
        let piece = code.piece(Svma(at), Svma(at.checked_add(1)?))?;
        Some(piece.offset)
    }

    /// Keeps how control leaves functions for the next start, if a cache was given for that.
    pub(super) fn keep_exits(&self) {
        for kept in self.kept_exits.iter().filter_map(OnceCell::get) {
            // It does not matter if that fails.
            let _ = kept.store();
        }
    }
}
