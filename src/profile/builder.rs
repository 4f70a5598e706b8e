//! Builds a profile, keeping each distinct thing once.

use std::sync::Arc;

use crate::base::{BuildId, Distinct, DistinctTree, Event, IdVec, Language, Sampling, WeightSum};

use super::collected_samples::CollectedSamples;

use super::{
    About, AddressId, Call, CallCount, CallKind, CallPath, Counts, EventId, Followed, Function,
    FunctionCode, FunctionId, FunctionSetId, Line, LineId, Module, ModuleId, PathId, Place,
    PlaceId, Places, Profile, Quality, Sample, SiteCount, Slices, Thread, ThreadId, TimedSample,
    Times,
};

/// What distinguishes rows of samples.
type SampleKey = (EventId, ThreadId, PathId, Option<LineId>);

/// What distinguishes rows of samples with a place.
type PlacedKey = (EventId, ThreadId, PlaceId, Option<LineId>);

/// Collects the parts of a [`Profile`].
///
/// Events, functions and modules are given identities by the caller, who knows them; paths,
/// threads, lines and samples are made distinct here.
///
/// ```
/// use proftool::base::{Event, WeightSum};
/// use proftool::profile::{Builder, Function, Module, Thread};
///
/// let mut builder = Builder::default();
/// let event = builder.event(Event::named("cycles"));
/// let module = builder.module(Module { name: "app".into(), path: "/bin/app".into() });
/// let main = builder.function(Function::named("main", module));
/// let thread = builder.thread(Thread::new(1, 1, "app"));
/// let path = builder.path(None, main, false);
/// builder.sample(event, thread, path, None, WeightSum::of(40));
/// builder.sample(event, thread, path, None, WeightSum::of(2));
/// let profile = builder.finish();
/// assert_eq!((profile.samples[0].weight, profile.samples[0].count), (42, 2));
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    /// The profile so far; its samples come with [`Builder::finish`].
    profile: Profile,
    paths: DistinctTree<PathId, CallPath>,
    modules: Distinct<ModuleId, Module>,
    threads: Distinct<ThreadId, Thread>,
    lines: Distinct<LineId, Line>,
    function_sets: Distinct<FunctionSetId, Box<[FunctionId]>>,
    samples: CollectedSamples<SampleKey>,
    places: DistinctTree<PlaceId, Place>,
    addresses: Distinct<AddressId, u64>,
    placed: CollectedSamples<PlacedKey>,
    calls: Vec<(FunctionId, FunctionId, CallKind)>,
    codes: Vec<(FunctionId, FunctionCode)>,
    counts: Vec<CallCount>,
    counts_complete: Option<Vec<FunctionId>>,
    site_counts: Vec<SiteCount>,
    several_builds: Vec<ModuleId>,
    /// The total weight and number of samples of each event: what would pass 64 bits is cut.
    totals: Vec<(u64, u64)>,
}

impl Builder {
    /// Adds an event whose way of sampling is unknown.
    pub fn event(&mut self, event: Event) -> EventId {
        self.sampled_event(event, Sampling::Unknown)
    }

    /// Adds an event whose samples were chosen in this way.
    pub fn sampled_event(&mut self, event: Event, sampling: Sampling) -> EventId {
        self.totals.push((0, 0));
        self.profile.sampling.push(sampling);
        self.profile.events.push(event)
    }

    /// The module of this name and path.
    pub fn module(&mut self, module: Module) -> ModuleId {
        self.modules.id_of(module)
    }

    /// Notes the name of a function in the source, which says more than its linkage name.
    pub fn source_name(&mut self, function: FunctionId, name: &str) {
        self.profile.source.add_name(function, name);
    }

    /// Notes a directory in which a part of a module was compiled.
    pub fn directory(&mut self, module: ModuleId, directory: &str) {
        self.profile.source.add_directory(module, directory);
    }

    /// Notes the build of a module. Where several builds were sampled none is kept.
    pub fn build_id(&mut self, module: ModuleId, build_id: &BuildId) {
        let builds = &mut self.profile.build_ids;
        while builds.len() <= module.index() {
            builds.push(None);
        }
        match &builds[module] {
            Some(known) if known != build_id => {
                self.several_builds.push(module);
            }
            _ => builds[module] = Some(build_id.clone()),
        }
    }

    /// Notes the file with the machine code of a module that a program generated.
    pub fn generated_code(&mut self, module: ModuleId, file: Arc<[u8]>) {
        self.profile.generated_code.insert(module, file);
    }

    /// Adds a function. Each call makes a new identity. A function without a name is called `[no
    /// name]`, so that no view and no format has to handle empty names.
    pub fn function(&mut self, mut function: Function) -> FunctionId {
        if function.name.is_empty() {
            function.name.push_str("[no name]");
        }
        self.profile.functions.push(function)
    }

    /// Notes what the name of a function is written in.
    pub fn set_language(&mut self, function: FunctionId, language: Language) {
        self.profile.functions[function].language = language;
    }

    /// The thread of these ids and name.
    pub fn thread(&mut self, thread: Thread) -> ThreadId {
        self.threads.id_of(thread)
    }

    /// The source line.
    pub fn line(&mut self, line: Line) -> LineId {
        self.lines.id_of(line)
    }

    /// The path on which `caller` calls (or, `inlined`, contains) `function`.
    pub fn path(&mut self, caller: Option<PathId>, function: FunctionId, inlined: bool) -> PathId {
        self.path_of(CallPath {
            inlined,
            ..CallPath::of(caller, function)
        })
    }

    /// The path of a function that was found on the stack inside of `caller`, which called
    /// something else: frames are missing between the two.
    pub fn path_across_gap(&mut self, caller: PathId, function: FunctionId) -> PathId {
        self.path_of(CallPath {
            across_gap: true,
            ..CallPath::of(Some(caller), function)
        })
    }

    /// This set of functions, in any order.
    pub fn function_set(&mut self, mut functions: Vec<FunctionId>) -> FunctionSetId {
        functions.sort_unstable();
        functions.dedup();
        self.function_sets.id_of(functions.into())
    }

    /// The path of a function that was not recorded, but must have been there.
    pub fn inferred_path(
        &mut self,
        caller: Option<PathId>,
        function: FunctionId,
        inlined: bool,
    ) -> PathId {
        self.path_of(CallPath {
            inlined,
            inferred: true,
            ..CallPath::of(caller, function)
        })
    }

    /// This path.
    pub fn path_of(&mut self, path: CallPath) -> PathId {
        self.paths.id_of(path)
    }

    /// The call path of this id.
    pub fn call_path(&self, path: PathId) -> CallPath {
        self.paths.rows()[path]
    }

    /// Counts samples. Returns false when the event's total would not fit 64 bits and only the part
    /// that fits was counted.
    pub fn sample(
        &mut self,
        event: EventId,
        thread: ThreadId,
        path: PathId,
        line: Option<LineId>,
        sum: WeightSum,
    ) -> bool {
        let counted = self.count_in(event, sum);
        self.samples.add((event, thread, path, line), counted);
        counted.weight == sum.weight
    }

    /// Notes when all samples were taken, in these slices; they are counted by [`Builder::sample`]
    /// as well. Samples of one stack take less memory if they follow each other.
    pub fn times(&mut self, slices: Slices, samples: impl Iterator<Item = TimedSample>) {
        self.profile.times = Some(Times::new(slices, samples));
    }

    /// The stated address of machine code.
    pub fn address(&mut self, address: u64) -> AddressId {
        self.addresses.id_of(address)
    }

    /// The place of this path when it was called from this line of this caller.
    pub fn place(
        &mut self,
        caller: Option<PlaceId>,
        path: PathId,
        line: Option<LineId>,
    ) -> PlaceId {
        self.place_at(Place {
            caller,
            path,
            line,
            address: None,
        })
    }

    /// The id of a place whose address may be known.
    pub fn place_at(&mut self, place: Place) -> PlaceId {
        self.places.id_of(place)
    }

    /// Counts samples like [`Builder::sample`], on the path of this place.
    pub fn sample_at(
        &mut self,
        event: EventId,
        thread: ThreadId,
        place: PlaceId,
        line: Option<LineId>,
        sum: WeightSum,
    ) -> bool {
        let counted = self.count_in(event, sum);
        self.placed.add((event, thread, place, line), counted);
        counted.weight == sum.weight
    }

    fn count_in(&mut self, event: EventId, sum: WeightSum) -> WeightSum {
        let (total, samples) = &mut self.totals[event.index()];
        let mut counted = sum.at_most(u64::MAX - *total);
        counted.count = sum.count.min(u64::MAX - *samples);
        *total += counted.weight;
        *samples += counted.count;
        counted
    }

    /// Notes a place in the code of `from` that refers to `to`.
    pub fn call(&mut self, from: FunctionId, to: FunctionId, kind: CallKind) {
        self.calls.push((from, to, kind));
    }

    /// Counts `calls` calls of `to` by `from`, which may be unknown. A profile without such a call
    /// has no counts, rather than counts of 0.
    pub fn count(&mut self, from: Option<FunctionId>, to: FunctionId, calls: u64) {
        self.counts.push(CallCount {
            from,
            to,
            calls,
            is_least: false,
        });
    }

    /// Adds call counts that are incomplete: all calls were counted only for the functions in
    /// `complete`. See [`Counts::are_partial`].
    pub fn count_some(
        &mut self,
        counts: impl IntoIterator<Item = CallCount>,
        complete: Vec<FunctionId>,
    ) {
        self.counts.extend(counts);
        self.counts_complete = Some(complete);
    }

    /// Adds numbers of calls by call site.
    pub fn count_sites(&mut self, sites: impl IntoIterator<Item = SiteCount>) {
        self.site_counts.extend(sites);
    }

    /// Notes what is known of a function from its code.
    pub fn code(&mut self, function: FunctionId, code: FunctionCode) {
        self.codes.push((function, code));
    }

    /// Notes that all functions and calls of the files with samples were added.
    pub fn code_is_whole(&mut self) {
        self.profile.code.is_whole = true;
    }

    /// Notes where the code of the functions of samples leads.
    pub fn followed(&mut self, followed: Followed) {
        self.profile.code.followed = Some(followed);
    }

    /// Notes that a module is the kernel's.
    pub fn kernel_module(&mut self, module: ModuleId) {
        self.profile.code.add_kernel(module);
    }

    /// Whether a module was noted to be the kernel's.
    pub fn is_kernel_module(&self, module: ModuleId) -> bool {
        self.profile.code.is_kernel(module)
    }

    /// Notes the functions that are entered by interrupting whatever runs.
    pub fn interrupts(&mut self, functions: Vec<FunctionId>) {
        self.profile.code.set_interrupts(functions);
    }

    /// The functions added so far.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        self.profile.functions.enumerate()
    }

    /// The name of a function.
    pub fn function_name(&self, function: FunctionId) -> &str {
        &self.profile.functions[function].name
    }

    /// The short name of a module.
    pub fn module_name(&self, module: ModuleId) -> &str {
        &self.modules.rows()[module].name
    }

    /// What the recording states about itself, to be filled in.
    pub fn about(&mut self) -> &mut About {
        &mut self.profile.about
    }

    /// Notes how reliable the stacks are.
    pub fn quality(&mut self, quality: Quality) {
        self.profile.caveats.among(quality.stacks);
        self.profile.quality = Some(quality);
    }

    /// The caveats, to add to.
    pub fn caveats(&mut self) -> &mut crate::base::Caveats {
        &mut self.profile.caveats
    }

    /// The functions added so far, to give them their final names.
    pub fn functions_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Function> {
        self.profile.functions.iter_mut()
    }

    /// The finished profile, its samples in order of event, thread, path and line.
    pub fn finish(mut self) -> Profile {
        // What grew by doubling has room for as much again, and all of it stays for as long as the
        // profile.
        self.profile.functions.shrink_to_fit();
        let mut paths = self.paths.into_rows();
        paths.shrink_to_fit();
        self.profile.paths = paths.into();
        self.profile.modules = self.modules.into_rows();
        self.profile.threads = self.threads.into_rows();
        for module in self.several_builds {
            self.profile.build_ids[module] = None;
        }
        self.profile.lines = self.lines.into_rows();
        self.profile.function_sets = self.function_sets.into_rows();
        self.profile.samples = self
            .samples
            .into_rows()
            .into_iter()
            .map(|((event, thread, path, line), sum)| Sample {
                event,
                thread,
                path,
                line,
                weight: sum.weight,
                count: sum.count,
                squares: sum.squares,
            })
            .collect();
        self.profile.samples.shrink_to_fit();
        if !self.places.rows().is_empty() {
            self.profile.places = Some(with_places(
                self.places.into_rows(),
                self.addresses.into_rows(),
                self.placed.into_rows(),
                &mut self.profile.samples,
            ));
        }
        // Sorted, equal calls are adjacent, and the order of scanning does not show in any output.
        self.calls.sort_unstable();
        let calls = self.calls.chunk_by(|a, b| a == b).map(|same| {
            let (from, to, kind) = same[0];
            let sites = same.len() as u64;
            Call {
                from,
                to,
                kind,
                sites,
            }
        });
        self.profile.code.add_calls(calls);
        self.profile.counts = match self.counts_complete {
            Some(complete) => {
                let counts = Counts::of(self.counts).partial(complete);
                Some(counts.with_sites(self.site_counts))
            }
            None => (!self.counts.is_empty()).then(|| Counts::of(self.counts)),
        };
        if !self.codes.is_empty() {
            self.profile.code.functions = IdVec::filled(None, self.profile.functions.len());
        }
        for (function, code) in self.codes {
            let known = &mut self.profile.code.functions[function];
            *known = Some(match *known {
                Some(other) => other.with_copy(code),
                None => code,
            });
        }
        self.profile.source.finish();
        self.profile.tell_apart();
        self.profile
    }
}

/// The order of samples.
fn order(sample: &Sample) -> (EventId, ThreadId, PathId, Option<LineId>) {
    (sample.event, sample.thread, sample.path, sample.line)
}

/// Puts the samples with places among those without, in order.
fn with_places(
    tree: IdVec<PlaceId, Place>,
    addresses: IdVec<AddressId, u64>,
    placed: Vec<(PlacedKey, WeightSum)>,
    samples: &mut Vec<Sample>,
) -> Places {
    let mut rows: Vec<(Sample, Option<PlaceId>)> =
        samples.drain(..).map(|sample| (sample, None)).collect();
    rows.extend(placed.into_iter().map(|(key, sum)| {
        let (event, thread, place, line) = key;
        let sample = Sample {
            event,
            thread,
            path: tree[place].path,
            line,
            weight: sum.weight,
            count: sum.count,
            squares: sum.squares,
        };
        (sample, Some(place))
    }));
    rows.sort_unstable_by_key(|(sample, place)| (order(sample), *place));
    let of_samples = rows.iter().map(|&(_, place)| place).collect();
    samples.extend(rows.into_iter().map(|(sample, _)| sample));
    Places::new(tree, of_samples, addresses)
}
