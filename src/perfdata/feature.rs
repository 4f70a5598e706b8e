//! The optional header sections of a perf.data file ("features"), by number.

/// A header feature. The number is its bit in the file header and its id in pipe mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(pub u8);

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Feature {
            $($(#[$doc])* pub const $name: Feature = Feature($bit);)*

            /// perf's name for it; `None` for a number that is not known.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($bit => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

features! {
    /// Descriptions of tracepoints.
    TRACING_DATA = 1;
    /// Build ids of the files that were hit.
    BUILD_ID = 2;
    /// The machine's name.
    HOSTNAME = 3;
    /// The kernel's release.
    OSRELEASE = 4;
    /// perf's version.
    VERSION = 5;
    /// The machine's architecture, as `uname -m`.
    ARCH = 6;
    /// The numbers of processors.
    NRCPUS = 7;
    /// The processor's name.
    CPUDESC = 8;
    /// The processor's identification.
    CPUID = 9;
    /// Memory in KiB.
    TOTAL_MEM = 10;
    /// The recorder's command line.
    CMDLINE = 11;
    /// Events with their names and ids.
    EVENT_DESC = 12;
    /// Cores and threads.
    CPU_TOPOLOGY = 13;
    /// Memory nodes.
    NUMA_TOPOLOGY = 14;
    /// Present when samples hold branch stacks.
    BRANCH_STACK = 15;
    /// Numbers and names of PMUs.
    PMU_MAPPINGS = 16;
    /// Groups of events.
    GROUP_DESC = 17;
    /// Index of AUX area tracing.
    AUXTRACE = 18;
    /// Present in recordings of `perf stat`.
    STAT = 19;
    /// Caches.
    CACHE = 20;
    /// Times of the first and last sample.
    SAMPLE_TIME = 21;
    /// Memory blocks.
    MEM_TOPOLOGY = 22;
    /// Clock frequency in use.
    CLOCKID = 23;
    /// The file is a directory's header.
    DIR_FORMAT = 24;
    /// BPF programs.
    BPF_PROG_INFO = 25;
    /// BPF type information.
    BPF_BTF = 26;
    /// How records are compressed.
    COMPRESSED = 27;
    /// Capabilities of the CPU's PMU.
    CPU_PMU_CAPS = 28;
    /// Reference times of clocks.
    CLOCK_DATA = 29;
    /// Hybrid PMUs.
    HYBRID_TOPOLOGY = 30;
    /// Capabilities of all PMUs.
    PMU_CAPS = 31;
    /// Counted calls, which proftool writes. perf numbers its own sections from the other end.
    CALL_COUNTS = 240;
    /// What compilers and linkers were started for, which proftool writes.
    JOBS = 241;
    /// Lists of generated code of processes in containers, which proftool writes.
    PERF_MAPS = 242;
    /// Mapped files that have no build ID, which proftool writes.
    FILES = 243;
    /// How often threads switched to others, which proftool writes.
    SWITCHES = 244;
    /// Jitdump files of processes in containers, which proftool writes.
    JIT_DUMPS = 245;
}

impl std::fmt::Display for Feature {
    /// The name, or the number of a feature that is not known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}
