//! Recordings of several runs of a program as one profile.
//!
//! Weights, counts and samples are added up; rows of samples stay apart by run, as threads are
//! those of their run ([`Thread::run`]). What the code says of calls is the same in each run of a
//! build, so it is kept once.
//!
//! A function is found again by module, name and declaration, and by its address as far as that
//! means the same code: in another build of the module, and in code that was generated in another
//! run, it does not. There several functions of one name are paired in their order.
//!
//! When samples were taken is not kept: runs have no common time.

mod code;
mod counts;

use hashbrown::HashMap;

use self::code::SummedCode;
use self::counts::SummedCounts;
use super::{
    Builder, CallPath, CallPaths, EventId, Function, FunctionId, FunctionKind, FunctionSetId, Line,
    LineId, ModuleId, PathId, Place, PlaceId, Profile, Quality, Thread, ThreadId,
};
use crate::base::{BuildId, Event, Id, IdVec, Sampling, WeightSum};

/// Adds up profiles, one for each run.
///
/// ```
/// use proftool::input::folded;
/// use proftool::profile::SumOfRuns;
///
/// let runs = ["main;parse 2\n", "main;parse 3\nmain;print 1\n"];
/// let mut sum = SumOfRuns::default();
/// for run in runs {
///     sum.add(&folded::read(run.as_bytes(), &mut |_| {}).unwrap());
/// }
/// let profile = sum.finish();
/// assert_eq!(profile.functions.len(), 3);
/// assert_eq!(profile.samples.iter().map(|sample| sample.weight).sum::<u64>(), 6);
/// ```
#[derive(Debug, Default)]
pub struct SumOfRuns {
    builder: Builder,
    runs: u32,
    events: Vec<(Event, EventId, Sampling)>,
    builds: IdVec<ModuleId, Option<BuildId>>,
    /// By what a function is in any build, in order of appearance.
    named: HashMap<Named, Vec<FunctionId>>,
    /// By the address in the build that was seen first.
    at: HashMap<(Named, u64), FunctionId>,
    code: SummedCode,
    counts: Option<SummedCounts>,
    quality: Quality,
    duration: Option<u64>,
}

/// What a function is in any build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named {
    module: ModuleId,
    kind: FunctionKind,
    name: String,
    linkage_name: Option<Box<str>>,
    declared_at: Option<Box<Line>>,
}

/// The ids of the sum for those of a profile.
struct Ids {
    modules: IdVec<ModuleId, ModuleId>,
    functions: IdVec<FunctionId, FunctionId>,
}

impl SumOfRuns {
    /// Adds the profile of a run.
    pub fn add(&mut self, profile: &Profile) {
        let ids = self.identify(profile);
        self.add_samples(profile, &ids);
        self.add_counts(profile, &ids);
        self.code.add(&profile.code, &ids);
        for (&module, file) in &profile.generated_code {
            self.builder
                .generated_code(ids.modules[module], file.clone());
        }
        let about = self.builder.about();
        match self.runs {
            0 => *about = profile.about.clone(),
            // The machine and the beginning are those of the first run.
            _ => {
                about.command = about
                    .command
                    .take()
                    .filter(|it| profile.about.command.as_ref() == Some(it));
                about.is_unwound &= profile.about.is_unwound;
            }
        }
        self.duration = match (self.runs, self.duration, profile.about.duration) {
            (0, _, run) => run,
            (_, sum, run) => sum.zip(run).map(|(sum, run)| sum.saturating_add(run)),
        };
        if let Some(quality) = &profile.quality {
            self.quality.add(quality);
        }
        self.builder.caveats().merge(&profile.caveats);
        self.runs += 1;
    }

    /// The sum. A single run is as it was, but for times.
    pub fn finish(mut self) -> Profile {
        self.builder.about().duration = self.duration;
        if self.quality.stacks > 0 {
            self.builder.quality(self.quality);
        }
        let uncounted = match self.counts {
            Some(counts) => counts.into_builder(&mut self.builder, self.runs),
            None => Vec::new(),
        };
        let calls = self.code.into_builder(&mut self.builder);
        let mut profile = self.builder.finish();
        for (_, id, sampling) in self.events {
            profile.sampling[id] = sampling;
        }
        profile.code.add_calls(calls);
        profile.counts = profile
            .counts
            .map(|counts| counts.with_uncounted(uncounted));
        profile
    }

    fn identify(&mut self, profile: &Profile) -> Ids {
        let mut modules = IdVec::default();
        // Whether addresses in it mean what they meant in the runs before.
        let mut is_same_code: IdVec<ModuleId, bool> = IdVec::default();
        for (id, module) in profile.modules.enumerate() {
            let of_sum = self.builder.module(module.clone());
            let build = profile.build_ids.get(id).cloned().flatten();
            while self.builds.len() <= of_sum.index() {
                self.builds.push(build.clone());
            }
            is_same_code.push(build.is_some() && self.builds[of_sum] == build);
            if let Some(build) = &build {
                self.builder.build_id(of_sum, build);
            }
            if profile.code.is_kernel(id) {
                self.builder.kernel_module(of_sum);
            }
            for directory in profile.source.directories(id) {
                self.builder.directory(of_sum, directory);
            }
            modules.push(of_sum);
        }
        let mut seen: HashMap<Named, usize> = HashMap::new();
        let mut functions = IdVec::default();
        for (id, function) in profile.functions.enumerate() {
            let named = Named {
                module: modules[function.module],
                kind: function.kind,
                name: function.name.clone(),
                linkage_name: function.linkage_name.clone(),
                declared_at: function.declared_at.clone(),
            };
            let nth = seen.entry(named.clone()).or_default();
            let address = function.address.filter(|_| is_same_code[function.module]);
            let known = match address {
                Some(address) => self.at.get(&(named.clone(), address)),
                None => self.named.get(&named).and_then(|all| all.get(*nth)),
            };
            *nth += 1;
            let of_sum = known.copied().unwrap_or_else(|| {
                let of_sum = self.builder.function(Function {
                    module: named.module,
                    ..function.clone()
                });
                if let Some(name) = profile.source.name(id) {
                    self.builder.source_name(of_sum, name);
                }
                if let Some(address) = address {
                    self.at.insert((named.clone(), address), of_sum);
                }
                self.named.entry(named).or_default().push(of_sum);
                of_sum
            });
            functions.push(of_sum);
        }
        Ids { modules, functions }
    }

    // The event of this name and unit; of several in a profile, that in the same place.
    fn event(&mut self, taken: &[EventId], event: &Event, sampling: Sampling) -> EventId {
        let mut known = self.events.iter_mut();
        let known = known.find(|(it, id, _)| it == event && !taken.contains(id));
        if let Some((_, id, of_sum)) = known {
            if *of_sum != sampling {
                *of_sum = Sampling::Unknown;
            }
            return *id;
        }
        let id = self.builder.sampled_event(event.clone(), sampling);
        self.events.push((event.clone(), id, sampling));
        id
    }

    fn add_samples(&mut self, profile: &Profile, ids: &Ids) {
        let mut events: Vec<EventId> = Vec::new();
        for (id, event) in profile.events.enumerate() {
            let sampling = profile.sampling.get(id).copied().unwrap_or_default();
            let of_sum = self.event(&events, event, sampling);
            events.push(of_sum);
        }
        let builder = &mut self.builder;
        let run = self.runs;
        let threads: IdVec<ThreadId, ThreadId> = mapped(&profile.threads, |thread| {
            builder.thread(Thread {
                run,
                ..thread.clone()
            })
        });
        let lines: IdVec<LineId, LineId> =
            mapped(&profile.lines, |line| builder.line(line.clone()));
        let sets: IdVec<FunctionSetId, FunctionSetId> = mapped(&profile.function_sets, |set| {
            builder.function_set(set.iter().map(|&id| ids.functions[id]).collect())
        });
        let paths = add_paths(&profile.paths, builder, ids, &sets);
        let line = |line: Option<LineId>| line.map(|line| lines[line]);
        let places = profile.places.as_ref().map(|places| {
            let mut of_sum: IdVec<PlaceId, PlaceId> = IdVec::default();
            for place in places.tree().iter() {
                let address = place.address.map(|at| places.addresses()[at]);
                let place = Place {
                    caller: place.caller.map(|caller| of_sum[caller]),
                    path: paths[place.path],
                    line: line(place.line),
                    address: address.map(|address| builder.address(address)),
                };
                of_sum.push(builder.place_at(place));
            }
            (places, of_sum)
        });
        for (row, sample) in profile.samples.iter().enumerate() {
            let (event, thread) = (events[sample.event.index()], threads[sample.thread]);
            let sum = WeightSum {
                weight: sample.weight,
                squares: sample.squares,
                count: sample.count,
            };
            let place = places
                .as_ref()
                .and_then(|(places, of_sum)| Some(of_sum[places.of_sample(row)?]));
            match place {
                Some(place) => builder.sample_at(event, thread, place, line(sample.line), sum),
                None => builder.sample(event, thread, paths[sample.path], line(sample.line), sum),
            };
        }
    }

    fn add_counts(&mut self, profile: &Profile, ids: &Ids) {
        if self.runs == 0 {
            self.counts = profile.counts.as_ref().map(|_| SummedCounts::default());
        }
        match (&mut self.counts, &profile.counts) {
            (Some(sum), Some(counts)) => sum.add(profile, counts, ids),
            _ => self.counts = None,
        }
    }
}

fn mapped<I: Id, T>(rows: &IdVec<I, T>, of_sum: impl FnMut(&T) -> I) -> IdVec<I, I> {
    let ids: Vec<I> = rows.iter().map(of_sum).collect();
    ids.into()
}

fn add_paths(
    paths: &CallPaths,
    builder: &mut Builder,
    ids: &Ids,
    sets: &IdVec<FunctionSetId, FunctionSetId>,
) -> IdVec<PathId, PathId> {
    let mut of_sum: IdVec<PathId, PathId> = IdVec::default();
    for (_, path) in paths.enumerate() {
        let path = CallPath {
            caller: path.caller.map(|caller| of_sum[caller]),
            function: ids.functions[path.function],
            candidates: path.candidates.map(|set| sets[set]),
            ..*path
        };
        of_sum.push(builder.path_of(path));
    }
    of_sum
}

#[cfg(test)]
mod tests {
    use super::SumOfRuns;
    use crate::base::{BuildId, Event, WeightSum};
    use crate::profile::{
        Builder, CallCount, Followed, FollowedFunction, Function, Module, Profile, Thread,
    };

    /// A run of two local functions `step` at these addresses of a build; the first has a sample.
    fn run(build: u8, addresses: [u64; 2]) -> Profile {
        let mut builder = Builder::default();
        let event = builder.event(Event::named("cpu-clock"));
        let module = builder.module(Module {
            name: "app".into(),
            path: "/bin/app".into(),
        });
        builder.build_id(module, &BuildId::new(&[build + 1; 20]).expect("an id"));
        let steps = addresses.map(|address| {
            builder.function(Function {
                address: Some(address),
                ..Function::named("step", module)
            })
        });
        let thread = builder.thread(Thread::new(1, 1, "app"));
        let path = builder.path(None, steps[0], false);
        builder.sample(event, thread, path, None, WeightSum::of(1));
        let count = CallCount {
            from: Some(steps[0]),
            to: steps[1],
            calls: 5,
            is_least: false,
        };
        builder.count_some([count], vec![steps[usize::from(build)]]);
        builder.finish()
    }

    fn sum(runs: &[Profile]) -> Profile {
        let mut sum = SumOfRuns::default();
        runs.iter().for_each(|run| sum.add(run));
        sum.finish()
    }

    #[test]
    fn functions_of_one_build_are_paired_by_address() {
        let profile = sum(&[run(0, [1, 2]), run(0, [2, 3])]);
        let addresses = profile.functions.iter().map(|it| it.address);
        assert_eq!(addresses.collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn functions_of_two_builds_are_paired_in_order() {
        let profile = sum(&[run(0, [1, 2]), run(1, [7, 9])]);
        assert_eq!(profile.functions.len(), 2);
        assert_eq!(profile.samples.len(), 2, "one of each run");
        assert_eq!(profile.build_ids.iter().flatten().count(), 0);
    }

    #[test]
    fn numbers_of_calls_are_whole_where_they_are_in_each_run() {
        let counts = |runs: &[Profile]| {
            let profile = sum(runs);
            let counts = profile.counts.clone().expect("counts");
            let calls: Vec<u64> = counts.calls().iter().map(|it| it.calls).collect();
            let are_all: Vec<bool> = profile
                .functions
                .ids()
                .map(|id| counts.has_all_of(id))
                .collect();
            (calls, are_all)
        };
        assert_eq!(
            counts(&[run(0, [1, 2]), run(0, [1, 2])]),
            (vec![10], vec![true, false])
        );
        assert_eq!(
            counts(&[run(0, [1, 2]), run(1, [1, 2])]),
            (vec![10], vec![false, false])
        );
    }

    #[test]
    fn calls_that_were_followed_stay_between_their_functions() {
        let followed = |calls: &[(u32, u32)]| {
            let mut run = run(0, [1, 2]);
            let ids = run.functions.ids();
            let functions = ids.map(|id| FollowedFunction {
                function: Some(id),
                ..FollowedFunction::default()
            });
            run.code.followed = Some(Followed {
                functions: functions.collect(),
                calls: calls.to_vec(),
                copied: Vec::new(),
            });
            run
        };
        let profile = sum(&[followed(&[(0, 1)]), followed(&[(0, 1), (1, 0)])]);
        let followed = profile.code.followed.expect("both runs have it");
        assert_eq!(followed.functions.len(), 4);
        assert_eq!(followed.calls, [(0, 1), (2, 3), (3, 2)]);
    }
}
