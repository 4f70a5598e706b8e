//! Rows that frames on stacks belong to: modules, source files and lines, addresses.

use rustc_hash::FxHashMap;

use super::{Regroup, RowKind, regroup};
use crate::base::{DistinctTree, IdVec, Language};
use crate::profile::{
    AddressId, CallPath, EventId, Function, FunctionId, FunctionKind, Line, LineId, Module,
    ModuleId, PathId, PlaceId, Profile, Selection, ThreadId,
};

/// What makes a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Module(ModuleId),
    File(&'a str),
    Line(LineId),
    Address(ModuleId, u64),
    /// Frames of a module whose line is not known.
    NoLine(ModuleId),
    /// A mark, or a function whose address is not known.
    Function(FunctionId),
}

/// The rows and the paths so far.
struct Frames<'a> {
    profile: &'a Profile,
    kind: RowKind,
    rows: FxHashMap<Key<'a>, FunctionId>,
    functions: IdVec<FunctionId, Function>,
    interrupts: IdVec<FunctionId, bool>,
    nowhere: ModuleId,
    paths: DistinctTree<PathId, CallPath>,
    outside_of_path: IdVec<PathId, Option<PathId>>,
    outside_of_place: IdVec<PlaceId, Option<PathId>>,
}

pub(super) fn regrouped(
    profile: &Profile,
    kind: RowKind,
    of: &[(EventId, Selection)],
) -> (Profile, Selection) {
    let mut modules = profile.modules.clone();
    let nowhere = modules.push(Module {
        name: String::new(),
        path: String::new(),
    });
    let mut frames = Frames {
        profile,
        kind,
        rows: FxHashMap::default(),
        functions: IdVec::default(),
        interrupts: IdVec::default(),
        nowhere,
        paths: DistinctTree::default(),
        outside_of_path: IdVec::default(),
        outside_of_place: IdVec::default(),
    };
    frames.enter_paths();
    frames.enter_places();
    let (samples, selection) = regroup(profile, kind, of, &mut frames);
    let interrupts = frames.interrupts.enumerate().filter(|(_, all)| **all);
    let mut regrouped = Profile {
        about: profile.about.clone(),
        events: profile.events.clone(),
        sampling: profile.sampling.clone(),
        modules,
        build_ids: profile.build_ids.clone(),
        generated_code: profile.generated_code.clone(),
        code: profile.code.of_kernel(),
        functions: frames.functions,
        paths: frames.paths.into_rows().into(),
        threads: profile.threads.clone(),
        samples,
        quality: profile.quality,
        caveats: profile.caveats.clone(),
        rows: kind,
        ..Profile::default()
    };
    let interrupts = interrupts.map(|(id, _)| id).collect();
    regrouped.code.set_interrupts(interrupts);
    regrouped.tell_apart();
    (regrouped, selection)
}

impl<'a> Frames<'a> {
    /// Computes what is outside of each path, for samples without a place: the lines of calls are
    /// not known.
    fn enter_paths(&mut self) {
        let profile = self.profile;
        let places = profile.places.as_ref();
        let has_place = |at| places.is_some_and(|places| places.of_sample(at).is_some());
        if self.kind != RowKind::Module && (0..profile.samples.len()).all(has_place) {
            return;
        }
        for (_, path) in profile.paths.enumerate() {
            let outside = path.caller.map(|id| {
                let caller = profile.paths[id];
                self.path_of(self.outside_of_path[id], caller, None, None)
            });
            self.outside_of_path.push(outside);
        }
    }

    fn enter_places(&mut self) {
        let profile = self.profile;
        let Some(places) = &profile.places else {
            return;
        };
        if self.kind == RowKind::Module {
            return;
        }
        for (_, place) in places.tree().enumerate() {
            let outside = place.caller.map(|caller| self.at_place(caller, place.line));
            self.outside_of_place.push(outside);
        }
    }

    fn at_place(&mut self, id: PlaceId, line: Option<LineId>) -> PathId {
        let Some(places) = &self.profile.places else {
            return PathId::new(0);
        };
        let place = &places.tree()[id];
        let outside = self.outside_of_place[id];
        let frame = self.profile.paths[place.path];
        if let (Some(outside), Some(caller), RowKind::Address) = (outside, place.caller, self.kind)
        {
            let address = places.tree()[caller].address;
            if frame.inlined && address.is_some() && address == place.address {
                // It is in the machine code of its caller.
                return outside;
            }
        }
        self.path_of(outside, frame, line, place.address)
    }

    fn path_of(
        &mut self,
        outside: Option<PathId>,
        frame: CallPath,
        line: Option<LineId>,
        address: Option<AddressId>,
    ) -> PathId {
        let row = self.row(frame.function, line, address);
        let path = |caller, of: CallPath| CallPath {
            caller,
            function: row,
            inlined: frame.inlined && self.kind == RowKind::Line,
            inferred: frame.inferred,
            across_gap: of.across_gap,
            through_pointer: of.through_pointer,
            may_lack_inlined: of.may_lack_inlined,
            // They are functions, not rows.
            candidates: None,
        };
        if let Some(id) = outside.filter(|_| self.kind.merges_calls()) {
            let around = self.paths.rows()[id];
            if around.function == row {
                // What was recorded of a row is not inferred.
                return if around.inferred && !frame.inferred {
                    self.paths.id_of(path(around.caller, around))
                } else {
                    id
                };
            }
        }
        self.paths.id_of(path(outside, frame))
    }

    fn row(
        &mut self,
        function: FunctionId,
        line: Option<LineId>,
        address: Option<AddressId>,
    ) -> FunctionId {
        let profile = self.profile;
        let known = &profile.functions[function];
        let module = known.module;
        let address = address.and_then(|id| Some(profile.places.as_ref()?.addresses()[id]));
        let key = match (self.kind, line, address) {
            _ if known.kind == FunctionKind::Mark => Key::Function(function),
            (RowKind::File, Some(line), _) => Key::File(&profile.lines[line].file),
            (RowKind::Line, Some(line), _) => Key::Line(line),
            (RowKind::File | RowKind::Line, None, _) => Key::NoLine(module),
            (RowKind::Address, _, Some(address)) => Key::Address(module, address),
            (RowKind::Address, _, None) => Key::Function(function),
            _ => Key::Module(module),
        };
        let is_interrupt = profile.code.is_interrupt(function);
        if let Some(&row) = self.rows.get(&key) {
            if self.functions[row].module != module {
                self.functions[row].module = self.nowhere;
            }
            self.interrupts[row] &= is_interrupt;
            return row;
        }
        let row = self
            .functions
            .push(described(profile, self.kind, key, function));
        self.interrupts.push(is_interrupt);
        self.rows.insert(key, row);
        row
    }
}

fn described(profile: &Profile, kind: RowKind, key: Key, function: FunctionId) -> Function {
    let known = &profile.functions[function];
    let module = &profile.modules[known.module];
    let row = |name: String| Function {
        name,
        linkage_name: None,
        declared_at: None,
        module: known.module,
        address: None,
        kind: FunctionKind::Row,
        language: Language::Unknown,
    };
    let unknown = |name: String| Function {
        kind: FunctionKind::Unknown,
        ..row(name)
    };
    match key {
        Key::Module(_) if module.name.is_empty() => unknown("[no module]".into()),
        Key::Module(_) => row(module.name.clone()),
        Key::File(file) => row(file.to_owned()),
        Key::Line(id) => {
            let Line { file, line } = &profile.lines[id];
            Function {
                declared_at: Some(Box::new(profile.lines[id].clone())),
                ..row(format!("{file}:{line}"))
            }
        }
        Key::Address(_, address) => {
            let name = match known.address.and_then(|start| address.checked_sub(start)) {
                Some(offset) => format!("{}+{offset:#x}", known.name),
                None => format!("{} {address:#x}", known.name),
            };
            Function {
                address: Some(address),
                language: known.language,
                ..row(name)
            }
        }
        Key::NoLine(_) if module.name.is_empty() => unknown(format!("[no {}]", kind.name())),
        Key::NoLine(_) => unknown(format!("[no {}: {}]", kind.name(), module.name)),
        Key::Function(_) if known.kind == FunctionKind::Mark => Function {
            kind: FunctionKind::Mark,
            ..row(known.name.clone())
        },
        Key::Function(_) => unknown(format!("{} (no address)", known.name)),
    }
}

impl Regroup for Frames<'_> {
    fn path(
        &mut self,
        _: EventId,
        _: ThreadId,
        (place, path, line): (Option<PlaceId>, PathId, Option<LineId>),
    ) -> PathId {
        match place {
            Some(place) if self.kind != RowKind::Module => self.at_place(place, line),
            _ => {
                let frame = self.profile.paths[path];
                self.path_of(self.outside_of_path[path], frame, line, None)
            }
        }
    }
}
