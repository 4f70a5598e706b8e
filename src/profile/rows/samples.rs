//! Rows that whole samples belong to: threads, command names, events.

use rustc_hash::FxHashMap;

use super::{Regroup, RowKind, RowLevel, all_events, regroup};
use crate::base::{DistinctTree, IdVec, Language, Sampling};
use crate::profile::{
    CallPath, EventId, Function, FunctionId, FunctionKind, LineId, Module, ModuleId, PathId,
    PlaceId, Profile, Selection, ThreadId,
};

// How many of a thread's command names its row names.
const NAMED: usize = 3;

/// The rows and the paths so far.
struct Samples<'a> {
    profile: &'a Profile,
    level: RowLevel,
    /// The row of each thread, or none where events are rows.
    of_thread: IdVec<ThreadId, FunctionId>,
    of_event: IdVec<EventId, FunctionId>,
    paths: DistinctTree<PathId, CallPath>,
    /// The path of a row and a path of the profile, where rows are outermost.
    under: FxHashMap<(FunctionId, PathId), PathId>,
}

pub(super) fn regrouped(
    profile: &Profile,
    kind: RowKind,
    level: RowLevel,
    of: &[(EventId, Selection)],
) -> (Profile, Selection) {
    let mut regrouped = match level {
        RowLevel::Alone => Profile {
            about: profile.about.clone(),
            threads: profile.threads.clone(),
            quality: profile.quality,
            caveats: profile.caveats.clone(),
            ..Profile::default()
        },
        RowLevel::Outermost | RowLevel::Innermost => Profile {
            places: None,
            counts: None,
            ..profile.clone()
        },
    };
    (regrouped.events, regrouped.sampling) = match kind {
        RowKind::Event => (vec![all_events()].into(), vec![Sampling::Unknown].into()),
        _ => (profile.events.clone(), profile.sampling.clone()),
    };
    let nowhere = regrouped.modules.push(Module {
        name: String::new(),
        path: String::new(),
    });
    let mut rows = Rows {
        module: nowhere,
        // Where functions stand on stacks too, a row says what it is.
        prefix: match level {
            RowLevel::Alone => String::new(),
            RowLevel::Outermost | RowLevel::Innermost => format!("{} ", kind.name()),
        },
        functions: &mut regrouped.functions,
    };
    let of_thread = match kind {
        RowKind::Thread => threads(profile, &mut rows),
        RowKind::Command => commands(profile, &mut rows),
        _ => IdVec::default(),
    };
    let of_event = match kind {
        RowKind::Event => {
            let events: Vec<FunctionId> = profile
                .events
                .iter()
                .map(|event| rows.add(&event.name))
                .collect();
            events.into()
        }
        _ => IdVec::default(),
    };
    let mut paths = DistinctTree::default();
    if level == RowLevel::Innermost {
        for (_, path) in profile.paths.enumerate() {
            paths.id_of(*path);
        }
    }
    let mut samples = Samples {
        profile,
        level,
        of_thread,
        of_event,
        paths,
        under: FxHashMap::default(),
    };
    let selection;
    (regrouped.samples, selection) = regroup(profile, kind, of, &mut samples);
    regrouped.paths = samples.paths.into_rows().into();
    regrouped.rows = kind;
    regrouped.tell_apart();
    (regrouped, selection)
}

/// Where rows are added.
struct Rows<'a> {
    module: ModuleId,
    prefix: String,
    functions: &'a mut IdVec<FunctionId, Function>,
}

impl Rows<'_> {
    fn add(&mut self, name: &str) -> FunctionId {
        let name = if name.is_empty() { "[no name]" } else { name };
        self.functions.push(Function {
            name: format!("{}{name}", self.prefix),
            linkage_name: None,
            declared_at: None,
            module: self.module,
            address: None,
            kind: FunctionKind::Row,
            language: Language::Unknown,
        })
    }
}

/// The row of each thread.
fn threads(profile: &Profile, rows: &mut Rows) -> IdVec<ThreadId, FunctionId> {
    // One that changed its name is one row.
    let mut names: FxHashMap<(i32, i32), Vec<&str>> = FxHashMap::default();
    for thread in profile.threads.iter() {
        names
            .entry((thread.pid, thread.tid))
            .or_default()
            .push(&thread.comm);
    }
    let mut known: FxHashMap<(i32, i32), FunctionId> = FxHashMap::default();
    let of_thread = profile.threads.iter().map(|thread| {
        let ids = (thread.pid, thread.tid);
        *known.entry(ids).or_insert_with(|| {
            let names = names.get(&ids).map_or(&[][..], |names| names);
            let mut text = names[..names.len().min(NAMED)].join(", ");
            if names.len() > NAMED {
                text.push_str(", …");
            }
            match ids {
                // Formats without threads.
                (0, 0) if text.is_empty() => rows.add("all threads"),
                (pid, tid) => rows.add(&format!("{text} {pid}/{tid}")),
            }
        })
    });
    of_thread.collect::<Vec<_>>().into()
}

fn commands(profile: &Profile, rows: &mut Rows) -> IdVec<ThreadId, FunctionId> {
    let mut known: FxHashMap<&str, FunctionId> = FxHashMap::default();
    let of_thread = profile.threads.iter().map(|thread| {
        let row = known
            .entry(thread.command())
            .or_insert_with(|| rows.add(thread.command()));
        *row
    });
    of_thread.collect::<Vec<_>>().into()
}

impl Samples<'_> {
    fn under(&mut self, row: FunctionId, path: PathId) -> PathId {
        let mut missing = Vec::new();
        let mut at = Some(path);
        let mut outside = loop {
            let Some(id) = at else {
                break self.paths.id_of(CallPath::of(None, row));
            };
            if let Some(&known) = self.under.get(&(row, id)) {
                break known;
            }
            missing.push(id);
            at = self.profile.paths[id].caller;
        };
        for id in missing.into_iter().rev() {
            outside = self.paths.id_of(CallPath {
                caller: Some(outside),
                ..self.profile.paths[id]
            });
            self.under.insert((row, id), outside);
        }
        outside
    }
}

impl Regroup for Samples<'_> {
    fn path(
        &mut self,
        event: EventId,
        thread: ThreadId,
        (_, path, _): (Option<PlaceId>, PathId, Option<LineId>),
    ) -> PathId {
        let of_event = self.of_event.get(event).copied();
        let row = of_event.unwrap_or_else(|| self.of_thread[thread]);
        match self.level {
            RowLevel::Alone => self.paths.id_of(CallPath::of(None, row)),
            RowLevel::Innermost => self.paths.id_of(CallPath::of(Some(path), row)),
            RowLevel::Outermost => self.under(row, path),
        }
    }
}
