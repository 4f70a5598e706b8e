//! What could not be known, counted: the one collector of diagnostics.
//!
//! A room that has to leave something out adds a caveat and goes on. Every view shows them, with
//! what a person can do about each; nothing is dropped in silence.

use std::collections::BTreeMap;
use std::fmt::Write;

/// How many distinct details of one kind are kept; beyond it they are only counted.
const DETAILS_KEPT: usize = 256;
/// How many details a message names.
const DETAILS_NAMED: usize = 3;

/// What kind of thing was not known. The name in JSON is [`CaveatKind::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CaveatKind {
    /// The recording has no samples.
    NoSamples,
    /// The kernel stopped recording as the program started, so there are no samples.
    StoppedAtExec,
    /// No sample is in the part of time that was asked for; details: when samples were taken.
    NoSamplesInTime,
    /// The file ends before it should; details: where.
    Truncated,
    /// The recorder did not finish the file; it was read to its end.
    Unfinished,
    /// Records or sections that could not be believed were passed over; details: each, with offset.
    Skipped,
    /// Record types that are not known; details: type numbers.
    UnknownRecord,
    /// Samples that the kernel could not deliver to the recorder.
    Lost,
    /// The kernel held the event back; counts the throttle records.
    Throttled,
    /// Events whose samples add up to much less processor time than the kernel counted; details:
    /// each, with both.
    MissedTime,
    /// Other events whose samples do not add up to what the kernel counted; details: each, with both.
    Miscounted,
    /// Records that arrived too late to be sorted by time.
    Disordered,
    /// Samples of an event id that no event of the file has.
    UnknownEvent,
    /// Samples whose weight did not fit the 64-bit total any more.
    WeightLimit,
    /// Samples whose stack reached the recorder's or our limit of frames.
    CutStack,
    /// Samples whose stack leads to an address that holds no code; it was cut there.
    BrokenStack,
    /// Intervals off the processor that are counted without a stack: none was recorded.
    NoSwitchStack,
    /// Intervals off the processor that are not counted, as switches may have been lost within.
    UnsureSwitch,
    /// Threads that were off the processor when the recording began; that interval is not counted.
    OffBefore,
    /// Threads that were blocked already when the recording began: their time counts, without a stack.
    BlockedBefore,
    /// The recording has no call stacks.
    NoStacks,
    /// Samples with a copy of the user's stack from a machine whose stacks are not unwound.
    NotUnwound,
    /// Samples whose stack was unwound to the end of its copy, and goes on; details: bytes copied.
    ShortCopy,
    /// Samples whose stack leads to code without unwind information at hand, cut there; details:
    /// files.
    NoUnwindRules,
    /// Samples with stacks of depth one or two: a program built without frame pointers.
    NoFramePointers,
    /// Samples taken in a guest or hypervisor, which are shown by address.
    Guest,
    /// Samples without any code address.
    NoAddress,
    /// Samples at addresses to which nothing was mapped.
    Unmapped,
    /// Samples in files that could not be found or opened; details: path and reason.
    MissingBinary,
    /// Samples in files whose build is not the one that ran; details: path.
    ChangedBinary,
    /// Files without a recorded build id that were written after the recording; details: path.
    UncheckedBinary,
    /// Samples in files that have no symbol for them; details: path.
    NoSymbols,
    /// Samples with frames that a text input has no name for.
    NamelessFrames,
    /// Samples in code that a process made at run time and did not list; details: processes.
    GeneratedCode,
    /// Samples at addresses at which several generated functions were, at times that are not known.
    ReusedCode,
    /// Lists of generated code whose times cannot be compared with those of the samples; details:
    /// paths.
    JitWithoutTime,
    /// Lists of generated code that could not be read completely; details: path and reason.
    BadJitDump,
    /// Kernel samples without names because the kernel hides its addresses.
    HiddenKernel,
    /// Debug information that could not be read; details: path and reason.
    BadDebugInfo,
    /// Debug information that is not used, or only in part, as it would take too much memory;
    /// details: path and what was left out.
    DebugInfoLimit,
    /// Kernel code was left out of the recording for want of privilege.
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
    /// A histogram of addresses with neither stacks nor counted calls.
    NothingCounted,
    /// Files whose code was not looked at for calls; details: path and reason.
    UnscannedBinary,
    /// Functions of a file without symbols, known by their bounds only.
    NamelessFunctions,
    /// A file in which no function was found.
    NoFunctions,
    /// A file in whose code no call was found.
    NoCalls,
    /// Parts of a program file that could not be read; details: each.
    DamagedFile,
    /// Counted calls from or to addresses at which the program has no function.
    AstrayCounts,
    /// Counted calls that one of several functions made: the place that is known of them lies in
    /// all of these.
    SharedPlaces,
    /// A cycle of counted calls that holds `main` and that nobody outside of it calls.
    AssumedEntry,
}

impl CaveatKind {
    /// The stable name, as JSON has it.
    pub fn name(self) -> &'static str {
        use CaveatKind::*;
        match self {
            NoSamples => "no-samples",
            StoppedAtExec => "stopped-at-exec",
            NoSamplesInTime => "no-samples-in-time",
            Truncated => "truncated",
            Unfinished => "unfinished",
            Skipped => "skipped",
            UnknownRecord => "unknown-record",
            Lost => "lost",
            Throttled => "throttled",
            MissedTime => "missed-time",
            Miscounted => "miscounted",
            Disordered => "disordered",
            UnknownEvent => "unknown-event",
            WeightLimit => "weight-limit",
            CutStack => "cut-stack",
            BrokenStack => "broken-stack",
            NoSwitchStack => "no-switch-stack",
            UnsureSwitch => "unsure-switch",
            OffBefore => "off-before",
            BlockedBefore => "blocked-before",
            NoStacks => "no-stacks",
            NotUnwound => "not-unwound",
            ShortCopy => "short-copy",
            NoUnwindRules => "no-unwind-rules",
            NoFramePointers => "no-frame-pointers",
            Guest => "guest",
            NoAddress => "no-address",
            Unmapped => "unmapped",
            MissingBinary => "missing-binary",
            ChangedBinary => "changed-binary",
            UncheckedBinary => "unchecked-binary",
            NoSymbols => "no-symbols",
            NamelessFrames => "nameless-frames",
            GeneratedCode => "generated-code",
            ReusedCode => "reused-code",
            JitWithoutTime => "jit-without-time",
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
            NothingCounted => "nothing-counted",
            UnscannedBinary => "unscanned-binary",
            NamelessFunctions => "nameless-functions",
            NoFunctions => "no-functions",
            NoCalls => "no-calls",
            DamagedFile => "damaged-file",
            AstrayCounts => "astray-counts",
            SharedPlaces => "shared-places",
            AssumedEntry => "assumed-entry",
        }
    }

    /// What was found, as a sentence without its end: `n` things of this kind.
    fn statement(self, n: u64) -> String {
        use CaveatKind::*;
        let s = if n == 1 { "" } else { "s" };
        match self {
            NoSamples => "no samples were recorded".into(),
            StoppedAtExec => {
                "no samples: the kernel stopped recording when the program started".into()
            }
            NoSamplesInTime => "no samples in the chosen time range".into(),
            Truncated => "the file is cut short; it was read up to there".into(),
            Unfinished => {
                "the recording was not finished; it was read to its end".into()
            }
            Skipped => format!("{n} record{s} or section{s} could not be read"),
            UnknownRecord => format!("{n} record{s} of unknown type skipped"),
            Lost => format!("{n} sample{s} or other records lost while recording"),
            Throttled => format!("the kernel throttled the event {n} time{s}"),
            MissedTime => "samples miss processor time that was used".into(),
            Miscounted => "samples do not add up to the kernel's own count".into(),
            Disordered => format!("{n} record{s} arrived too late to be sorted by time"),
            UnknownEvent => format!("{n} sample{s} of an event that the file does not define"),
            WeightLimit => {
                format!("the weight of {n} sample{s} is cut: the total passes 64 bits")
            }
            CutStack => format!("{n} sample{s} with a stack truncated at the frame limit"),
            BrokenStack => format!("{n} sample{s} where unwinding hit an unmapped address"),
            NoSwitchStack => format!("{n} off-CPU interval{s} without a stack"),
            UnsureSwitch => format!(
                "{n} off-CPU interval{s} left out: records were lost meanwhile"
            ),
            OffBefore => {
                let (was, its) = if n == 1 {
                    ("was", "its")
                } else {
                    ("were", "their")
                };
                format!(
                    "{n} thread{s} {was} off the processor when the recording began; {its} time up \
                     to the first switch is not counted"
                )
            }
            BlockedBefore => {
                let was = if n == 1 { "was" } else { "were" };
                format!(
                    "{n} thread{s} {was} blocked already when the recording began; on which stack was \
                     not recorded"
                )
            }
            NoStacks => "recorded without call stacks: a function's total is its self".into(),
            NotUnwound => {
                format!(
                    "{n} sample{s} with copied stacks of an unsupported architecture, not unwound"
                )
            }
            ShortCopy => format!("{n} sample{s} with a stack truncated at the end of its copy"),
            NoUnwindRules => {
                format!("{n} sample{s} where unwinding stopped: no unwind information")
            }
            NoFramePointers => format!("{n} sample{s} with a user-space stack of one or two frames"),
            Guest => format!("{n} sample{s} in a guest or hypervisor"),
            NoAddress => format!("{n} sample{s} without a code address"),
            Unmapped => format!("{n} sample{s} at addresses where nothing was mapped"),
            MissingBinary => format!("{n} sample{s} in files that could not be opened"),
            ChangedBinary => {
                format!("{n} sample{s} in files that are not the build that ran; not used")
            }
            UncheckedBinary => format!(
                "{n} file{s} without build ID changed after the recording; names may be wrong"
            ),
            NoSymbols => format!("{n} sample{s} in code without symbols"),
            NamelessFrames => format!(
                "{n} sample{s} with unnamed frames; they are separate functions by caller"
            ),
            GeneratedCode => format!("{n} sample{s} in JIT-compiled code without names"),
            ReusedCode => format!(
                "{n} sample{s} at addresses reused by several JIT-compiled functions; which of them \
                 ran is not known"
            ),
            JitWithoutTime => format!(
                "{n} jitdump file{s} read without times: they use another clock than the recording"
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
            UndecodedCode => format!("{n} byte{s} of code are no instructions"),
            CountsOnly => {
                "no call stacks: totals are estimated by gprof's propagation from counted calls; not \
                 counted are calls by libraries and of code built without -pg; a tail call counts for \
                 the function that it returns to"
                    .into()
            }
            NothingCounted => {
                "no call stacks, and no call counts: totals are unknown".into()
            }
            UnscannedBinary => format!("the calls in the code of {n} file{s} are unknown"),
            NamelessFunctions => {
                format!(
                    "no symbols: {n} function{s} named by address, from unwind information; one \
                     that the compiler split counts as two"
                )
            }
            NoFunctions => "no functions were found in the file".into(),
            NoCalls => "no calls were found in the code".into(),
            DamagedFile => format!("{n} part{s} of the file could not be read"),
            AstrayCounts => {
                format!("{n} counted call{s} from or to places outside of functions, left out")
            }
            SharedPlaces => format!(
                "{n} counted call{s} may have another caller: gmon.out gives the place of a call to 16 \
                 bytes, and several functions share them"
            ),
            AssumedEntry => {
                "no counted call enters the cycle of main: it is assumed that one call of main did"
                    .into()
            }
        }
    }

    /// What a person can do about it.
    pub fn hint(self) -> Option<&'static str> {
        use CaveatKind::*;
        Some(match self {
            NoSamples => {
                "only running threads are sampled: run the program longer, sample more often (-F 4999), or record where it waits: proftool record --off-cpu -- COMMAND"
            }
            BlockedBefore => {
                "to have their stacks, record the program from its start, or look at it with a debugger: gdb -p PID -batch -ex 'thread apply all backtrace'"
            }
            Truncated | Unfinished => "record again if the end matters",
            Lost => "sample less often: proftool record -F 499 -- COMMAND",
            Throttled => {
                "sample less often, or allow more: sysctl kernel.perf_cpu_time_max_percent=0"
            }
            MissedTime => {
                "sampling restarts with each thread, so threads and processes that live shorter than the sampling interval have almost no samples: record the whole machine (-a; then proftool report --comm NAME) or a control group (--cgroup), or sample more often (-F 9973)"
            }
            Miscounted => {
                "record every occurrence: proftool record -c 1 -e EVENT -- COMMAND; where records were lost, fewer of them: -c 100"
            }
            CutStack => {
                "deep recursion: record again with a higher limit, up to 6000, set while nothing is recorded: sysctl kernel.perf_event_max_stack=1024"
            }
            NoSwitchStack => {
                "where some have one, records were lost: larger buffers (-m 8192); where none has, they are recorded with the right to see the kernel: run as root, or sysctl kernel.perf_event_paranoid=1, or setcap cap_perfmon,cap_syslog=ep $(command -v proftool)"
            }
            UnsureSwitch => "larger buffers: proftool record --off-cpu -m 8192 -- COMMAND",
            StoppedAtExec => {
                "it does so for a program that is set-uid or set-gid, has file capabilities, or may not be read by the user who records: record it as root, or as the user that it changes to"
            }
            NoStacks => "record them: proftool record -g fp -- COMMAND",
            NotUnwound => "record by frame pointers: proftool record -g fp -- COMMAND",
            ShortCopy => {
                "deep stacks: copy more of each, up to 64088 bytes: proftool record -g dwarf,BYTES -- COMMAND"
            }
            NoUnwindRules => {
                "provide the binaries that ran: --symfs DIR; or build with -fasynchronous-unwind-tables"
            }
            BrokenStack | NoFramePointers => {
                "if frame pointers were followed: record copies of the stack, proftool record -g dwarf -- COMMAND, or build with -fno-omit-frame-pointer (Rust: RUSTFLAGS=\"-C force-frame-pointers=yes\")"
            }
            MissingBinary => "name the directory with the files: --symfs DIR",
            UncheckedBinary => "record again; link with -Wl,--build-id",
            ChangedBinary => "record again, or provide the build that ran: --symfs DIR",
            NoSymbols => "build with -g without stripping, or install the debug symbols",
            GeneratedCode => {
                "let the runtime write a symbol map: node --perf-basic-prof --interpreted-frames-native-stack, or java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer (17 and later)"
            }
            ReusedCode => "record with a jitdump, which has times: node --perf-prof",
            JitWithoutTime => {
                "record with the clock of jitdump files, CLOCK_MONOTONIC: proftool record, or perf record -k mono"
            }
            HiddenKernel => {
                "as root: sysctl kernel.kptr_restrict=0, then record and report as root; for other users: proftool doctor"
            }
            CountsOnly => "record stacks: proftool record -- COMMAND",
            NothingCounted => {
                "compile the whole program with -pg, not only link it; or record stacks: proftool \
                 record -- COMMAND"
            }
            NamelessFunctions | NoFunctions => {
                "use an unstripped build, or install the debug symbols"
            }
            UserOnly => {
                "to see it: record as root, or as root: sysctl kernel.perf_event_paranoid=1"
            }
            _ => return None,
        })
    }
}

/// One kind of thing that could not be known, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// What kind.
    pub kind: CaveatKind,
    /// How many: samples, records or files, as the kind says.
    pub count: u64,
    /// What it was in particular, in order of appearance, each with its count.
    details: Vec<(String, u64)>,
    /// Whether there were more details than are kept.
    is_cut: bool,
}

impl Caveat {
    /// The sentence for people: what and how many, with the first or the heaviest details.
    pub fn text(&self) -> String {
        let mut text = self.kind.statement(self.count);
        if self.details.is_empty() {
            return text;
        }
        let mut order: Vec<&(String, u64)> = self.details.iter().collect();
        order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        // A count beside each would say nothing where all are one.
        let many = self.details.len() > 1 && self.details.iter().any(|(_, count)| *count > 1);
        for (i, (detail, count)) in order.iter().take(DETAILS_NAMED).enumerate() {
            text.push_str(if i == 0 { ": " } else { ", " });
            text.push_str(detail);
            if many {
                write!(text, " ({count})").expect("writing to a String does not fail");
            }
        }
        let more = self.details.len().saturating_sub(DETAILS_NAMED);
        if self.is_cut {
            text.push_str(" and many more");
        } else if more > 0 {
            write!(text, " and {more} more").expect("writing to a String does not fail");
        }
        text
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        self.kind.hint()
    }

    /// The particulars, in order of appearance, each with its count.
    pub fn details(&self) -> impl Iterator<Item = (&str, u64)> {
        self.details.iter().map(|(text, n)| (text.as_str(), *n))
    }
}

/// The collector: one [`Caveat`] a kind.
///
/// ```
/// use proftool::base::{CaveatKind, Caveats};
/// let mut caveats = Caveats::default();
/// caveats.add(CaveatKind::Lost, 3);
/// caveats.add(CaveatKind::Lost, 4);
/// assert_eq!(caveats.iter().next().unwrap().text(), "7 samples or other records lost while recording");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caveats {
    kinds: BTreeMap<CaveatKind, Caveat>,
}

impl Caveats {
    /// Counts `count` things of this kind.
    pub fn add(&mut self, kind: CaveatKind, count: u64) {
        let caveat = self.entry(kind);
        caveat.count = caveat.count.saturating_add(count);
    }

    /// Counts `count` things of this kind and keeps what it was, once for each wording.
    pub fn add_detail(&mut self, kind: CaveatKind, count: u64, detail: impl Into<String>) {
        self.add(kind, count);
        self.detail(kind, count, detail.into());
    }

    /// Counts `count` things of this kind, each once, and keeps what they were. One thing may have
    /// several details, so that their counts may add up to more than `count`.
    ///
    /// ```
    /// use proftool::base::{CaveatKind, Caveats};
    /// let mut caveats = Caveats::default();
    /// let files = [("a.so".to_owned(), 2), ("b.so".to_owned(), 3)];
    /// caveats.add_once(CaveatKind::NoSymbols, 3, files);
    /// let text = caveats.iter().next().unwrap().text();
    /// assert_eq!(text, "3 samples in code without symbols: b.so (3), a.so (2)");
    /// ```
    pub fn add_once(
        &mut self,
        kind: CaveatKind,
        count: u64,
        details: impl IntoIterator<Item = (String, u64)>,
    ) {
        self.add(kind, count);
        for (detail, count) in details {
            self.detail(kind, count, detail);
        }
    }

    /// Counts like [`Caveats::add_detail`], without making the text once enough are kept.
    pub fn add_with(&mut self, kind: CaveatKind, count: u64, detail: impl FnOnce() -> String) {
        self.add(kind, count);
        if self.entry(kind).details.len() < DETAILS_KEPT {
            self.detail(kind, count, detail());
        } else {
            self.entry(kind).is_cut = true;
        }
    }

    fn detail(&mut self, kind: CaveatKind, count: u64, detail: String) {
        let caveat = self.entry(kind);
        if let Some((_, n)) = caveat.details.iter_mut().find(|(text, _)| *text == detail) {
            *n = n.saturating_add(count);
        } else if caveat.details.len() < DETAILS_KEPT {
            caveat.details.push((detail, count));
        } else {
            caveat.is_cut = true;
        }
    }

    fn entry(&mut self, kind: CaveatKind) -> &mut Caveat {
        self.kinds.entry(kind).or_insert_with(|| Caveat {
            kind,
            count: 0,
            details: Vec::new(),
            is_cut: false,
        })
    }

    /// Forgets this kind: what was suspected has turned out to be otherwise.
    pub fn dismiss(&mut self, kind: CaveatKind) {
        self.kinds.remove(&kind);
    }

    /// Adds everything that another collector found.
    pub fn merge(&mut self, other: &Caveats) {
        for caveat in other.iter() {
            self.add(caveat.kind, caveat.count);
            for (text, count) in &caveat.details {
                self.detail(caveat.kind, *count, text.clone());
            }
            self.entry(caveat.kind).is_cut |= caveat.is_cut;
        }
    }

    /// The caveats in order of kind.
    pub fn iter(&self) -> impl Iterator<Item = &Caveat> {
        self.kinds.values()
    }

    /// How many things of this kind were counted.
    pub fn count(&self, kind: CaveatKind) -> u64 {
        self.kinds.get(&kind).map_or(0, |caveat| caveat.count)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}
