//! Each kind of caveat as a statement of fact.

use super::CaveatKind;
use crate::base::grouped;

impl CaveatKind {
    /// Returns what was found, as a lower-case sentence without a full stop: `n` things of this
    /// kind. It names no command and no option.
    pub(super) fn fact(self, n: u64) -> String {
        use CaveatKind::*;
        let is_one = n == 1;
        let s = if is_one { "" } else { "s" };
        let n = grouped(n);
        match self {
            NoSamples => "no samples were recorded".into(),
            ZeroWeights => "no samples: all weights in the file are 0".into(),
            EmptyHistogram => "no samples: the histogram in gmon.out is empty".into(),
            StoppedAtExec => {
                "no samples: the kernel stopped recording when the program started".into()
            }
            NoSamplesInTime => "no samples in the chosen time range".into(),
            Truncated => "the file is truncated; what is there was read".into(),
            Unfinished => {
                "the recording was not finished; all of it was read".into()
            }
            Skipped => format!("{n} record{s} or section{s} could not be read"),
            UnknownRecord => format!("{n} record{s} of unknown type skipped"),
            Lost => format!("{n} sample{s} or other records lost while recording"),
            Throttled => format!("the kernel throttled the event {n} time{s}"),
            MissedTime => "samples miss processor time that was used".into(),
            ShortThreads => "samples miss processor time at the ends of threads and processes".into(),
            MissedSwitches => "samples miss the kernel's switches between threads, and other shares are too \
                               high by as much"
                .into(),
            Miscounted => "samples do not add up to the kernel's own count".into(),
            OutlyingPeriod => {
                format!("{n} sample{s} with a period far above those of the others")
            }
            Disordered => format!("{n} record{s} arrived too late to be sorted by time"),
            UnknownEvent => format!("{n} sample{s} of an event that the file does not define"),
            WeightLimit => {
                format!("the weight of {n} sample{s} is reduced: the total exceeds 64 bits")
            }
            CutStack => format!("{n} sample{s} with a stack truncated at the frame limit"),
            BrokenStack => format!(
                "{n} sample{s} where frame pointers led nowhere: to no caller, or to an address that is \
                 unmapped or follows no call"
            ),
            BrokenCopy => format!(
                "{n} sample{s} where unwinding a copied stack hit an address that is unmapped or follows \
                 no call"
            ),
            NoSwitchStack => format!("{n} off-CPU interval{s} without a stack"),
            UnsureSwitch => format!(
                "{n} off-CPU interval{s} left out: records were lost during them"
            ),
            OffBefore => {
                let (was, its) = if is_one {
                    ("was", "its")
                } else {
                    ("were", "their")
                };
                format!(
                    "{n} thread{s} {was} off-CPU when the recording began; {its} time until the \
                     first switch is not counted"
                )
            }
            BlockedBefore => {
                let was = if is_one { "was" } else { "were" };
                format!(
                    "{n} thread{s} {was} already blocked when the recording began; the stack is \
                     unknown"
                )
            }
            NoStacks => {
                "recorded without call stacks: totals include inlined functions, but no calls".into()
            }
            NoUserStacks => "recorded with call stacks of the kernel only: functions in user space have \
                             no callers"
                .into(),
            NoKernelStacks => "recorded with call stacks of user space only: of the kernel, stacks have \
                               only the function that ran"
                .into(),
            NotUnwound => {
                format!(
                    "{n} sample{s} with stack copies of an unsupported architecture, not unwound"
                )
            }
            ShortCopy => format!("{n} sample{s} with a stack truncated at the end of its copy"),
            EmptyCopy => format!(
                "{n} sample{s} of whose stack nothing could be copied: its page was not in memory"
            ),
            ShortTop => format!(
                "{n} sample{s} with a stack truncated in code without frame pointers; the part copied was \
                 too short"
            ),
            NoUnwindRules => {
                format!("{n} sample{s} where unwinding stopped: no unwind information")
            }
            OtherStack => format!(
                "{n} sample{s} whose outer callers are on another stack, of which there is no copy"
            ),
            SignalStack => format!(
                "{n} sample{s} in signal handlers on a stack of their own; the interrupted stack was \
                 not copied"
            ),
            NoFramePointers => format!("{n} sample{s} with a user-space stack of one or two frames"),
            Guest => format!("{n} sample{s} in a guest or hypervisor"),
            NoAddress => format!("{n} sample{s} without a code address"),
            Unmapped => format!("{n} sample{s} with frames where nothing was mapped"),
            MissingBinary => format!("{n} sample{s} with frames in files that could not be opened"),
            ChangedBinary => {
                format!("{n} sample{s} with frames in files that are not the build that ran; not used")
            }
            UncheckedBinary => format!(
                "{n} file{s} without build ID may have changed since they ran; names may be wrong"
            ),
            NoSymbols => format!("{n} sample{s} with frames in code without symbols"),
            NamelessFrames => format!(
                "{n} sample{s} with unnamed frames; they are separate functions by caller"
            ),
            CountUnstated => "the number of samples is not stated".into(),
            GeneratedCode => format!("{n} sample{s} with frames in code that is in no file, without names"),
            MovedText => "text was moved to anonymous memory; as it lies over the mapping of its program, \
                          that file's names are used"
                .into(),
            ReplacedText => format!(
                "{n} sample{s} in anonymous memory over the mapping of a library: its text was moved there, \
                 or other code was put there after it was unmapped; its names are not used"
            ),
            FoldedCode => format!(
                "{n} sample{s} with frames in code that several functions share, shown under one name"
            ),
            ReusedCode => format!(
                "{n} sample{s} at addresses reused by several generated functions; which of them \
                 ran is not known"
            ),
            JitWithoutTime => format!(
                "{n} jitdump file{s} read without times: they use another clock than the recording"
            ),
            JitOtherTime => format!(
                "{n} jitdump file{s} read without times: they do not fit those of the recording (a \
                 time namespace?)"
            ),
            BadJitDump => format!("{n} jitdump file{s} could not be read completely"),
            HiddenKernel => format!("{n} kernel sample{s} without names"),
            BadDebugInfo => format!("debug information of {n} file{s} could not be read"),
            DebugInfoLimit => format!("{n} part{s} of debug information too large and left out"),
            UserOnly => "user space only: kernel time is not in this recording".into(),
            BadLine => format!("{n} line{s} could not be read"),
            InsideCalls => {
                format!("{n} direct call{s} into the middle of a function, counted as calls of it")
            }
            AstrayCalls => format!("{n} direct call{s} to places where no function starts"),
            UndecodedCode => format!("{n} byte{s} of code could not be decoded"),
            CountsOnly => {
                "no call stacks: totals are estimated by gprof's propagation from counted calls; calls by \
                 libraries and of code built without profiling are not counted; a tail call counts for \
                 the function it returns to"
                    .into()
            }
            UncountedPrograms => {
                format!("{n} program{s} started by exec, whose calls were not counted")
            }
            SourcesLeftOut => format!("{n} source file{s} left out"),
            NoLibraryTime => {
                let libraries = if is_one { "library" } else { "libraries" };
                format!(
                    "time in {n} shared {libraries} is not in gmon.out, which covers the program's own code"
                )
            }
            NothingCounted => {
                "no call stacks, and no call counts: totals are unknown".into()
            }
            UnscannedBinary => format!("the calls in the code of {n} file{s} are unknown"),
            FoldedFunctions => {
                let (share, their) = if is_one { ("shares", "its") } else { ("share", "their") };
                format!("{n} function{s} {share} {their} code with others, shown under one name")
            }
            NamelessFunctions => {
                format!(
                    "no symbols: {n} function{s} named by address, from unwind information; a \
                     function that the compiler split counts as two"
                )
            }
            NoFunctions => "no functions were found in the file".into(),
            NoCalls => "no calls were found in the code".into(),
            DamagedFile => format!("{n} part{s} of the file could not be read"),
            AstrayCounts => {
                format!("{n} counted call{s} from or to addresses outside all functions, left out")
            }
            SharedPlaces => format!(
                "{n} counted call{s} may have another caller: gmon.out locates a call to within 16 bytes, \
                 and several functions share these"
            ),
            AssumedEntry => {
                "no counted call enters the cycle of main; one call of main is assumed"
                    .into()
            }
        }
    }
}
