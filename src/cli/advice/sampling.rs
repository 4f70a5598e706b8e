//! What can be done where sampling fails, or gives less than a user expects.

use proftool::base::shell_quoted;
use proftool::sampler::{Error, EventError, Note, Rights, Searched};

use super::rights::{
    PARANOID, SECCOMP, setcap_everything, to_name_the_kernel, to_record_others, to_see_the_kernel,
};

pub fn on_error(error: &Error) -> Option<String> {
    Some(match error {
        Error::Forbidden {
            paranoid: Some(3..),
        } => PARANOID.into(),
        Error::Forbidden { .. } => format!("a sandbox may forbid it; {SECCOMP}"),
        Error::KernelForbidden { .. } => to_see_the_kernel(&Rights::look()),
        Error::TracepointForbidden { .. } => "run proftool as root, or first run as root: sysctl \
             kernel.perf_event_paranoid=-1"
            .into(),
        Error::NoPerfEvents => format!("build the kernel with CONFIG_PERF_EVENTS; {SECCOMP}"),
        Error::Unsupported { hardware: true, .. } => {
            "virtual machines often have no hardware counters; sample the clock: -e cpu-clock"
                .into()
        }
        Error::TooManyFiles { needed } => format!(
            "raise the limit (run as root: ulimit -Hn {0}; ulimit -n {0}), record fewer events or \
             threads, or record whole processors (-a)",
            (needed + 64).next_power_of_two()
        ),
        Error::SystemForbidden { .. } => match Rights::look() {
            rights if rights.contained => "run outside of this container (user namespace), as \
                root: sysctl kernel.perf_event_paranoid=0 (-1 for tracepoints)"
                .into(),
            rights => format!(
                "run proftool as root, or first run as root: {}, or sysctl \
                 kernel.perf_event_paranoid=0 (-1 for tracepoints)",
                setcap_everything(&rights)
            ),
        },
        Error::TaskForbidden { .. } => to_record_others(&Rights::look()),
        Error::NoneNamed { .. } => "ps -eo comm lists the names".into(),
        Error::RingBuffer { .. } => {
            "other recorders may use all memory that this user may lock; raise the limit (ulimit \
             -l), or run as root: sysctl kernel.perf_event_mlock_kb=4096"
                .into()
        }
        Error::Frequency { wanted, limit } => {
            format!(
                "use -F {limit}, or raise the limit (run as root): sysctl \
                 kernel.perf_event_max_sample_rate={wanted}"
            )
        }
        Error::Interrupted {
            kept: Some(kept), ..
        }
        | Error::Unnamed { kept, .. } => {
            format!("proftool report {}", shell_quoted(&kept.to_string_lossy()))
        }
        Error::NotTraced { .. } => "a debugger, a sandbox (seccomp) or kernel.yama.ptrace_scope \
            may forbid it; without --counts it is sampled only"
            .into(),
        Error::EarlierStays { old, .. } if old.symlink_metadata().is_err() => {
            "record to another file: -o FILE".into()
        }
        Error::EarlierStays { old, .. } => format!(
            "move {} away, or record to another file: -o FILE",
            old.display()
        ),
        _ => return None,
    })
}

// One line.
pub fn note(note: &Note) -> String {
    match on_note(note) {
        Some(advice) => format!("{note}; {advice}"),
        None => note.to_string(),
    }
}

fn on_note(note: &Note) -> Option<String> {
    Some(match note {
        Note::UserOnly(rights) => format!("to see the kernel: {}", to_see_the_kernel(rights)),
        Note::NoSwitchStacks(rights) => format!("with stacks: {}", to_see_the_kernel(rights)),
        Note::GroupsNotInherited => {
            "for all threads, sample whole processors (-a), or leave :S out".into()
        }
        Note::HiddenKernel(rights) => to_name_the_kernel(rights),
        Note::LeftOut { .. } => format!(
            "run proftool as root, or first run as root: {}",
            setcap_everything(&Rights::look())
        ),
        Note::HiddenMappings { rights, .. } if rights.ptrace => "they are in another user \
            namespace, or a security module protects them, like process 1 of some containers: \
            record from outside of it"
            .into(),
        Note::HiddenMappings { rights, .. } => format!(
            "run proftool as root, or first run as root: {}; some, like process 1 of some \
             containers, stay hidden even then",
            setcap_everything(rights)
        ),
        Note::SmallerRings { .. } | Note::SmallerCopies { .. } => {
            "raise the limit (ulimit -l), or run as root: sysctl \
             kernel.perf_event_mlock_kb=4096"
                .into()
        }
        Note::Unfinished(path) => format!(
            "to read it: proftool report {}",
            shell_quoted(&path.to_string_lossy())
        ),
        _ => return None,
    })
}

pub fn on_event(error: &EventError) -> Option<String> {
    match error {
        EventError::Unknown { source: unknown } => match unknown.searched {
            Searched::BuiltIn if unknown.near.is_empty() => Some(
                "known events: cycles, instructions, cache-misses, cpu-clock, page-faults, \
                 context-switches, cache events such as L1-dcache-load-misses, rNNN (raw), \
                 SYSTEM:NAME (tracepoint), PMU/TERM=N,…/"
                    .into(),
            ),
            Searched::NoTracefs => Some(
                "tracepoints need tracefs; run as root: mount -t tracefs nodev /sys/kernel/tracing"
                    .into(),
            ),
            _ => None,
        },
        EventError::Hidden { tracefs, group, .. } => Some(format!(
            "run proftool as root, or first run as root: mount -o remount,mode=750,gid={group} {} \
             && sysctl kernel.perf_event_paranoid=-1",
            tracefs.display()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proftool::sampler::EventSpec;

    use super::*;

    #[test]
    fn an_event_without_similar_names_is_answered_with_a_list() {
        let error = "zzzzzzzzzz".parse().map(|_: EventSpec| ()).unwrap_err();
        assert!(on_event(&error).unwrap().contains("cycles, instructions"));
        let error = "cycels".parse().map(|_: EventSpec| ()).unwrap_err();
        assert_eq!(on_event(&error), None, "{error}");
    }

    #[test]
    fn advice_on_a_limit_names_both_ways_around_it() {
        let error = Error::Frequency {
            wanted: 200_000,
            limit: 100_000,
        };
        let advice = "use -F 100000, or raise the limit (run as root): sysctl \
                      kernel.perf_event_max_sample_rate=200000";
        assert_eq!(on_error(&error).unwrap(), advice);
    }

    #[test]
    fn what_is_in_the_way_of_a_recording_is_named_if_it_exists() {
        let advice = |old: &str| {
            let error = Error::EarlierStays {
                path: "perf.data".into(),
                old: old.into(),
                reason: String::new(),
            };
            on_error(&error).unwrap()
        };
        let this = file!();
        assert!(advice(this).contains(&format!("move {this} away")));
        assert_eq!(advice("no.such.file"), "record to another file: -o FILE");
    }
}
