//! The system calls for kernel events, processor time and turns, as safe functions.
#![expect(
    unsafe_code,
    reason = "perf_event_open, its ioctls, poll, rlimits and scheduling have no safe interface"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};
use perf_event_open_sys::ioctls;

use crate::perfdata::writer::ATTR_SIZE;

#[derive(Clone, Copy, Debug)]
pub(super) enum Who<'a> {
    Task(i32),
    Everyone,
    Cgroup(BorrowedFd<'a>),
}

/// Opens an event on somebody who runs on processor `cpu`, in the group of `leader` if there is
/// one, which must be of the same.
pub(super) fn open_event(
    attr: &perf_event_attr,
    who: Who<'_>,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    let group = leader.map_or(-1, |leader| leader.as_raw_fd());
    let close = u64::from(sys::PERF_FLAG_FD_CLOEXEC);
    let (pid, flags) = match who {
        Who::Task(tid) => (tid, close),
        Who::Everyone => (-1, close),
        Who::Cgroup(group) => (
            group.as_raw_fd(),
            close | u64::from(sys::PERF_FLAG_PID_CGROUP),
        ),
    };
    // SAFETY: `attr` is an initialized local of the kernel's layout that outlives the call, and
    // its `size` is at most its true size. It asks for no signal, no breakpoint, no AUX area:
    // the kernel only fills a buffer that is mapped later, through the returned descriptor.
    let fd = check(unsafe {
        perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, group, flags as libc::c_ulong)
    })?;
    // SAFETY: the kernel has just made `fd` for us, and nothing else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

// The time now, in nanoseconds of the clock of all records: `CLOCK_MONOTONIC` as the kernel has it,
// outside of time namespaces.
pub(super) fn now() -> u64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec through the pointer, which is to a live local. The
    // clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    let now = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    let offset = OFFSET.get_or_init(|| {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets");
        offsets
            .ok()
            .and_then(|text| monotonic_offset(&text))
            .unwrap_or(0)
    });
    now.saturating_add_signed(offset.saturating_neg())
}

/// What a time namespace adds to the kernel's `CLOCK_MONOTONIC`, in nanoseconds. Lines of
/// `timens_offsets` are a clock, seconds and nanoseconds.
fn monotonic_offset(text: &str) -> Option<i64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("monotonic "))?;
    let mut words = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, nanoseconds) = (words.next()?.ok()?, words.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

pub(super) fn event_id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one u64 through the pointer, which is to a live local.
    check(unsafe { ioctls::ID(event.as_raw_fd(), &mut id) })?;
    Ok(id)
}

/// Sends the records of `event` to the ring buffer of `to`, which must be of the same processor.
pub(super) fn redirect(event: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open descriptors by their type; no memory is passed.
    check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), to.as_raw_fd()) }).map(drop)
}

/// Lets an event count, in all processes that inherited it too.
pub(super) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an open descriptor by its type; no memory is passed.
    check(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) }).map(drop)
}

pub(super) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an open descriptor by its type; no memory is passed.
    check(unsafe { ioctls::DISABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Reads the value of an event, or the values of its group: the words that its `read_format`
/// defines, at most `most`.
pub(super) fn read_event(event: BorrowedFd<'_>, most: usize) -> io::Result<Vec<u64>> {
    let mut values = vec![0u64; most];
    // SAFETY: the kernel writes at most the given number of bytes, the size of the live vector.
    let got = unsafe {
        libc::read(
            event.as_raw_fd(),
            values.as_mut_ptr().cast(),
            mem::size_of_val(&values[..]),
        )
    };
    match usize::try_from(got) {
        Ok(bytes) => {
            values.truncate(bytes / size_of::<u64>());
            Ok(values)
        }
        Err(_) => Err(io::Error::last_os_error()),
    }
}

pub(super) fn attr_bytes(attr: &perf_event_attr) -> [u8; ATTR_SIZE] {
    const { assert!(mem::size_of::<perf_event_attr>() >= ATTR_SIZE) };
    // SAFETY: the struct is at least ATTR_SIZE bytes long (asserted above) and the kernel's ABI
    // lays out these bytes without padding, so each of them is initialized; u8 needs no alignment.
    unsafe { *std::ptr::from_ref(attr).cast::<[u8; ATTR_SIZE]>() }
}

/// Waits until one of `fds` has something to tell, or for `timeout`. Gives for each of them its
/// `revents`. Negative descriptors are passed over. Being interrupted is like a timeout.
pub(super) fn poll(fds: &[RawFd], timeout: Duration, revents: &mut Vec<i16>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // Rounded up: with the rest of a millisecond it would not wait at all, again and again.
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    let timeout = i32::try_from(milliseconds).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of one live vector of pollfd.
    let result =
        check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) });
    revents.clear();
    match result {
        Ok(_) => revents.extend(polled.iter().map(|fd| fd.revents)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            revents.resize(fds.len(), 0);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Usage {
    Own,
    /// That of its children that were waited for, and of theirs.
    Children,
}

/// Returns the processor time so far, user and system together; zero if the kernel does not report
/// it.
pub(super) fn processor_time(usage: Usage) -> Duration {
    let (user, system) = processor_times(usage);
    user + system
}

pub(super) fn processor_times(usage: Usage) -> (Duration, Duration) {
    let told = resources(usage);
    let time = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    (time(told.ru_utime), time(told.ru_stime))
}

/// How often children of this process that were waited for, and theirs, have switched to other
/// threads.
pub(super) fn switches_of_children() -> u64 {
    let told = resources(Usage::Children);
    let both = [told.ru_nvcsw, told.ru_nivcsw].map(|count| u64::try_from(count).unwrap_or(0));
    both.iter().sum()
}

fn resources(usage: Usage) -> libc::rusage {
    let who = match usage {
        Usage::Own => libc::RUSAGE_SELF,
        Usage::Children => libc::RUSAGE_CHILDREN,
    };
    let mut told = mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage to a live local, which is of integers only and zeroed.
    unsafe {
        libc::getrusage(who, told.as_mut_ptr());
        told.assume_init()
    }
}

// This thread has its turn soon, while the value lives. Who asks for short turns has them soon:
// under Linux 6.12 and later, which of those that wait for a processor is next is a question of
// whose turn would end first. That takes nothing from others in sum, and needs no privilege. But
// with hundreds of runnable threads an equal share is too small; with privilege this thread has the
// weight of nine of them.
#[derive(Debug)]
pub(super) struct SoonerTurns {
    before: libc::sched_attr,
}

impl SoonerTurns {
    // The shortest turn that the kernel grants, in nanoseconds.
    const SHORT: u64 = 100_000;
    const NICE: i32 = -10;

    /// Asks for short turns, and more of them where `more` is asked for and allowed; `None` where
    /// the thread is not scheduled as usual, or the kernel refuses. What it forks meanwhile has
    /// the same.
    pub(super) fn ask(more: bool) -> Option<SoonerTurns> {
        let mut attr = mem::MaybeUninit::<libc::sched_attr>::zeroed();
        // SAFETY: 0 is this thread; the kernel writes at most the given size, that of the live
        // local, which is of integers only and zeroed.
        let before = unsafe {
            let size = mem::size_of::<libc::sched_attr>();
            let got = libc::syscall(libc::SYS_sched_getattr, 0, attr.as_mut_ptr(), size, 0);
            (got == 0).then(|| attr.assume_init())?
        };
        if before.sched_policy != libc::SCHED_OTHER as u32 {
            return None;
        }
        let short = libc::sched_attr {
            sched_runtime: SoonerTurns::SHORT,
            ..before
        };
        let nice = libc::sched_attr {
            sched_nice: before.sched_nice.min(SoonerTurns::NICE),
            ..short
        };
        ((more && set_turns(&nice)) || set_turns(&short)).then_some(SoonerTurns { before })
    }
}

impl Drop for SoonerTurns {
    fn drop(&mut self) {
        // As it was; nothing can be done if it fails.
        let _ = set_turns(&self.before);
    }
}

fn set_turns(attr: &libc::sched_attr) -> bool {
    let attr = libc::sched_attr {
        size: mem::size_of::<libc::sched_attr>() as u32,
        ..*attr
    };
    // SAFETY: 0 is this thread; the kernel reads one sched_attr of the size that it tells.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) == 0 }
}

pub(super) fn thread_id() -> i32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

pub(super) fn page_size() -> usize {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("every system has a page size")
}

/// The limit of open files, raised as far as this process may while the value lives.
#[derive(Debug)]
pub(super) struct MoreFiles {
    before: libc::rlimit,
}

impl MoreFiles {
    /// Raises the limit; `None` when it is as high as it can be.
    pub(super) fn allow() -> Option<MoreFiles> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the kernel writes one rlimit through the pointer, which is to a live local.
        check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }).ok()?;
        if limit.rlim_cur >= limit.rlim_max {
            return None;
        }
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        set_file_limit(&raised).ok()?;
        Some(MoreFiles { before: limit })
    }
}

impl Drop for MoreFiles {
    fn drop(&mut self) {
        // Descriptors above the old limit stay open; nothing can be done if it fails.
        let _ = set_file_limit(&self.before);
    }
}

fn set_file_limit(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: the kernel reads one rlimit through the pointer, which is to a live value.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }).map(drop)
}

pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_that_of_its_clock() {
        let text = "monotonic           -5   1000000\nboottime           100         0\n";
        assert_eq!(monotonic_offset(text), Some(-4_999_000_000));
        assert_eq!(monotonic_offset("boottime 100 0\n"), None);
        assert_eq!(monotonic_offset(""), None);
    }
}
