//! How an event is opened: the `perf_event_attr`.

use perf_event_open_sys::bindings as sys;

use super::event::EventSpec;
use super::rate::Rate;
use super::stacks::{KEPT_REGISTERS, Stacks, USER_REGISTERS};
use crate::perfdata::writer::ATTR_SIZE;

// What every sample holds. The identifier comes first, so that any reader knows the event before it
// takes a record apart: only samples of tracepoints have their fields behind all this, and only
// those for a group the readings.
const SAMPLE_TYPE: u32 = sys::PERF_SAMPLE_IDENTIFIER
    | sys::PERF_SAMPLE_IP
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_CPU
    | sys::PERF_SAMPLE_PERIOD;

/// What the kernel lets us have. Starts with everything; each refusal takes one thing away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) struct Allowed {
    pub(in crate::sampler) kernel: bool,
    /// Counts of a group in samples of threads that inherit it (Linux 6.12).
    pub(in crate::sampler) inherited_reads: bool,
    /// Counts of lost samples when an event is read (Linux 6.0).
    pub(in crate::sampler) lost: bool,
    /// Build ids in MMAP2 records (Linux 5.12).
    pub(in crate::sampler) build_id: bool,
    /// Records of code that the kernel makes at run time: BPF programs, trampolines (Linux 5.1).
    pub(in crate::sampler) kernel_code: bool,
    /// Times of a clock that programs can read too (Linux 4.1).
    pub(in crate::sampler) clock: bool,
}

impl Allowed {
    pub(in crate::sampler) const ALL: Allowed = Allowed {
        kernel: true,
        inherited_reads: true,
        lost: true,
        build_id: true,
        kernel_code: true,
        clock: true,
    };

    /// The next smaller set to try when the kernel does not understand an attr: newest first.
    pub(in crate::sampler) fn older(self) -> Option<Allowed> {
        let mut less = self;
        if self.inherited_reads {
            less.inherited_reads = false;
        } else if self.lost {
            less.lost = false;
        } else if self.build_id {
            less.build_id = false;
        } else if self.kernel_code {
            less.kernel_code = false;
        } else if self.clock {
            less.clock = false;
        } else {
            return None;
        }
        Some(less)
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Common {
    pub(in crate::sampler) rate: Rate,
    /// Whether the user chose the rate, which then also holds for events that are counted.
    pub(in crate::sampler) rate_chosen: bool,
    pub(in crate::sampler) stacks: Stacks,
    /// Whether copies are unwound before they are written.
    pub(in crate::sampler) unwinds: bool,
    /// The kernel's limit of frames, written down so that a reader can tell which chains are cut;
    /// 0 where it is not known.
    pub(in crate::sampler) max_stack: u16,
    pub(in crate::sampler) allowed: Allowed,
    pub(in crate::sampler) watermark: u32,
    /// Whether the events count as soon as they are opened, and not from the next exec on.
    pub(in crate::sampler) at_once: bool,
    pub(in crate::sampler) inherit: bool,
}

/// The attr that a file has for this one: where the kernel writes a copy beside a chain, and it is
/// kept, the recorder moves it into the RAW field.
pub(in crate::sampler) fn attr_in_file(
    mut attr: sys::perf_event_attr,
    common: &Common,
) -> sys::perf_event_attr {
    if matches!(common.stacks, Stacks::Joined(_)) && !common.unwinds {
        attr.sample_type &= !u64::from(sys::PERF_SAMPLE_REGS_USER | sys::PERF_SAMPLE_STACK_USER);
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_RAW);
    }
    attr
}

/// The attr for `event`. The one event that `tracks` also reports mappings, names, forks.
pub(in crate::sampler) fn attr(
    event: &EventSpec,
    precise: u64,
    common: &Common,
    tracks: bool,
) -> sys::perf_event_attr {
    let allowed = common.allowed;
    let mut attr = sys::perf_event_attr {
        type_: event.kind,
        size: ATTR_SIZE as u32,
        config: event.config[0],
        sample_type: u64::from(SAMPLE_TYPE),
        read_format: u64::from(sys::PERF_FORMAT_ID),
        ..Default::default()
    };
    if common.stacks != Stacks::None {
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_CALLCHAIN);
        attr.sample_max_stack = common.max_stack;
    }
    if let Stacks::Copies(size) | Stacks::Joined(size) = common.stacks {
        let is_joined = matches!(common.stacks, Stacks::Joined(_));
        attr.sample_type |=
            u64::from(sys::PERF_SAMPLE_REGS_USER) | u64::from(sys::PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = if is_joined {
            KEPT_REGISTERS
        } else {
            USER_REGISTERS
        };
        attr.sample_stack_user = size.bytes();
        // The user's frames are found by the copy; the chain holds those of the kernel.
        attr.set_exclude_callchain_user(u64::from(!is_joined));
    }
    if allowed.lost {
        attr.read_format |= u64::from(sys::PERF_FORMAT_LOST);
    }
    if event.kind == sys::PERF_TYPE_TRACEPOINT {
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_RAW);
    }
    if event.reads {
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_READ);
        attr.read_format |= u64::from(sys::PERF_FORMAT_GROUP);
    }
    attr.__bindgen_anon_3.config1 = event.config[1];
    attr.__bindgen_anon_4.config2 = event.config[2];
    match common.rate {
        // Read with its leader's samples.
        _ if event.reads && event.member => {}
        _ if event.each && !common.rate_chosen => attr.__bindgen_anon_1.sample_period = 1,
        Rate::Period(period) => attr.__bindgen_anon_1.sample_period = period,
        Rate::Frequency(frequency) => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = frequency;
        }
    }
    // Of a software event whose samples tell their periods the kernel takes each occurrence, unless
    // it chooses the period itself; readers have a fixed one from here.
    let software = matches!(
        event.kind,
        sys::PERF_TYPE_SOFTWARE | sys::PERF_TYPE_TRACEPOINT
    );
    if software && matches!(common.rate, Rate::Period(2..)) {
        attr.sample_type &= !u64::from(sys::PERF_SAMPLE_PERIOD);
    }
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = common.watermark;
    attr.set_precise_ip(precise);

    let modifiers = event.modifiers;
    attr.set_exclude_user(u64::from(!modifiers.user()));
    attr.set_exclude_kernel(u64::from(!(modifiers.kernel() && allowed.kernel)));
    attr.set_exclude_hv(u64::from(!(modifiers.hypervisor() && allowed.kernel)));
    attr.set_exclude_guest(u64::from(!modifiers.guest()));
    attr.set_exclude_host(u64::from(!modifiers.host()));
    // The kernel knows them of leaders only.
    attr.set_pinned(u64::from(modifiers.pinned && !event.member));
    attr.set_exclusive(u64::from(modifiers.exclusive && !event.member));

    // Members count when their leader does, which waits for them: they would never be on the
    // counters where it is there already.
    let waits = !common.at_once || event.leads;
    attr.set_disabled(u64::from(waits && !event.member));
    attr.set_enable_on_exec(u64::from(!common.at_once && !event.member));
    attr.set_inherit(u64::from(
        common.inherit && (!event.reads || allowed.inherited_reads),
    ));
    attr.set_sample_id_all(1);
    // JIT compilers write the times of their code by this clock. The kernel's own begins at
    // another moment and runs at a slightly different speed.
    if allowed.clock {
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
    }
    if tracks {
        track(&mut attr, common);
    }
    attr
}

fn track(attr: &mut sys::perf_event_attr, common: &Common) {
    let allowed = common.allowed;
    attr.set_mmap(1);
    attr.set_mmap2(1);
    // perf finds unwind tables by their address in memory. Without data mappings it finds no
    // caller in programs that map these tables apart from the code.
    attr.set_mmap_data(u64::from(
        matches!(common.stacks, Stacks::Copies(_)) && !common.unwinds,
    ));
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_build_id(u64::from(allowed.build_id));
    let kernel_code = u64::from(allowed.kernel && allowed.kernel_code);
    attr.set_ksymbol(kernel_code);
    attr.set_bpf_event(kernel_code);
}

#[cfg(test)]
pub(in crate::sampler) mod tests {
    use super::*;
    use crate::perfdata::raw::{Field, Layouts, oracle};
    use crate::perfdata::writer::WriterEvent;
    use crate::sampler::events::event_list::EventList;
    use crate::sampler::events::stacks::CopySize;
    use crate::sampler::kernel::attr_bytes;
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use proptest::prelude::{ProptestConfig, proptest};

    const COMMON: Common = Common {
        rate: Rate::Frequency(997),
        rate_chosen: false,
        stacks: Stacks::FramePointers,
        unwinds: false,
        max_stack: 127,
        allowed: Allowed::ALL,
        watermark: 4096,
        at_once: false,
        inherit: true,
    };

    pub(in crate::sampler) fn description(event: &str) -> WriterEvent {
        WriterEvent {
            name: event.into(),
            attr: attr_bytes(&attr(&event.parse().unwrap(), 0, &COMMON, true)),
            ids: Vec::new(),
        }
    }

    #[test]
    fn without_privilege_nothing_of_the_kernel_is_asked_for() {
        let mut common = COMMON;
        common.allowed.kernel = false;
        let attr = attr(&EventSpec::cpu_clock(), 0, &common, true);
        assert_eq!((attr.exclude_kernel(), attr.exclude_hv()), (1, 1));
        assert_eq!((attr.ksymbol(), attr.bpf_event()), (0, 0));
        assert_eq!((attr.mmap2(), attr.build_id()), (1, 1));
    }

    #[test]
    fn copies_come_with_registers_and_the_kernels_part_of_the_chain() {
        let copies = Common {
            stacks: Stacks::Copies("1001".parse().unwrap()),
            ..COMMON
        };
        let copied = attr(&EventSpec::cpu_clock(), 0, &copies, true);
        let chained = attr(&EventSpec::cpu_clock(), 0, &COMMON, true);
        // PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER.
        assert_eq!(copied.sample_type, chained.sample_type | 1 << 12 | 1 << 13);
        assert_eq!(copied.sample_stack_user, 1008);
        assert_eq!(copied.sample_regs_user, USER_REGISTERS);
        let excluded = |attr: &sys::perf_event_attr| attr.exclude_callchain_user();
        assert_eq!((excluded(&copied), excluded(&chained)), (1, 0));
        assert_eq!(
            (chained.sample_regs_user, chained.sample_stack_user),
            (0, 0)
        );
    }

    #[test]
    fn a_copy_beside_a_chain_is_in_the_raw_field_of_the_file() {
        let joined = Common {
            stacks: Stacks::Joined(CopySize::TOP),
            ..COMMON
        };
        let asked = attr(&EventSpec::cpu_clock(), 0, &joined, true);
        let chained = attr(&EventSpec::cpu_clock(), 0, &COMMON, true);
        assert_eq!(asked.sample_type, chained.sample_type | 1 << 12 | 1 << 13);
        assert_eq!(asked.exclude_callchain_user(), 0);
        let written = attr_in_file(asked, &joined);
        // PERF_SAMPLE_RAW.
        assert_eq!(written.sample_type, chained.sample_type | 1 << 10);
        assert_eq!(written.sample_stack_user, 256);
        let plain = attr_in_file(chained, &COMMON);
        assert_eq!(attr_bytes(&plain), attr_bytes(&chained));
    }

    #[test]
    fn a_software_event_with_a_period_is_not_sampled_each_time() {
        let sampled = |event: &str, rate| {
            let common = Common {
                rate,
                rate_chosen: true,
                ..COMMON
            };
            let attr = attr(&event.parse().unwrap(), 0, &common, false);
            attr.sample_type & u64::from(sys::PERF_SAMPLE_PERIOD) != 0
        };
        assert!(!sampled("page-faults", Rate::Period(100)));
        assert!(sampled("page-faults", Rate::Period(1)));
        assert!(sampled("page-faults", Rate::Frequency(100)));
        assert!(sampled("cycles", Rate::Period(100)));
    }

    #[test]
    fn the_leader_samples_and_the_members_are_read() {
        let events: EventList = "{cpu-clock,cs}:SD".parse().unwrap();
        let [leader, member] = events.events() else {
            panic!("{events:?}");
        };
        let mut common = COMMON;
        let (first, second) = (
            attr(leader, 0, &common, true),
            attr(member, 0, &common, false),
        );
        assert_eq!(first.sample_type, second.sample_type);
        // PERF_SAMPLE_READ; ID, GROUP and LOST.
        assert_eq!(first.sample_type >> 4 & 1, 1);
        assert_eq!((first.read_format, second.read_format), (0x1c, 0x1c));
        let period = |attr: &sys::perf_event_attr| attr_bytes(attr)[16..24].to_vec();
        assert_eq!(period(&first), 997u64.to_ne_bytes());
        assert_eq!((period(&second), second.freq()), (vec![0; 8], 0));
        assert_eq!(
            (first.disabled(), first.pinned(), first.inherit()),
            (1, 1, 1)
        );
        assert_eq!(
            (second.disabled(), second.pinned(), second.inherit()),
            (0, 0, 1)
        );
        common.allowed.inherited_reads = false;
        assert_eq!(attr(leader, 0, &common, true).inherit(), 0);
        assert_eq!(attr(&EventSpec::cycles(), 0, &common, true).inherit(), 1);
    }

    #[test]
    fn all_events_of_a_recording_sample_the_same_things() {
        let clock = attr(&EventSpec::cpu_clock(), 0, &COMMON, true);
        let switches = attr(&"cs:u".parse().unwrap(), 0, &COMMON, false);
        assert_eq!(clock.sample_type, switches.sample_type);
        assert_eq!(clock.read_format, switches.read_format);
        assert_eq!((clock.freq(), switches.freq()), (1, 0));
        assert_eq!((clock.mmap2(), switches.mmap2()), (1, 0));
    }

    /// The attrs of every list of events with every choice and refusal, each list once.
    fn all_attrs() -> Vec<Vec<[u8; ATTR_SIZE]>> {
        let mut lists: Vec<Vec<EventSpec>> = [
            "cycles",
            "cpu-clock",
            "page-faults,cycles",
            "{cpu-clock,page-faults}:S",
            "{cycles,cs},page-faults",
            "{cycles,page-faults}:S,cpu-clock",
        ]
        .map(|list| list.parse::<EventList>().unwrap().events().to_vec())
        .to_vec();
        // The same with each event as a tracepoint, whose number only a system with tracefs tells.
        for list in lists.clone() {
            for index in 0..list.len() {
                let mut list = list.clone();
                list[index].kind = sys::PERF_TYPE_TRACEPOINT;
                lists.push(list);
            }
        }

        let copies = Stacks::Copies("8192".parse().unwrap());
        let mut found = std::collections::BTreeSet::new();
        for bits in 0u32..1 << 10 {
            let is = |bit: u32| bits >> bit & 1 == 1;
            let allowed = Allowed {
                kernel: is(0),
                inherited_reads: is(1),
                lost: is(2),
                build_id: is(3),
                kernel_code: is(4),
                clock: is(5),
            };
            let joined = Stacks::Joined(CopySize::TOP);
            for stacks in [Stacks::None, Stacks::FramePointers, joined, copies] {
                for rate in [Rate::Frequency(997), Rate::Period(1), Rate::Period(1000)] {
                    let common = Common {
                        rate,
                        rate_chosen: is(6),
                        stacks,
                        allowed,
                        at_once: is(7),
                        inherit: is(8),
                        ..COMMON
                    };
                    for list in &lists {
                        let attrs = list.iter().enumerate().map(|(index, event)| {
                            let mut attr = attr(event, 0, &common, index == 0);
                            attr.set_context_switch(u64::from(is(9) && index == 0));
                            attr_bytes(&attr)
                        });
                        found.insert(attrs.collect::<Vec<_>>());
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    /// What a record looks like, as far as it depends on the attr, and an attr of each kind.
    fn forms() -> &'static BTreeMap<(u64, u64, u64), [u8; ATTR_SIZE]> {
        static FORMS: LazyLock<BTreeMap<(u64, u64, u64), [u8; ATTR_SIZE]>> = LazyLock::new(|| {
            let form = |attr: &[u8; ATTR_SIZE]| {
                let attr = WriterEvent {
                    name: String::new(),
                    attr: *attr,
                    ids: Vec::new(),
                };
                let attr = attr.settings();
                (attr.sample_type, attr.read_format, attr.sample_regs_user)
            };
            let attrs = all_attrs().concat();
            attrs.iter().map(|attr| (form(attr), *attr)).collect()
        });
        // Stacks (4), the fields of tracepoints, the period, counters, lost samples (2 each).
        assert_eq!(FORMS.len(), 4 * 2 * 2 * 2 * 2);
        &FORMS
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: ProptestConfig::default().cases / 4,
            ..ProptestConfig::default()
        })]

        #[test]
        fn records_of_every_attr_are_read_as_the_parsers_read_them(values in oracle::values()) {
            for attr in forms().values() {
                oracle::check(attr, &values);
            }
        }
    }

    #[test]
    fn the_events_of_a_recording_share_the_places_of_time_thread_and_id() {
        for attrs in all_attrs() {
            let events: Vec<_> = attrs
                .iter()
                .map(|attr| WriterEvent {
                    name: String::new(),
                    attr: *attr,
                    ids: Vec::new(),
                })
                .collect();
            let layouts = Layouts::new(&events);
            let shared = layouts.shared();
            for field in [Field::Task, Field::Time, Field::Id, Field::Cpu] {
                assert!(shared.in_sample(field).is_some(), "{field:?}");
                assert!(shared.in_trailer(field, 100).is_some(), "{field:?}");
            }
            // What the recorder writes itself ends with these.
            assert_eq!(shared.trailer_start(100), Some(100 - 32));
        }
    }

    #[test]
    fn refusals_drop_the_newest_attribute_first() {
        let mut allowed = Allowed::ALL;
        let mut order = Vec::new();
        while let Some(less) = allowed.older() {
            order.push((less.lost, less.build_id, less.kernel_code, less.clock));
            allowed = less;
        }
        let expected = [
            (true, true, true, true),
            (false, true, true, true),
            (false, false, true, true),
            (false, false, false, true),
            (false, false, false, false),
        ];
        assert_eq!(order, expected);
    }
}
