//! Event names as a user writes them, and the kernel's types and configs for them.

use std::path::Path;
use std::str::FromStr;

use perf_event_open_sys::bindings as sys;

use super::error::{EventError, Searched, UnknownEvent};
use super::modifiers::Modifiers;
use super::{pmu, tracepoint};

// The generalized hardware events, by `config`.
const HARDWARE: &[(&str, u32)] = &[
    ("cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("cpu-cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", sys::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", sys::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", sys::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    (
        "branch-instructions",
        sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
    ),
    ("branch-misses", sys::PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", sys::PERF_COUNT_HW_BUS_CYCLES),
    (
        "stalled-cycles-frontend",
        sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
    ),
    (
        "idle-cycles-frontend",
        sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
    ),
    (
        "stalled-cycles-backend",
        sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
    ),
    (
        "idle-cycles-backend",
        sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
    ),
    ("ref-cycles", sys::PERF_COUNT_HW_REF_CPU_CYCLES),
];

// The software events, by `config`, and whether each occurrence is sampled: all that are no clocks.
// They are rare or come in bursts, for which the kernel chooses wrong periods.
const SOFTWARE: &[(&str, u32, bool)] = &[
    ("cpu-clock", sys::PERF_COUNT_SW_CPU_CLOCK, false),
    ("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK, false),
    ("page-faults", sys::PERF_COUNT_SW_PAGE_FAULTS, true),
    ("faults", sys::PERF_COUNT_SW_PAGE_FAULTS, true),
    ("minor-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MIN, true),
    ("major-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ, true),
    (
        "context-switches",
        sys::PERF_COUNT_SW_CONTEXT_SWITCHES,
        true,
    ),
    ("cs", sys::PERF_COUNT_SW_CONTEXT_SWITCHES, true),
    ("cpu-migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS, true),
    ("migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS, true),
    (
        "alignment-faults",
        sys::PERF_COUNT_SW_ALIGNMENT_FAULTS,
        true,
    ),
    (
        "emulation-faults",
        sys::PERF_COUNT_SW_EMULATION_FAULTS,
        true,
    ),
    ("cgroup-switches", sys::PERF_COUNT_SW_CGROUP_SWITCHES, true),
];

/// Caches and what happens in them; `config` is `cache | operation << 8 | result << 16`.
const CACHES: &[(&str, u32)] = &[
    ("L1-dcache", sys::PERF_COUNT_HW_CACHE_L1D),
    ("L1-icache", sys::PERF_COUNT_HW_CACHE_L1I),
    ("LLC", sys::PERF_COUNT_HW_CACHE_LL),
    ("dTLB", sys::PERF_COUNT_HW_CACHE_DTLB),
    ("iTLB", sys::PERF_COUNT_HW_CACHE_ITLB),
    ("branch", sys::PERF_COUNT_HW_CACHE_BPU),
    ("node", sys::PERF_COUNT_HW_CACHE_NODE),
];
const CACHE_EVENTS: &[(&str, u32, u32)] = &[
    ("loads", sys::PERF_COUNT_HW_CACHE_OP_READ, ACCESS),
    ("load-misses", sys::PERF_COUNT_HW_CACHE_OP_READ, MISS),
    ("stores", sys::PERF_COUNT_HW_CACHE_OP_WRITE, ACCESS),
    ("store-misses", sys::PERF_COUNT_HW_CACHE_OP_WRITE, MISS),
    ("prefetches", sys::PERF_COUNT_HW_CACHE_OP_PREFETCH, ACCESS),
    (
        "prefetch-misses",
        sys::PERF_COUNT_HW_CACHE_OP_PREFETCH,
        MISS,
    ),
];
const ACCESS: u32 = sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS;
const MISS: u32 = sys::PERF_COUNT_HW_CACHE_RESULT_MISS;

/// An event to sample, parsed from its name.
///
/// A name is a hardware event (`cycles`), a cache event (`L1-dcache-load-misses`), a software
/// event (`page-faults`), a raw event of the processor (`r1a8`), or a tracepoint
/// (`sched:sched_switch`), or an event of a PMU (`cpu/event=0x3c,umask=0x1/`); each may end with
/// modifiers: `:u` user space only, `:k` kernel only, `:p` to `:ppp` precise, and others.
///
/// ```
/// use proftool::sampler::EventSpec;
/// let event: EventSpec = "cycles:u".parse().unwrap();
/// assert_eq!(event.name(), "cycles:u");
/// let error = "cycels".parse::<EventSpec>().unwrap_err().to_string();
/// assert_eq!(error, "unknown event \"cycels\"; did you mean cycles?");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSpec {
    pub(in crate::sampler) name: String,
    /// The name without modifiers, with what joins them to it.
    stem: String,
    /// `perf_event_attr.type`.
    pub(in crate::sampler) kind: u32,
    /// `config`, `config1`, `config2`.
    pub(in crate::sampler) config: [u64; 3],
    pub(in crate::sampler) modifiers: Modifiers,
    /// Whether every occurrence is a sample, unless the user chose a period.
    pub(in crate::sampler) each: bool,
    /// Whether those behind it are of its group.
    pub(in crate::sampler) leads: bool,
    /// Whether it is of the group of the event before it.
    pub(in crate::sampler) member: bool,
    /// Whether the samples of its group's leader have the counts of all, and no other samples.
    pub(in crate::sampler) reads: bool,
}

impl EventSpec {
    /// The name as it was given, with its modifiers.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::sampler) fn cycles() -> EventSpec {
        plain(
            sys::PERF_TYPE_HARDWARE,
            sys::PERF_COUNT_HW_CPU_CYCLES.into(),
        )
        .named("cycles")
    }

    pub(in crate::sampler) fn cpu_clock() -> EventSpec {
        plain(sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK.into()).named("cpu-clock")
    }

    /// Whether it belongs to the group of the event before it.
    pub fn is_member(&self) -> bool {
        self.member
    }

    pub(in crate::sampler) fn context_switches() -> EventSpec {
        let number = sys::PERF_COUNT_SW_CONTEXT_SWITCHES;
        EventSpec {
            each: true,
            ..plain(sys::PERF_TYPE_SOFTWARE, number.into()).named("context-switches")
        }
    }

    pub(in crate::sampler) fn is_hardware(&self) -> bool {
        matches!(
            self.kind,
            sys::PERF_TYPE_HARDWARE | sys::PERF_TYPE_HW_CACHE | sys::PERF_TYPE_RAW
        )
    }

    /// System and event, if it is a tracepoint.
    pub(in crate::sampler) fn tracepoint(&self) -> Option<(String, String)> {
        if self.kind != sys::PERF_TYPE_TRACEPOINT {
            return None;
        }
        let mut parts = self.name.split(':').map(str::to_owned);
        Some((parts.next()?, parts.next()?))
    }

    fn named(mut self, name: &str) -> EventSpec {
        self.name = name.to_owned();
        self.stem = format!("{name}:");
        self
    }

    /// With the modifiers of its group besides its own; its name tells them.
    pub(in crate::sampler) fn with_group(mut self, group: Modifiers) -> EventSpec {
        let (own, both) = (self.modifiers, self.modifiers.and(group));
        if own.letters() != both.letters() {
            self.name = format!("{}{}", self.stem, both.letters());
        }
        self.modifiers = both;
        self
    }

    pub(in crate::sampler) fn join(events: &mut [EventSpec]) {
        let any = |test: fn(&Modifiers) -> bool| events.iter().any(|event| test(&event.modifiers));
        let (reads, weak) = (any(|m| m.leader_samples), any(|m| m.weak));
        let alone = events.len() < 2;
        for (index, event) in events.iter_mut().enumerate() {
            event.member = index > 0;
            event.leads = index == 0 && !alone;
            event.reads = reads && !alone;
            event.modifiers.weak = weak;
        }
    }
}

impl FromStr for EventSpec {
    type Err = EventError;

    fn from_str(text: &str) -> Result<EventSpec, EventError> {
        if let Some((pmu, rest)) = text.split_once('/') {
            return of_pmu(text, pmu, rest);
        }
        let parts: Vec<&str> = text.split(':').collect();
        let (found, letters) = match parts[..] {
            [base] => (built_in_named(base)?, ""),
            [base, letters] if built_in(base).is_some() && !letters.is_empty() => {
                (built_in_named(base)?, letters)
            }
            // No tracepoint has such a name: it is the part before that is wrong.
            [base, letters] if !letters.is_empty() && Modifiers::parse(base, letters).is_ok() => {
                (built_in_named(base)?, letters)
            }
            [system, event] => (tracepoint_named(system, event)?, ""),
            [system, event, letters] if !letters.is_empty() => {
                (tracepoint_named(system, event)?, letters)
            }
            _ => {
                return Err(EventError::Syntax {
                    text: text.to_owned(),
                    problem: "a name has SYSTEM: before it at most, and :MODIFIERS behind it",
                });
            }
        };
        let bare = text.strip_suffix(letters).unwrap_or(text);
        let bare = bare.strip_suffix(':').unwrap_or(bare);
        Ok(EventSpec {
            modifiers: Modifiers::parse(text, letters)?,
            name: text.to_owned(),
            ..found.named(bare)
        })
    }
}

/// The event `pmu/rest`, as which `text` was given.
fn of_pmu(text: &str, pmu: &str, rest: &str) -> Result<EventSpec, EventError> {
    let Some((terms, letters)) = rest.split_once('/') else {
        return Err(EventError::Syntax {
            text: text.to_owned(),
            problem: "the terms of a PMU end with /",
        });
    };
    let encoded = pmu::encode(pmu, terms).map_err(|problem| EventError::Terms {
        event: text.to_owned(),
        problem,
    })?;
    let letters = letters.strip_prefix(':').unwrap_or(letters);
    let stem = match &encoded.name {
        Some(name) => format!("{name}:"),
        None => format!("{pmu}/{terms}/"),
    };
    Ok(EventSpec {
        name: encoded.name.unwrap_or_else(|| text.to_owned()),
        stem,
        config: encoded.config,
        modifiers: Modifiers::parse(text, letters)?,
        ..plain(encoded.kind, 0)
    })
}

fn built_in_named(name: &str) -> Result<EventSpec, UnknownEvent> {
    built_in(name).ok_or_else(|| {
        let near = nearest(name, built_in_names());
        UnknownEvent {
            name: name.to_owned(),
            near,
            searched: Searched::BuiltIn,
        }
    })
}

fn plain(kind: u32, config: u64) -> EventSpec {
    EventSpec {
        kind,
        config: [config, 0, 0],
        ..EventSpec::default()
    }
}

fn built_in(name: &str) -> Option<EventSpec> {
    let hardware = HARDWARE.iter().find(|(known, _)| *known == name);
    let software = SOFTWARE.iter().find(|(known, ..)| *known == name);
    if let Some((_, config)) = hardware {
        return Some(plain(sys::PERF_TYPE_HARDWARE, u64::from(*config)));
    }
    if let Some((_, config, each)) = software {
        return Some(EventSpec {
            each: *each,
            ..plain(sys::PERF_TYPE_SOFTWARE, u64::from(*config))
        });
    }
    if let Some(digits) = name.strip_prefix('r')
        && let Ok(config) = u64::from_str_radix(digits, 16)
    {
        return Some(plain(sys::PERF_TYPE_RAW, config));
    }
    for (cache, number) in CACHES {
        let Some(rest) = name.strip_prefix(cache).and_then(|r| r.strip_prefix('-')) else {
            continue;
        };
        if let Some((_, operation, result)) = CACHE_EVENTS.iter().find(|(known, ..)| *known == rest)
        {
            let config = number | operation << 8 | result << 16;
            return Some(plain(sys::PERF_TYPE_HW_CACHE, u64::from(config)));
        }
    }
    None
}

fn built_in_names() -> impl Iterator<Item = String> {
    let plain = HARDWARE
        .iter()
        .map(|(name, _)| *name)
        .chain(SOFTWARE.iter().map(|(name, ..)| *name));
    let caches = CACHES.iter().flat_map(|(cache, _)| {
        CACHE_EVENTS
            .iter()
            .map(move |(e, ..)| format!("{cache}-{e}"))
    });
    plain.map(str::to_owned).chain(caches)
}

fn tracepoint_named(system: &str, event: &str) -> Result<EventSpec, EventError> {
    let unknown = |near, searched| EventError::Unknown {
        source: UnknownEvent {
            name: format!("{system}:{event}"),
            near,
            searched,
        },
    };
    let Some(tracefs) = tracepoint::directory() else {
        return Err(unknown(Vec::new(), Searched::NoTracefs));
    };
    match tracepoint::id(&tracefs, system, event) {
        Ok(id) => Ok(EventSpec {
            each: true,
            ..plain(sys::PERF_TYPE_TRACEPOINT, id)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(EventError::Hidden {
                event: format!("{system}:{event}"),
                tracefs,
                group: crate::sampler::rights::group(),
            })
        }
        Err(_) => Err(unknown(
            near_tracepoints(&tracefs, system, event),
            Searched::Tracepoints,
        )),
    }
}

/// Tracepoints like this one: of its system when there is such a system, else of the systems
/// whose names are near.
fn near_tracepoints(tracefs: &Path, system: &str, event: &str) -> Vec<String> {
    let systems = if tracepoint::names(tracefs, Some(system)).is_empty() {
        nearest(system, tracepoint::names(tracefs, None).into_iter())
    } else {
        vec![system.to_owned()]
    };
    let all = systems.iter().flat_map(|system| {
        tracepoint::names(tracefs, Some(system))
            .into_iter()
            .map(move |event| format!("{system}:{event}"))
    });
    nearest(&format!("{system}:{event}"), all)
}

/// The at most three of `names` that differ from `name` by the fewest edits; none that differs
/// by more than a third.
fn nearest(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = names
        .map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(edits, known)| *edits * 3 <= name.len().max(known.len()))
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(3).map(|(_, known)| known).collect()
}

/// How many letters must be inserted, deleted or replaced to make `b` of `a` (Levenshtein 1965).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> (u32, u64) {
        let event: EventSpec = name.parse().unwrap();
        (event.kind, event.config[0])
    }

    #[test]
    fn names_have_the_numbers_of_the_kernel() {
        assert_eq!(parsed("cycles"), (0, 0));
        assert_eq!(parsed("branch-misses"), (0, 5));
        assert_eq!(parsed("cpu-clock"), (1, 0));
        assert_eq!(parsed("major-faults"), (1, 6));
        assert_eq!(parsed("L1-dcache-loads"), (3, 0));
        assert_eq!(parsed("L1-dcache-load-misses"), (3, 0x10000));
        assert_eq!(parsed("dTLB-store-misses"), (3, 0x10103));
        assert_eq!(parsed("branch-loads"), (3, 5));
        assert_eq!(parsed("r1A8"), (4, 0x1a8));
    }

    #[test]
    fn modifiers_choose_user_space_or_kernel() {
        let rings = |name: &str| {
            let event: EventSpec = name.parse().unwrap();
            let modifiers = event.modifiers;
            (modifiers.user(), modifiers.kernel(), modifiers.precise())
        };
        assert_eq!(rings("page-faults:u"), (true, false, None));
        assert_eq!(rings("cycles:kpp"), (false, true, Some(2)));
        assert_eq!(rings("cycles"), (true, true, None));
    }

    #[test]
    fn an_unknown_name_is_reported_with_similar_ones() {
        let error = "instrutions".parse::<EventSpec>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown event \"instrutions\"; did you mean instructions?"
        );
        let near = |name: &str| match name.parse::<EventSpec>() {
            Err(EventError::Unknown { source }) => source.near,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(near("l1-dcache-load-miss:u")[0], "L1-dcache-load-misses");
        assert!(near("zzzzzz").is_empty());
        for odd in [
            "", ":", ":u", "r", "rxyz", "../x:y", "a:b:c:u", "cycles:", "cs:z", "x/",
        ] {
            assert!(odd.parse::<EventSpec>().is_err(), "{odd:?}");
        }
    }
}
