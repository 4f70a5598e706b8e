//! The sentences of remedies: the one place where they become options, settings and flags.

use std::collections::BTreeSet;
use std::time::Duration;

use proftool::base::{Remedy, Runtime};
use proftool::sampler::{CopySize, Rights, Stacks};

use super::Situation;
use super::rights::{setcap_elsewhere, to_name_the_kernel, to_see_the_kernel};
use super::stacks::{frame_pointers, in_generated_code, name_generated_code};

// `runtimes` are those whose code the remedy is about.
pub fn sentence(
    remedy: Remedy,
    situation: &Situation,
    runtimes: &BTreeSet<Runtime>,
) -> Option<String> {
    let text = match remedy {
        Remedy::CompleteGeneratedStacks => in_generated_code(runtimes),
        Remedy::NameGeneratedCode => return Some(name_generated_code(runtimes)),
        _ => match everywhere(remedy) {
            Some(text) => text,
            None => return here(remedy, situation),
        },
    };
    Some(text.to_owned())
}

// Whatever a user is doing.
fn everywhere(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::RunLonger => {
            "run the program for longer: -pg samples it about 100 times per second of processor \
             time"
        }
        Remedy::RecordAsItsUser => {
            "the program is set-uid or set-gid, has file capabilities, or is not readable by the \
             user who records; record it as root, or as the user it changes to"
        }
        Remedy::RecordFromStart => {
            "to record these stacks, start the recording before the program; or attach a debugger: \
             gdb -p PID -batch -ex 'thread apply all backtrace'"
        }
        Remedy::RecordAgain => "record again if the end matters",
        Remedy::LiftThrottle => {
            "sample less often, or remove the limit (run as root): sysctl \
             kernel.perf_cpu_time_max_percent=0"
        }
        Remedy::UseCounter => {
            "a clock cannot interrupt them; a counter of the processor can, where there is one: \
             -e cycles"
        }
        Remedy::CompleteStacks => frame_pointers(),
        Remedy::WriteUnwindRules => {
            "build with -fasynchronous-unwind-tables; assembly needs directives (.cfi_startproc)"
        }
        Remedy::LinkBuildId => "record again; link with -Wl,--build-id",
        Remedy::KeepSymbols => "build with -g and do not strip, or install the debug symbols",
        Remedy::KeepFunctionsApart => {
            "to tell them apart, build with -fno-ipa-icf (GCC) and link with -Wl,--icf=none"
        }
        Remedy::WriteJitDump => {
            "have the code listed in a jitdump file, which has times (node: --perf-prof)"
        }
        Remedy::UseJitClock => {
            "record with the clock of jitdump files, CLOCK_MONOTONIC: proftool record, or perf \
             record -k mono"
        }
        Remedy::CountProgram => {
            "name the program itself: proftool record --counts -- PROGRAM, or follow what is \
             executed where nothing forbids it (--follow-exec)"
        }
        Remedy::PermitSources => {
            "to show all that you can read: --source all; to name the directory of the sources: \
             --source DIR"
        }
        Remedy::UseUnstripped => "use an unstripped build, or install the debug symbols",
        _ => return None,
    })
}

fn here(remedy: Remedy, situation: &Situation) -> Option<String> {
    let sample = |options: &str| situation.sample(options);
    let files = situation.files();
    Some(match remedy {
        Remedy::RecordMore => format!(
            "samples are taken only while threads run: run the program for longer, or record \
             off-CPU time: {}",
            sample("--off-cpu")
        ),
        Remedy::AvoidLosses => lost(situation),
        Remedy::SampleLess => missed_time(situation),
        Remedy::RecordProcessors => short_threads(situation),
        Remedy::RecordEveryOccurrence => format!(
            "record every occurrence: {}; if records are lost then, use a larger period (-c 100)",
            sample("-c 1 -e EVENT")
        ),
        Remedy::RaiseFrameLimit => format!(
            "raise the limit, to at most 6000 (run as root, while nothing is being recorded): \
             sysctl kernel.perf_event_max_stack=1024; then {}",
            match situation {
                Situation::Top => "start top again",
                _ => "record again",
            }
        ),
        Remedy::RecordSwitchStacks => format!(
            "if only some stacks are missing, records were lost: use larger buffers (-m 8192); if \
             all are missing, you need access to the kernel: {}",
            see_the_kernel(situation)
        ),
        Remedy::EnlargeBuffers => format!("use larger buffers: {}", sample("--off-cpu -m 8192")),
        Remedy::RecordStacks => match situation {
            Situation::Record { .. } | Situation::Top => "leave out -g none".to_owned(),
            _ => format!("record call stacks: {}", sample("")),
        },
        Remedy::RecordByFramePointers => format!("record with frame pointers: {}", sample("-g fp")),
        Remedy::CopyMore => format!(
            "copy more of each stack: {}",
            sample(&format!("-g dwarf,{}", CopySize::MAX))
        ),
        Remedy::FollowOtherStack => {
            "record without -g: frame pointers lead from stack to stack; if the Go program has C \
             code, build that with frame pointers, too (CGO_CFLAGS=\"-O2 -fno-omit-frame-pointer\")"
                .to_owned()
        }
        Remedy::FollowSignalStack => format!(
            "build with frame pointers, which lead from stack to stack (proftool help stacks), and \
             record by them: {}",
            sample("-g fp")
        ),
        Remedy::ProvideUnwindRules => format!(
            "provide the binaries that ran ({files}), or build with -fasynchronous-unwind-tables"
        ),
        Remedy::ProvideFiles => format!("name the directory with the files: {files}"),
        Remedy::ProvideBuild => match situation {
            Situation::Top => "restart the program, so that it runs the current build".to_owned(),
            _ => format!("record again, or provide the build that ran: {files}"),
        },
        Remedy::NameKernel => match situation {
            Situation::Top | Situation::Record { .. } => to_name_the_kernel(&Rights::look()),
            _ => "run as root: sysctl kernel.kptr_restrict=0, then record and report as root; for \
                  other users, see proftool doctor"
                .to_owned(),
        },
        Remedy::SampleStacks => format!("record stacks: {}", sample("")),
        Remedy::CountOrSample => format!(
            "compile the whole program with -pg, not only link it; or record stacks: {}",
            sample("")
        ),
        Remedy::SeeKernel => format!("to see the kernel: {}", see_the_kernel(situation)),
        _ => return None,
    })
}

// A file may come from another machine than this one.
fn see_the_kernel(situation: &Situation) -> String {
    match situation {
        Situation::Top | Situation::Record { .. } => to_see_the_kernel(&Rights::look()),
        _ => {
            let setcap = setcap_elsewhere();
            format!(
                "record as root, or first run as root: sysctl kernel.perf_event_paranoid=1, or \
                 {setcap}"
            )
        }
    }
}

// Off-CPU time is not sampled, so `-F` does not help there.
fn lost(situation: &Situation) -> String {
    match situation {
        Situation::Record { stood, .. } if !stood.is_zero() => did_not_run(*stood),
        Situation::Record {
            stacks: Stacks::Copies(_),
            off_cpu: true,
            ..
        } => {
            "use smaller copies (-g dwarf,4096) or none (-g fp), or larger buffers (-m 8192)".into()
        }
        Situation::Record {
            stacks: Stacks::Copies(_),
            off_cpu: false,
            ..
        } => "use larger buffers (-m 8192) or smaller copies (-g dwarf,4096), or sample less often"
            .into(),
        Situation::Record { off_cpu: true, .. } => "use larger buffers (-m 8192)".into(),
        Situation::Record { off_cpu: false, .. } => {
            "use larger buffers (-m 1024), or sample less often".into()
        }
        _ => "use larger buffers (-m 8192), or sample less often (-F)".into(),
    }
}

// The recorder itself did not run: larger buffers and higher rates do not help.
fn did_not_run(stood: Duration) -> String {
    format!(
        "proftool itself did not run for {:.1} s, and emptied no buffers: it was stopped (SIGSTOP, \
         Ctrl-Z), or other programs had all processors",
        stood.as_secs_f64()
    )
}

// Neither threads that end nor switches explain it.
fn missed_time(situation: &Situation) -> String {
    match situation {
        Situation::Record { stood, .. } if !stood.is_zero() => did_not_run(*stood),
        _ => "if the rate is high, sample less often (-F)".into(),
    }
}

// What is sampled per thread misses the ends of threads, as the kernel starts a new period with
// each; what is sampled per processor does not.
fn short_threads(situation: &Situation) -> String {
    match situation {
        Situation::Record { stood, .. } if !stood.is_zero() => did_not_run(*stood),
        Situation::Top => "watch the whole machine (-a) or a --cgroup".into(),
        _ => "record the whole machine (-a; then report --comm NAME) or a --cgroup".into(),
    }
}

#[cfg(test)]
mod tests {
    use proftool::base::{CaveatKind, Caveats};

    use super::*;

    fn advice(kind: CaveatKind, situation: &Situation) -> Option<String> {
        sentence(kind.remedy()?, situation, &BTreeSet::new())
    }

    #[test]
    fn every_remedy_of_a_kind_has_a_sentence() {
        let kinds = CaveatKind::all().filter(|kind| kind.remedy().is_some());
        let wordless = kinds.filter(|&kind| advice(kind, &view()).is_none());
        assert_eq!(wordless.collect::<Vec<_>>(), []);
    }

    fn view() -> Situation {
        Situation::View {
            command: "flat",
            query: String::new(),
            has_focus: false,
        }
    }

    #[test]
    fn advice_names_what_the_running_command_has() {
        for (kind, situation, expected) in [
            (
                CaveatKind::Lost,
                Situation::Top,
                "use larger buffers (-m 8192), or sample less often (-F)",
            ),
            (
                CaveatKind::Lost,
                view(),
                "use larger buffers (-m 8192), or sample less often (-F)",
            ),
            (
                CaveatKind::Lost,
                Situation::Record {
                    stacks: Stacks::FramePointers,
                    off_cpu: true,
                    stood: Duration::ZERO,
                },
                "use larger buffers (-m 8192)",
            ),
            (
                CaveatKind::Lost,
                Situation::Record {
                    stacks: Stacks::FramePointers,
                    off_cpu: false,
                    stood: Duration::from_millis(3100),
                },
                "proftool itself did not run for 3.1 s, and emptied no buffers: it was stopped \
                 (SIGSTOP, Ctrl-Z), or other programs had all processors",
            ),
            (
                CaveatKind::MissedTime,
                Situation::Record {
                    stacks: Stacks::FramePointers,
                    off_cpu: false,
                    stood: Duration::from_secs(4),
                },
                "proftool itself did not run for 4.0 s, and emptied no buffers: it was stopped \
                 (SIGSTOP, Ctrl-Z), or other programs had all processors",
            ),
            // A rate that would give samples is not known: the threads may not have run at all.
            (
                CaveatKind::NoSamples,
                view(),
                "samples are taken only while threads run: run the program for longer, or record \
                 off-CPU time: proftool record --off-cpu -- COMMAND",
            ),
            (
                CaveatKind::UnsureSwitch,
                Situation::Top,
                "use larger buffers: --off-cpu -m 8192",
            ),
            (
                CaveatKind::MissingBinary,
                view(),
                "name the directory with the files: --symfs DIR",
            ),
            (
                CaveatKind::MissingBinary,
                Situation::Doctor {
                    file: "a.data".into(),
                },
                "name the directory with the files: proftool report a.data --symfs DIR",
            ),
            (
                CaveatKind::MissingBinary,
                Situation::Top,
                "name the directory with the files: write a recording with the key w, then \
                 proftool report FILE --symfs DIR",
            ),
        ] {
            let advice = advice(kind, &situation);
            assert_eq!(advice.as_deref(), Some(expected), "{situation:?}");
        }
    }

    #[test]
    fn what_helps_with_several_caveats_is_told_once() {
        let mut caveats = Caveats::default();
        caveats.add(CaveatKind::BrokenStack, 2);
        caveats.add(CaveatKind::NoFramePointers, 1);
        caveats.add(CaveatKind::MissingBinary, 1);
        let situation = view();
        let told = situation.told(caveats.iter());
        let told: Vec<_> = told
            .map(|(caveat, hint)| (caveat.kind, hint.is_some()))
            .collect();
        for (kind, expected) in [
            (CaveatKind::BrokenStack, true),
            (CaveatKind::NoFramePointers, false),
            (CaveatKind::MissingBinary, true),
        ] {
            assert!(told.contains(&(kind, expected)), "{told:?}");
        }
    }

    #[test]
    fn advice_on_broken_stacks_is_for_how_they_were_recorded() {
        let of_pointers = advice(CaveatKind::BrokenStack, &view()).unwrap();
        assert!(
            of_pointers.starts_with("record without -g"),
            "{of_pointers}"
        );
        assert_eq!(advice(CaveatKind::BrokenCopy, &view()), None);
    }

    #[test]
    fn a_go_program_need_not_have_c_code_to_be_recorded_by_frame_pointers() {
        let hint = advice(CaveatKind::OtherStack, &view()).unwrap();
        let (first, rest) = hint.split_once("; ").unwrap();
        assert!(first.starts_with("record without -g"), "{hint}");
        assert!(rest.starts_with("if the Go program has C code"), "{hint}");
    }

    #[test]
    fn advice_on_a_file_is_the_same_on_every_machine() {
        let kernel = advice(CaveatKind::UserOnly, &view()).unwrap();
        assert!(kernel.contains("$(command -v proftool)"), "{kernel}");
        let frames = advice(CaveatKind::NoFramePointers, &Situation::Top).unwrap();
        assert!(frames.contains("without -g"), "{frames}");
    }
}
