//! Names of events for recordings that do not have them: perf's own, from type and config.

use linux_perf_event_reader::{AttrFlags, constants};

use super::Attr;

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
const CACHE: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];
const CACHE_OPERATION: [(&str, &str); 3] = [
    ("loads", "load-misses"),
    ("stores", "store-misses"),
    ("prefetches", "prefetch-misses"),
];

pub(super) fn of(attr: &Attr) -> String {
    let listed = |names: &[&str]| {
        let index = usize::try_from(attr.config & 0xffff_ffff).ok()?;
        names.get(index).map(|name| (*name).to_owned())
    };
    let name = match attr.kind {
        constants::PERF_TYPE_HARDWARE => listed(&HARDWARE),
        constants::PERF_TYPE_SOFTWARE => listed(&SOFTWARE),
        constants::PERF_TYPE_HW_CACHE => cache(attr.config),
        constants::PERF_TYPE_TRACEPOINT => Some(format!("tracepoint {}", attr.config)),
        constants::PERF_TYPE_BREAKPOINT => Some("breakpoint".to_owned()),
        constants::PERF_TYPE_RAW => Some(format!("r{:x}", attr.config)),
        kind => Some(format!("pmu {kind}/config={:#x}/", attr.config)),
    };
    let name = name.unwrap_or_else(|| format!("type {} config {:#x}", attr.kind, attr.config));
    name + &modifiers(attr)
}

fn cache(config: u64) -> Option<String> {
    let part = |shift: u32| usize::try_from((config >> shift) & 0xff).ok();
    let cache = CACHE.get(part(0)?)?;
    let (all, misses) = CACHE_OPERATION.get(part(8)?)?;
    match part(16)? {
        0 => Some(format!("{cache}-{all}")),
        1 => Some(format!("{cache}-{misses}")),
        _ => None,
    }
}

// `:` and what was counted where it is not everything: `u`ser, `k`ernel, `h`ypervisor, `p`recise,
// `H`ost and `G`uest. As perf's `perf_evsel__add_modifiers`.
fn modifiers(attr: &Attr) -> String {
    let flags = attr.flags();
    let mut out = String::new();
    let mut guest_default = false;
    let rings = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_USER | AttrFlags::EXCLUDE_HV;
    if flags.intersects(rings) {
        for (exclude, letter) in [
            (AttrFlags::EXCLUDE_KERNEL, 'k'),
            (AttrFlags::EXCLUDE_USER, 'u'),
            (AttrFlags::EXCLUDE_HV, 'h'),
        ] {
            if !flags.contains(exclude) {
                out.push(letter);
            }
        }
        guest_default = true;
    }
    if attr.precise_ip() > 0 {
        out.extend(std::iter::repeat_n('p', usize::from(attr.precise_ip())));
        guest_default = true;
    }
    let host = flags.contains(AttrFlags::EXCLUDE_HOST);
    let guest = flags.contains(AttrFlags::EXCLUDE_GUEST);
    if host || guest == guest_default {
        if !host {
            out.push('H');
        }
        if !guest {
            out.push('G');
        }
    }
    if !out.is_empty() {
        out.insert(0, ':');
    }
    out
}
