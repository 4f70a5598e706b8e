//! The kinds of things that could not be known, and their stable names.

/// What kind of thing was not known. The name in JSON is [`CaveatKind::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CaveatKind {
    /// The recording has no samples.
    NoSamples,
    /// All weights in a file of folded stacks are 0.
    ZeroWeights,
    /// The histogram of a gmon.out has no ticks.
    EmptyHistogram,
    /// The kernel stopped recording as the program started, so there are no samples.
    StoppedAtExec,
    /// No sample is in the requested part of time; details: when samples were taken.
    NoSamplesInTime,
    /// The file ends before it should; details: where.
    Truncated,
    /// The recorder did not finish the file; it was read to its end.
    Unfinished,
    /// Damaged records or sections that were skipped; details: each, with its offset.
    Skipped,
    /// Record types that are not known; details: type numbers.
    UnknownRecord,
    /// Samples that the kernel could not deliver to the recorder.
    Lost,
    /// The kernel throttled the event; counts the throttle records.
    Throttled,
    /// Events whose samples add up to less processor time than the kernel counted; details: each, with
    /// how much.
    MissedTime,
    /// The same where threads ended, each with a last period that is in no sample.
    ShortThreads,
    /// The same where threads switched often, which a clock cannot interrupt.
    MissedSwitches,
    /// Other events whose samples do not add up to what the kernel counted; details: each, with both.
    Miscounted,
    /// Samples whose period is far above those of all others; details: each event, with both.
    OutlyingPeriod,
    /// Records that arrived too late to be sorted by time.
    Disordered,
    /// Samples of an event id that no event of the file has.
    UnknownEvent,
    /// Samples whose weight no longer fitted the 64-bit total.
    WeightLimit,
    /// Samples whose stack reached the limit of frames, the recorder's or the reader's.
    CutStack,
    /// Samples whose stack leads by a frame pointer to an address that holds no code, or to one that no
    /// call returns to, and was cut there; or whose stack ends in a function that something called.
    BrokenStack,
    /// Samples whose stack was unwound from a copy to an address that holds no code; it was cut there.
    BrokenCopy,
    /// Intervals off the processor that are counted without a stack: none was recorded.
    NoSwitchStack,
    /// Intervals off the processor that are not counted, as switches may have been lost within.
    UnsureSwitch,
    /// Threads that were off the processor when the recording began; that interval is not counted.
    OffBefore,
    /// Threads that were already blocked when the recording began: their time counts, without a
    /// stack.
    BlockedBefore,
    /// The recording has no call stacks.
    NoStacks,
    /// Call stacks were recorded without their part in user space.
    NoUserStacks,
    /// Call stacks were recorded without their part in the kernel, which was sampled.
    NoKernelStacks,
    /// Samples with a copy of the user's stack from a machine whose stacks are not unwound.
    NotUnwound,
    /// Samples whose stack was unwound to the end of its copy, and goes on; details: bytes copied.
    ShortCopy,
    /// Samples of whose stack nothing could be copied, as its page was not in memory.
    EmptyCopy,
    /// Samples by frame pointers whose stack is cut where the frame pointer's function is not within
    /// the bytes from the top of the stack; details: bytes copied.
    ShortTop,
    /// Samples whose stack leads to code without unwind information at hand, cut there; details:
    /// files.
    NoUnwindRules,
    /// Samples whose outer callers are on another stack than the one that was copied.
    OtherStack,
    /// Samples in signal handlers that ran on a stack of their own; that of what they interrupted was
    /// not copied.
    SignalStack,
    /// Samples with stacks of depth one or two: a program built without frame pointers.
    NoFramePointers,
    /// Samples taken in a guest or hypervisor, which are shown by address.
    Guest,
    /// Samples without any code address.
    NoAddress,
    /// Samples with frames to whose addresses nothing was mapped.
    Unmapped,
    /// Samples with frames in files that could not be found or opened; details: path and reason.
    MissingBinary,
    /// Samples in files that are not those that ran; details: path and reason.
    ChangedBinary,
    /// Files without a recorded build id that may not be those that ran; details: path and reason.
    UncheckedBinary,
    /// Samples with frames in files that have no symbol for them; details: path.
    NoSymbols,
    /// Samples with frames that a text input has no name for.
    NamelessFrames,
    /// A text input or a profile of another tool does not state how many samples there are; details: what
    /// is taken for the number.
    CountUnstated,
    /// Samples in code that is in no file and that its process did not list; details: processes.
    GeneratedCode,
    /// Text of a program that lies in anonymous memory now, over the mapping of its file, whose names are
    /// used; details: paths.
    MovedText,
    /// Samples in anonymous memory over the mapping of a library: a copy of its text or other code, so
    /// the names of the library are not used; details: paths.
    ReplacedText,
    /// Samples in code that several functions share, under the name of one; details: which.
    FoldedCode,
    /// Samples at addresses at which several generated functions were, at times that are not known.
    ReusedCode,
    /// Lists of generated code whose times cannot be compared with those of the samples; details:
    /// paths.
    JitWithoutTime,
    /// Lists of generated code whose times are not those of the recording, although both have the same
    /// clock; details: paths.
    JitOtherTime,
    /// Lists of generated code that could not be read completely; details: path and reason.
    BadJitDump,
    /// Kernel samples without names because the kernel hides its addresses.
    HiddenKernel,
    /// Debug information that could not be read; details: path and reason.
    BadDebugInfo,
    /// Debug information that is not used, or only in part, as it would take too much memory;
    /// details: path and what was left out.
    DebugInfoLimit,
    /// Kernel code was left out of the recording because privileges were missing.
    UserOnly,
    /// Lines of a text input that could not be read; details: each, with line number.
    BadLine,
    /// Direct calls in code into the middle of another function, taken as calls of it.
    InsideCalls,
    /// Other direct calls in code to addresses at which no function starts.
    AstrayCalls,
    /// Bytes of functions that are no instructions.
    UndecodedCode,
    /// Numbers of calls and time by function, without stacks: totals are estimates.
    CountsOnly,
    /// Shared libraries of a program whose histogram of addresses covers its own code; details: names.
    NoLibraryTime,
    /// A histogram of addresses with neither stacks nor counted calls.
    NothingCounted,
    /// Files whose code was not searched for calls; details: path and reason.
    UnscannedBinary,
    /// Functions of a file without symbols, known by their bounds only.
    NamelessFunctions,
    /// Functions of a file that have the code of others, too, and are shown under one name; details:
    /// which.
    FoldedFunctions,
    /// A file in which no function was found.
    NoFunctions,
    /// A file in whose code no call was found.
    NoCalls,
    /// Parts of a program file that could not be read; details: each.
    DamagedFile,
    /// Counted calls from or to addresses at which the program has no function.
    AstrayCounts,
    /// Counted calls that one of several functions made: their known address lies in all of these.
    SharedPlaces,
    /// A cycle of counted calls that contains `main` and has no caller outside.
    AssumedEntry,
    /// Programs that a command with counted calls became or started: their calls were not counted.
    UncountedPrograms,
    /// Source files whose text is not shown, although it could be read; details: path and reason.
    SourcesLeftOut,
}

impl CaveatKind {
    /// The stable name, as JSON has it.
    pub fn name(self) -> &'static str {
        use CaveatKind::*;
        match self {
            NoSamples => "no-samples",
            ZeroWeights => "zero-weights",
            EmptyHistogram => "empty-histogram",
            StoppedAtExec => "stopped-at-exec",
            NoSamplesInTime => "no-samples-in-time",
            Truncated => "truncated",
            Unfinished => "unfinished",
            Skipped => "skipped",
            UnknownRecord => "unknown-record",
            Lost => "lost",
            Throttled => "throttled",
            MissedTime => "missed-time",
            ShortThreads => "short-threads",
            MissedSwitches => "missed-switches",
            Miscounted => "miscounted",
            OutlyingPeriod => "outlying-period",
            Disordered => "disordered",
            UnknownEvent => "unknown-event",
            WeightLimit => "weight-limit",
            CutStack => "cut-stack",
            BrokenStack => "broken-stack",
            BrokenCopy => "broken-copy",
            NoSwitchStack => "no-switch-stack",
            UnsureSwitch => "unsure-switch",
            OffBefore => "off-before",
            BlockedBefore => "blocked-before",
            NoStacks => "no-stacks",
            NoUserStacks => "no-user-stacks",
            NoKernelStacks => "no-kernel-stacks",
            NotUnwound => "not-unwound",
            ShortCopy => "short-copy",
            EmptyCopy => "empty-copy",
            ShortTop => "short-top",
            NoUnwindRules => "no-unwind-rules",
            OtherStack => "other-stack",
            SignalStack => "signal-stack",
            NoFramePointers => "no-frame-pointers",
            Guest => "guest",
            NoAddress => "no-address",
            Unmapped => "unmapped",
            MissingBinary => "missing-binary",
            ChangedBinary => "changed-binary",
            UncheckedBinary => "unchecked-binary",
            NoSymbols => "no-symbols",
            NamelessFrames => "nameless-frames",
            CountUnstated => "count-unstated",
            GeneratedCode => "generated-code",
            MovedText => "moved-text",
            ReplacedText => "replaced-text",
            FoldedCode => "folded-code",
            ReusedCode => "reused-code",
            JitWithoutTime => "jit-without-time",
            JitOtherTime => "jit-other-time",
            BadJitDump => "bad-jitdump",
            HiddenKernel => "hidden-kernel",
            BadDebugInfo => "bad-debug-info",
            DebugInfoLimit => "debug-info-limit",
            UserOnly => "user-only",
            BadLine => "bad-line",
            InsideCalls => "inside-calls",
            AstrayCalls => "astray-calls",
            UndecodedCode => "undecoded-code",
            CountsOnly => "counts-only",
            NoLibraryTime => "no-library-time",
            NothingCounted => "nothing-counted",
            UnscannedBinary => "unscanned-binary",
            FoldedFunctions => "folded-functions",
            NamelessFunctions => "nameless-functions",
            NoFunctions => "no-functions",
            NoCalls => "no-calls",
            DamagedFile => "damaged-file",
            AstrayCounts => "astray-counts",
            SharedPlaces => "shared-places",
            AssumedEntry => "assumed-entry",
            UncountedPrograms => "uncounted-programs",
            SourcesLeftOut => "sources-left-out",
        }
    }
}
