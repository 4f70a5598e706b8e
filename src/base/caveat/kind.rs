//! The one table of what could not be known: by kind its stable name, what it is about, what would
//! help, and its sentence.

use super::Remedy;
use crate::base::grouped;

/// Declares the kinds, row by row:
///
/// ```text
/// Kind("name in JSON") About [minor] [=> Remedy]
///     "sentence";
/// ```
///
/// The sentence is lower-case, without a full stop, and names no command and no option. In it,
/// `{n}` is the count, `{s}` a plural's s, and `{was|were}` what stands for one and for several.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $kind:ident($name:literal) $about:ident $($minor:ident)? $(=> $remedy:ident)?
        $sentence:literal;
    )*) => {
        /// What kind of thing was not known, each with its sentence for `n` of them. Its name in
        /// JSON is [`CaveatKind::name`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum CaveatKind {
            $(#[doc = $sentence] #[doc = ""] $(#[$doc])* $kind,)*
        }

        /// The rows, in order of kind.
        static ROWS: &[Row] = &[$(Row {
            kind: CaveatKind::$kind,
            name: $name,
            about: About::$about,
            is_minor: is_minor!($($minor)?),
            remedy: remedy!($($remedy)?),
            sentence: $sentence,
        },)*];
    };
}

macro_rules! is_minor {
    () => {
        false
    };
    (minor) => {
        true
    };
}

macro_rules! remedy {
    () => {
        None
    };
    ($remedy:ident) => {
        Some(Remedy::$remedy)
    };
}

struct Row {
    kind: CaveatKind,
    name: &'static str,
    about: About,
    is_minor: bool,
    remedy: Option<Remedy>,
    sentence: &'static str,
}

/// What a caveat is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Which samples there are.
    Samples,
    /// Stacks without their outermost callers.
    CutStacks,
    /// Stacks whose unwinding ended before an entry point.
    BrokenStacks,
    /// Stacks in general.
    Stacks,
    /// The names of functions, and the files that have them.
    Names,
    /// Anything else.
    Other,
}

impl CaveatKind {
    /// All kinds, in order.
    pub fn all() -> impl Iterator<Item = CaveatKind> {
        ROWS.iter().map(|row| row.kind)
    }

    /// All kinds about this, in order.
    pub fn about(about: About) -> impl Iterator<Item = CaveatKind> {
        Self::all().filter(move |kind| kind.subject() == about)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The stable name, as JSON has it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it is about.
    pub fn subject(self) -> About {
        self.row().about
    }

    /// Whether it counts samples and changes nothing but these, so that few of them hardly matter.
    pub fn is_minor(self) -> bool {
        self.row().is_minor
    }

    /// What would help; [`Caveat::remedy`](super::Caveat::remedy) knows more.
    pub fn remedy(self) -> Option<Remedy> {
        self.row().remedy
    }

    /// Its sentence for `n` of this kind.
    pub(super) fn fact(self, n: u64) -> String {
        let mut fact = String::new();
        let mut rest = self.row().sentence;
        while let Some((before, slot)) = rest.split_once('{') {
            let (slot, after) = slot.split_once('}').expect("a slot of the table is closed");
            fact.push_str(before);
            match (slot, slot.split_once('|')) {
                ("n", _) => fact.push_str(&grouped(n)),
                (_, Some((one, _))) if n == 1 => fact.push_str(one),
                (_, Some((_, several))) => fact.push_str(several),
                (s, None) if n != 1 => fact.push_str(s),
                _ => {}
            }
            rest = after;
        }
        fact + rest
    }
}

kinds! {
    NoSamples("no-samples") Samples => RecordMore
        "no samples were recorded";
    ZeroWeights("zero-weights") Other
        "no samples: all weights in the file are 0";
    EmptyHistogram("empty-histogram") Other => RunLonger
        "no samples: the histogram in gmon.out is empty";
    StoppedAtExec("stopped-at-exec") Samples => RecordAsItsUser
        "no samples: the kernel stopped recording when the program started";
    /// Details: when samples were taken.
    NoSamplesInTime("no-samples-in-time") Samples
        "no samples in the chosen time range";
    /// Details: where.
    Truncated("truncated") Samples => RecordAgain
        "the file is truncated; what is there was read";
    Unfinished("unfinished") Samples => RecordAgain
        "the recording was not finished; all of it was read";
    /// Details: each, with its offset.
    Skipped("skipped") Samples
        "{n} record{s} or section{s} could not be read";
    /// Details: type numbers.
    UnknownRecord("unknown-record") Other
        "{n} record{s} of unknown type skipped";
    Lost("lost") Samples => AvoidLosses
        "{n} sample{s} or other records lost while recording";
    Throttled("throttled") Samples => LiftThrottle
        "the kernel throttled the event {n} time{s}";
    /// Details: each, with how much.
    MissedTime("missed-time") Samples => SampleLess
        "samples miss processor time that was used";
    ShortThreads("short-threads") Samples => RecordProcessors
        "samples miss processor time at the ends of threads and processes";
    MissedSwitches("missed-switches") Samples => UseCounter
        "samples miss the kernel's switches between threads, and other shares are too high by as \
         much";
    /// Details: each, with both.
    Miscounted("miscounted") Samples => RecordEveryOccurrence
        "samples do not add up to the kernel's own count";
    /// Details: each event, with both.
    OutlyingPeriod("outlying-period") Samples
        "{n} sample{s} with a period far above those of the others";
    Disordered("disordered") Other
        "{n} record{s} arrived too late to be sorted by time";
    UnknownEvent("unknown-event") Other
        "{n} sample{s} of an event that the file does not define";
    WeightLimit("weight-limit") Other
        "the weight of {n} sample{s} is reduced: the total exceeds 64 bits";
    CutStack("cut-stack") CutStacks minor => RaiseFrameLimit
        "{n} sample{s} with a stack truncated at the frame limit";
    BrokenStack("broken-stack") BrokenStacks minor => CompleteStacks
        "{n} sample{s} where frame pointers led nowhere: to no caller, or to an address that is \
         unmapped or follows no call";
    BrokenCopy("broken-copy") BrokenStacks minor
        "{n} sample{s} where unwinding a copied stack hit an address that is unmapped or follows \
         no call";
    NoSwitchStack("no-switch-stack") Other => RecordSwitchStacks
        "{n} off-CPU interval{s} without a stack";
    UnsureSwitch("unsure-switch") Other => EnlargeBuffers
        "{n} off-CPU interval{s} left out: records were lost during them";
    OffBefore("off-before") Other
        "{n} thread{s} {was|were} off-CPU when the recording began; {its|their} time until the \
         first switch is not counted";
    BlockedBefore("blocked-before") Other => RecordFromStart
        "{n} thread{s} {was|were} already blocked when the recording began; the stack is unknown";
    NoStacks("no-stacks") Other => RecordStacks
        "recorded without call stacks: totals include inlined functions, but no calls";
    NoUserStacks("no-user-stacks") Other => RecordStacks
        "recorded with call stacks of the kernel only: functions in user space have no callers";
    NoKernelStacks("no-kernel-stacks") Other
        "recorded with call stacks of user space only: of the kernel, stacks have only the \
         function that ran";
    NotUnwound("not-unwound") Stacks => RecordByFramePointers
        "{n} sample{s} with stack copies of an unsupported architecture, not unwound";
    /// Details: bytes copied.
    ShortCopy("short-copy") CutStacks minor => CopyMore
        "{n} sample{s} with a stack truncated at the end of its copy";
    EmptyCopy("empty-copy") CutStacks minor
        "{n} sample{s} of whose stack nothing could be copied: its page was not in memory";
    /// Details: bytes copied.
    ShortTop("short-top") CutStacks minor => CompleteStacks
        "{n} sample{s} with a stack truncated in code without frame pointers; the part copied was \
         too short";
    /// Details: files.
    NoUnwindRules("no-unwind-rules") BrokenStacks minor => ProvideUnwindRules
        "{n} sample{s} where unwinding stopped: no unwind information";
    OtherStack("other-stack") CutStacks => FollowOtherStack
        "{n} sample{s} whose outer callers are on another stack, of which there is no copy";
    SignalStack("signal-stack") CutStacks => FollowSignalStack
        "{n} sample{s} in signal handlers on a stack of their own; the interrupted stack was not \
         copied";
    NoFramePointers("no-frame-pointers") Stacks => CompleteStacks
        "{n} sample{s} with a user-space stack of one or two frames";
    Guest("guest") Other
        "{n} sample{s} in a guest or hypervisor";
    NoAddress("no-address") Other
        "{n} sample{s} without a code address";
    Unmapped("unmapped") Names
        "{n} sample{s} with frames where nothing was mapped";
    /// Details: path and reason.
    MissingBinary("missing-binary") Names => ProvideFiles
        "{n} sample{s} with frames in files that could not be opened";
    /// Details: path and reason.
    ChangedBinary("changed-binary") Names => ProvideBuild
        "{n} sample{s} with frames in files that are not the build that ran; not used";
    /// Details: path and reason.
    UncheckedBinary("unchecked-binary") Names => LinkBuildId
        "{n} file{s} without build ID may have changed since they ran; names may be wrong";
    /// Details: path.
    NoSymbols("no-symbols") Names minor => KeepSymbols
        "{n} sample{s} with frames in code without symbols";
    NamelessFrames("nameless-frames") Other
        "{n} sample{s} with unnamed frames; they are separate functions by caller";
    /// Details: what is taken for the number.
    CountUnstated("count-unstated") Other
        "the number of samples is not stated";
    /// Details: processes.
    GeneratedCode("generated-code") Names minor => NameGeneratedCode
        "{n} sample{s} with frames in code that is in no file, without names";
    /// Details: paths.
    MovedText("moved-text") Other
        "text was moved to anonymous memory; as it lies over the mapping of its program, that \
         file's names are used";
    /// Details: paths.
    ReplacedText("replaced-text") Other
        "{n} sample{s} in anonymous memory over the mapping of a library: its text was moved \
         there, or other code was put there after it was unmapped; its names are not used";
    /// Details: which.
    FoldedCode("folded-code") Other minor => KeepFunctionsApart
        "{n} sample{s} with frames in code that several functions share, shown under one name";
    ReusedCode("reused-code") Other => WriteJitDump
        "{n} sample{s} at addresses reused by several generated functions; which of them ran is \
         not known";
    /// Details: paths.
    JitWithoutTime("jit-without-time") Other => UseJitClock
        "{n} jitdump file{s} read without times: they use another clock than the recording";
    /// Details: paths.
    JitOtherTime("jit-other-time") Other
        "{n} jitdump file{s} read without times: they do not fit those of the recording (a time \
         namespace?)";
    /// Details: path and reason.
    BadJitDump("bad-jitdump") Other
        "{n} jitdump file{s} could not be read completely";
    /// Details: processes and bytes.
    CutPerfMap("cut-perf-map") Other
        "{n} perf map{s} too large to keep whole; functions at {its|their} end have no names";
    HiddenKernel("hidden-kernel") Names => NameKernel
        "{n} kernel sample{s} without names";
    /// Details: path and reason.
    BadDebugInfo("bad-debug-info") Names
        "debug information of {n} file{s} could not be read";
    /// Details: path and what was left out.
    DebugInfoLimit("debug-info-limit") Other
        "{n} part{s} of debug information too large and left out";
    UserOnly("user-only") Other => SeeKernel
        "user space only: kernel time is not in this recording";
    /// Details: each, with line number.
    BadLine("bad-line") Other
        "{n} line{s} could not be read";
    InsideCalls("inside-calls") Other
        "{n} direct call{s} into the middle of a function, counted as calls of it";
    AstrayCalls("astray-calls") Other
        "{n} direct call{s} to places where no function starts";
    UndecodedCode("undecoded-code") Other
        "{n} byte{s} of code could not be decoded";
    CountsOnly("counts-only") Other => SampleStacks
        "no call stacks: totals are estimated by gprof's propagation from counted calls; calls by \
         libraries and of code built without profiling are not counted; a tail call counts for \
         the function it returns to";
    /// Details: names.
    NoLibraryTime("no-library-time") Other
        "time in {n} shared {library|libraries} is not in gmon.out, which covers the program's \
         own code";
    NothingCounted("nothing-counted") Other => CountOrSample
        "no call stacks, and no call counts: totals are unknown";
    /// Details: path and reason.
    UnscannedBinary("unscanned-binary") Other
        "the calls in the code of {n} file{s} are unknown";
    NamelessFunctions("nameless-functions") Other => UseUnstripped
        "no symbols: {n} function{s} named by address, from unwind information; a function that \
         the compiler split counts as two";
    /// Details: which.
    FoldedFunctions("folded-functions") Other => KeepFunctionsApart
        "{n} function{s} {shares|share} {its|their} code with others, shown under one name";
    NoFunctions("no-functions") Other => UseUnstripped
        "no functions were found in the file";
    NoCalls("no-calls") Other
        "no calls were found in the code";
    /// Details: each.
    DamagedFile("damaged-file") Other
        "{n} part{s} of the file could not be read";
    AstrayCounts("astray-counts") Other
        "{n} counted call{s} from or to addresses outside all functions, left out";
    SharedPlaces("shared-places") Other
        "{n} counted call{s} may have another caller: gmon.out locates a call to within 16 bytes, \
         and several functions share these";
    AssumedEntry("assumed-entry") Other
        "no counted call enters the cycle of main; one call of main is assumed";
    UncountedPrograms("uncounted-programs") Other => CountProgram
        "{n} program{s} started by exec, whose calls were not counted";
    /// Details: path and reason.
    SourcesLeftOut("sources-left-out") Other => PermitSources
        "{n} source file{s} left out";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_its_own_row_and_name() {
        assert!({ ROWS.iter().enumerate() }.all(|(place, row)| row.kind as usize == place));
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
    }

    #[test]
    fn sentences_agree_with_their_number() {
        for (kind, n, expected) in [
            (
                CaveatKind::Skipped,
                1,
                "1 record or section could not be read",
            ),
            (
                CaveatKind::FoldedFunctions,
                2000,
                "2,000 functions share their code with others, shown under one name",
            ),
            (
                CaveatKind::FoldedFunctions,
                1,
                "1 function shares its code with others, shown under one name",
            ),
        ] {
            assert_eq!(kind.fact(n), expected);
        }
        for row in ROWS {
            for n in [0, 1, 2] {
                assert!(!row.kind.fact(n).contains(['{', '|', '}']), "{}", row.name);
            }
        }
    }
}
