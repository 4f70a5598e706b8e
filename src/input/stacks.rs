//! Builds profiles from formats that name functions on stacks: what pprof's, speedscope's and perf
//! script's readers have in common.

use std::collections::{HashMap, HashSet};

use crate::base::{CaveatKind, Event, Language, Sampling, WeightSum, is_mark, placeholder};
use crate::binary::demangled;
use crate::names::of_text;
use crate::profile::{
    Builder, EventId, Function, FunctionId, FunctionKind, Line, LineId, Module, ModuleId, PathId,
    Profile, Thread, ThreadId,
};

const MAX_FRAMES: usize = 1 << 18;
// The number of frames of all stacks together that are read: a small file may name one long
// location in every sample.
const MAX_ALL_FRAMES: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    pub function: FunctionId,
    pub line: Option<LineId>,
    // Whether it is inlined into the frame outside of it.
    pub inlined: bool,
    // Not recorded but restored from the code.
    pub inferred: bool,
    // Frames are missing between it and the frame outside of it.
    pub across_gap: bool,
}

impl Frame {
    pub fn of(function: FunctionId) -> Frame {
        Frame {
            function,
            line: None,
            inlined: false,
            inferred: false,
            across_gap: false,
        }
    }
}

#[derive(Default)]
pub(super) struct StackBuilder {
    pub builder: Builder,
    events: HashMap<(String, String), EventId>,
    functions: HashMap<(String, ModuleId), FunctionId>,
    // Those that stand for functions without a name.
    unnamed: HashSet<FunctionId>,
    frames: u64,
}

impl StackBuilder {
    // Samples are chosen in an unknown way.
    pub fn event(&mut self, event: Event) -> EventId {
        let key = (event.name.clone(), event.unit.to_string());
        if let Some(&id) = self.events.get(&key) {
            return id;
        }
        let id = self.builder.sampled_event(event, Sampling::Unknown);
        self.events.insert(key, id);
        id
    }

    // The empty path is no module.
    pub fn module(&mut self, path: &str) -> ModuleId {
        let last = path.rsplit('/').next().filter(|last| !last.is_empty());
        self.builder.module(Module {
            name: last.unwrap_or(path).to_owned(),
            path: path.to_owned(),
        })
    }

    pub fn thread(&mut self, pid: i32, tid: i32, comm: &str) -> ThreadId {
        self.builder.thread(Thread::new(pid, tid, comm))
    }

    #[cfg(feature = "import")]
    pub fn line(&mut self, file: &str, line: u32) -> LineId {
        let file = file.to_owned();
        self.builder.line(Line { file, line })
    }

    // A function of its own, whatever others are called.
    pub fn new_function(
        &mut self,
        name: &str,
        linkage_name: Option<&str>,
        declared_at: Option<Line>,
        module: ModuleId,
    ) -> FunctionId {
        let kind = match () {
            () if is_mark(name) => FunctionKind::Mark,
            () if placeholder(name).is_some() || name.starts_with("[unknown] ") => {
                FunctionKind::Unknown
            }
            () => FunctionKind::Named,
        };
        // The mangling says it, then the ending of the source file.
        let mangled = linkage_name.map_or(Language::Unknown, |linkage| demangled(linkage).1);
        let source = declared_at.as_ref().map(|line| &*line.file);
        let language = match (kind, source.and_then(Language::of_source)) {
            (FunctionKind::Named, _) if mangled != Language::Unknown => mangled,
            (FunctionKind::Named, Some(language)) => language,
            (FunctionKind::Named, None) => of_text(name),
            _ => Language::Unknown,
        };
        self.builder.function(Function {
            name: name.to_owned(),
            linkage_name: linkage_name.map(Into::into),
            declared_at: declared_at.map(Box::new),
            module,
            address: None,
            kind,
            language,
        })
    }

    pub fn function(&mut self, name: &str, module: ModuleId) -> FunctionId {
        if let Some(&id) = self.functions.get(&(name.to_owned(), module)) {
            return id;
        }
        let id = self.new_function(name, None, None, module);
        self.functions.insert((name.to_owned(), module), id);
        id
    }

    // The stack is leaf first. What cannot be counted is a caveat.
    pub fn sample(&mut self, event: EventId, thread: ThreadId, stack: &[Frame], sum: WeightSum) {
        self.frames = self.frames.saturating_add(stack.len() as u64);
        let problem = match stack.len() {
            0 => Some("a sample without a stack"),
            frames if frames > MAX_FRAMES => Some("a stack of more than 262144 frames"),
            _ if self.frames > MAX_ALL_FRAMES => Some("more than 2^30 frames in all"),
            _ => None,
        };
        if let Some(problem) = problem {
            self.skip(problem);
            return;
        }
        if stack
            .iter()
            .any(|frame| self.unnamed.contains(&frame.function))
        {
            self.builder.caveats().add(CaveatKind::NoSymbols, sum.count);
        }
        let mut path: Option<PathId> = None;
        for frame in stack.iter().rev() {
            let inlined = frame.inlined && path.is_some();
            path = Some(match path {
                Some(caller) if frame.across_gap => {
                    self.builder.path_across_gap(caller, frame.function)
                }
                _ if frame.inferred => self.builder.inferred_path(path, frame.function, inlined),
                _ => self.builder.path(path, frame.function, inlined),
            });
        }
        let (Some(path), Some(leaf)) = (path, stack.first()) else {
            return;
        };
        if !self.builder.sample(event, thread, path, leaf.line, sum) {
            self.builder.caveats().add(CaveatKind::WeightLimit, 1);
        }
    }

    pub fn skip(&mut self, what: &str) {
        let caveats = self.builder.caveats();
        caveats.add_detail(CaveatKind::Skipped, 1, what);
    }

    #[cfg(feature = "import")]
    // Its weight is taken for the number of samples, or 1.
    pub fn count_is_not_stated(&mut self, weights_are_counts: bool) {
        let taken = if weights_are_counts {
            "weights without a unit are taken for it"
        } else {
            "each stack counts as one sample"
        };
        let caveats = self.builder.caveats();
        caveats.add_detail(CaveatKind::CountUnstated, 1, taken);
    }

    pub fn finish(self) -> Profile {
        self.builder.finish()
    }

    // `what` tells it from others: its address, or its place in a table.
    pub fn unnamed(&mut self, what: &str, module: ModuleId) -> FunctionId {
        let id = self.function(&format!("[unknown] {what}"), module);
        self.unnamed.insert(id);
        id
    }
}
