//! How large ring buffers are.

use std::io;

use crate::sampler::events::rate::Rate;
use crate::sampler::events::stacks::{CopySize, Stacks};
use crate::sampler::session::options::Options;
use crate::sampler::{host, kernel};

// The recorder is woken when 1/WAKE_AT of a ring buffer is filled.
const WAKE_AT: usize = 4;
// The most that a ring buffer takes unless it is asked for.
const RING_BYTES_MAX: usize = 16 << 20;
// The most that all ring buffers together take unless it is asked for.
const RINGS_BYTES: usize = 256 << 20;

/// The size of each ring buffer when nothing is said. A recorder on a busy machine may have to
/// wait for its turn for a tenth of a second and more.
///
/// ```text
///   copies of 8 KiB    99 Hz   0.5 MiB        chains    any rate   0.5 MiB
///                     997 Hz     4 MiB        copies of 60 KiB
///                    4999 Hz    16 MiB                 997 Hz    16 MiB
/// ```
pub(in crate::sampler) fn ring_bytes(stacks: Stacks, rate: Rate, processors: usize) -> usize {
    let (Stacks::Copies(size) | Stacks::Joined(size)) = stacks else {
        return Options::RING_BYTES;
    };
    let hertz = match rate {
        Rate::Frequency(hertz) => hertz,
        // Nobody knows how often that is.
        Rate::Period(_) => Options::FREQUENCY,
    };
    let quarter_second = size.record_bytes().saturating_mul(hertz) / 4;
    let most = ring_bytes_max(processors);
    let wanted = usize::try_from(quarter_second).unwrap_or(usize::MAX);
    wanted
        .clamp(Options::RING_BYTES, most.max(Options::RING_BYTES))
        .next_power_of_two()
}

// Where the size of copies adapts, ring buffers hold the samples of a second divided by this at
// least. A recorder without privileges that shared two processors with ten busy threads never had
// more than a third of that waiting.
const HELD: u64 = 16;

/// The largest copy of which ring buffers of `ring_bytes` hold the samples of 60 milliseconds, if
/// `hertz` of them come each second; the smallest if none is small enough.
///
/// ```text
///   buffer   0.5 MiB    1 MiB    2 MiB    4 MiB    8 MiB   16 MiB
///    997 Hz    8 KiB   16 KiB   32 KiB   60 KiB   60 KiB   60 KiB
///   4999 Hz    8 KiB    8 KiB    8 KiB    8 KiB   16 KiB   32 KiB
/// ```
pub(in crate::sampler) fn fitting_copy(hertz: u64, ring_bytes: usize) -> CopySize {
    let fits =
        |size: CopySize| size.record_bytes().saturating_mul(hertz) / HELD <= ring_bytes as u64;
    CopySize::largest(fits)
}

/// Returns the largest copy of a stack of which the ring buffers hold enough with these options;
/// [`CopySize::default`] where the number of samples is unknown.
pub fn largest_copy(options: &Options) -> CopySize {
    let frequency = match options.rate {
        Some(Rate::Period(_)) => None,
        Some(Rate::Frequency(hertz)) => Some(hertz),
        None if options.events.iter().any(|event| event.each) => None,
        None => Some(Options::FREQUENCY),
    };
    let Some(frequency) = frequency.filter(|_| !options.off_cpu) else {
        return CopySize::default();
    };
    let usual = ring_bytes_max(host::online_processors().len());
    let pages = options.ring_pages.map(usize::next_power_of_two);
    let ring_bytes = pages.map_or(usual, |pages| pages.saturating_mul(kernel::page_size()));
    fitting_copy(options.samples_per_second(frequency), ring_bytes)
}

pub(in crate::sampler) fn ring_bytes_max(processors: usize) -> usize {
    (RINGS_BYTES / processors.max(1)).min(RING_BYTES_MAX)
}

/// How much of a ring buffer has to be filled before the recorder is woken, in bytes.
pub(in crate::sampler) fn watermark(ring_bytes: usize) -> u32 {
    u32::try_from(ring_bytes / WAKE_AT).unwrap_or(u32::MAX / 2)
}

/// Whether the kernel refused a buffer because too much memory would be locked.
pub(in crate::sampler) fn is_memory_limit(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::session::off_cpu;

    #[test]
    fn copies_are_as_large_as_buffers_hold_enough_of() {
        let kib = |hertz, kib: usize| fitting_copy(hertz, kib << 10).bytes() >> 10;
        let buffers = [512, 1024, 2048, 4096, 8192, 16384];
        assert_eq!(buffers.map(|size| kib(997, size)), [8, 16, 32, 60, 60, 60]);
        assert_eq!(buffers.map(|size| kib(4999, size)), [8, 8, 8, 8, 16, 32]);
        assert_eq!((kib(99, 512), kib(u64::MAX, 16384), kib(0, 0)), (60, 8, 60));
    }

    #[test]
    fn buffers_grow_with_what_comes_in_a_second() {
        let copies = Stacks::Copies(Default::default());
        let size = |stacks, hertz, processors| {
            ring_bytes(stacks, Rate::Frequency(hertz), processors) >> 10
        };
        assert_eq!(size(Stacks::FramePointers, 4999, 2), 512);
        assert_eq!(size(copies, 99, 2), 512);
        assert_eq!(size(copies, 997, 2), 4096);
        assert_eq!(size(copies, 4999, 2), 16384);
        assert_eq!(size(copies, u64::MAX, 2), 16384);
        assert_eq!(size(copies, 4999, 128), 2048);
        assert_eq!(size(copies, 4999, 8192), 512);
        let period = ring_bytes(copies, Rate::Period(1), 2);
        assert_eq!(period, 4 << 20);
        let with_switches = |usual: usize, processors| {
            off_cpu::ring_bytes(usual << 10, ring_bytes_max(processors)) >> 10
        };
        assert_eq!(with_switches(512, 2), 4096);
        assert_eq!(with_switches(4096, 2), 16384);
        assert_eq!(with_switches(512, 8192), 512);
    }
}
