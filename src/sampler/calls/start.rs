//! The way of a program from `exec` to the place where all it is linked with is loaded.
//!
//! ```text
//!   exec ─▶ the dynamic linker's first instruction, or the entry point of a static program
//!             ▼
//!           the linker's function for debuggers, which only returns: it jumps to a probe
//!             │  it is called several times
//!             ▼  if it is not known
//!           the entry point that the kernel has noted for the linker (AT_ENTRY): that of a probe
//!
//!   probe:  kill(getpid(), SIGURG); ret, or jmp entry        in unused bytes behind the vdso
//! ```
//!
//! A breakpoint would end a program whose tracer is killed. A traced program stops for each signal;
//! one that is not ignores this one, and goes on: it may be let go at any moment.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::detour::Detour;
use super::loaded::{Auxiliary, Memory};
use crate::sampler::targets::tracee::{Registers, Stop, Tracee};

// The instructions of a probe: `getpid`, `mov %eax,%edi`, and `kill` with a signal, whose number is
// at `SIGNAL`.
#[rustfmt::skip]
const PROBE: [u8; 21] = [
    0xb8, 39, 0, 0, 0, 0x0f, 0x05,
    0x89, 0xc7,
    0xbe, 0, 0, 0, 0,
    0xb8, 62, 0, 0, 0, 0x0f, 0x05,
];
const SIGNAL: usize = 10;
// `jmp`, past the other instructions of a probe.
const PASS: [u8; 2] = [0xeb, PROBE.len() as u8 - 2];
// Signals that do nothing unless a program says otherwise, which one that has just begun does not.
const IGNORED: [i32; 3] = [libc::SIGURG, libc::SIGWINCH, libc::SIGCHLD];
const JUMP: usize = 5;
// `endbr64`
const LANDING_PAD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const AT_ENTRY: u64 = 9;
// The most words that are looked through for what the kernel has noted: arguments and environment.
const WORDS: u64 = 1 << 20;
// How long a program may take that somebody else waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
// How often a program is looked at without a pause, and how long the pauses are.
const LOOKS: u32 = 100;
const APART: Duration = Duration::from_micros(50);

/// Where the dynamic linker stops, by its path and where it is loaded: address, and how often.
pub(super) type LoaderStops<'a> = dyn FnMut(PathBuf, u64) -> Option<(u64, u32)> + 'a;

pub(super) enum Reached {
    At(Box<Registers>, Auxiliary),
    Ended(i32),
}

/// Instructions at which a traced program stops, and what leads there.
struct Probe {
    at: u64,
    end: Vec<u8>,
    /// Where something leads there, what it is, and what was there.
    from: u64,
    way: Vec<u8>,
    saved: Vec<u8>,
    /// Where the program goes on as if there were no probe.
    resume: u64,
    /// How often it is passed until the program has arrived.
    passes: u32,
}

// The bytes of a probe before the entry point; the other one is behind it.
const BEFORE_ENTRY: u64 = 40;

/// Lets a program run that has just been made by `exec`. What is not there in time is an error, if
/// there is a time.
pub(super) fn run_to_start(
    tracee: &Tracee,
    memory: &File,
    stops: &mut LoaderStops<'_>,
    patience: Option<Duration>,
) -> io::Result<Reached> {
    let deadline = patience.map(|patience| Instant::now() + patience);
    let auxiliary = Auxiliary::of(tracee.pid())?;
    if let Some(status) = stand(tracee, deadline)? {
        return Ok(Reached::Ended(status));
    }
    let registers = tracee.registers()?;
    if registers.program_counter() == auxiliary.entry {
        return Ok(Reached::At(Box::new(registers), auxiliary));
    }
    let at_exec = Memory::of(tracee.pid(), auxiliary)?;
    let loader = at_exec.images.into_iter().find(|image| image.is_loader);
    let loader = loader.and_then(|image| stops(image.path, auxiliary.loader));
    let read = |at: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, at);
    let room = Detour::find(tracee.pid(), &read)?.and_then(|detour| detour.before(&read));
    let blocked = tracee.blocked()?;
    let mut signals = IGNORED.into_iter();
    let signal = signals.find(|signal| blocked & 1 << (signal - 1) == 0);
    let (Some(room), Some(signal)) = (room, signal) else {
        return Err(io::Error::other("it cannot be stopped at its start"));
    };
    let note = entry_note(memory, &registers, auxiliary.entry);
    let on_entry = note.map(|note| Probe::before_entry(room, auxiliary.entry, note));
    let on_loads =
        loader.and_then(|(at, passes)| Probe::in_function(memory, room + BEFORE_ENTRY, at, passes));
    let mut probes: Vec<Probe> = on_loads.into_iter().chain(on_entry).collect();
    if probes.is_empty() {
        return Err(io::Error::other("its dynamic linker is not known"));
    }
    for probe in &probes {
        memory.write_all_at(&probe.code(signal), probe.at)?;
        memory.write_all_at(&probe.way, probe.from)?;
    }
    let arrived = run(tracee, &mut probes, signal, deadline);
    if let Ok(Err(status)) = arrived {
        return Ok(Reached::Ended(status));
    }
    if let Ok(Ok(registers)) = &arrived {
        // Where it goes on may lead to the probe still if this process is killed before that is
        // lifted.
        tracee.set_registers(registers)?;
    }
    for probe in &probes {
        // The linker has read the entry point by now, and will go there without a signal.
        memory.write_all_at(&PASS, probe.at)?;
        memory.write_all_at(&probe.saved, probe.from)?;
    }
    Ok(match arrived? {
        Ok(registers) => Reached::At(Box::new(registers), auxiliary),
        Err(status) => Reached::Ended(status),
    })
}

impl Probe {
    /// In a function that only returns; `None` if it is another, or has no room behind it.
    fn in_function(memory: &File, at: u64, function: u64, passes: u32) -> Option<Probe> {
        let mut bytes = [0; 16];
        memory.read_exact_at(&mut bytes, function).ok()?;
        let pad = if bytes.starts_with(&LANDING_PAD) {
            4
        } else {
            0
        };
        let saved = bytes.get(pad..pad + JUMP)?;
        // Functions begin at multiples of 16.
        let is_known = function.is_multiple_of(16)
            && saved.first() == Some(&0xc3)
            && is_padding(bytes.get(pad + 1..)?);
        let from = function + pad as u64;
        let distance = at.wrapping_sub(from + JUMP as u64).cast_signed();
        let distance = i32::try_from(distance).ok()?;
        is_known.then(|| Probe {
            at,
            end: vec![0xc3],
            from,
            way: [&[0xe9][..], &distance.to_le_bytes()].concat(),
            saved: saved.to_vec(),
            resume: from,
            passes,
        })
    }

    /// Before the entry point, of which there is a note for the linker at this address.
    fn before_entry(at: u64, entry: u64, note: u64) -> Probe {
        Probe {
            at,
            // jmp *0(%rip)
            end: [&[0xff, 0x25, 0, 0, 0, 0][..], &entry.to_le_bytes()].concat(),
            from: note,
            way: at.to_le_bytes().to_vec(),
            saved: entry.to_le_bytes().to_vec(),
            resume: entry,
            passes: 1,
        }
    }

    fn code(&self, signal: i32) -> Vec<u8> {
        let mut code = PROBE.to_vec();
        if let Some(place) = code.get_mut(SIGNAL) {
            *place = signal as u8;
        }
        code.extend(&self.end);
        code
    }
}

// Whether these are instructions that do nothing, or bytes that are never executed.
fn is_padding(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        // The last one may go on behind what is looked at.
        rest = match rest {
            [] | [0x0f] | [0x0f, 0x1f] => return true,
            [0x66 | 0x2e, after @ ..] => after,
            [0x90 | 0xcc | 0, after @ ..] => after,
            [0x0f, 0x1f, form, after @ ..] => {
                // The register or address: none, one byte, or four bytes, with a byte more if it
                // has an index.
                let index = usize::from(form & 7 == 4);
                let length = index
                    + match form >> 6 {
                        0 | 3 => 0,
                        1 => 1,
                        _ => 4,
                    };
                after.get(length..).unwrap_or_default()
            }
            _ => return false,
        };
    }
}

/// The address of the entry point that the kernel has noted behind arguments and environment.
fn entry_note(memory: &File, at_exec: &Registers, entry: u64) -> Option<u64> {
    let word = |at: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let stack = at_exec.stack();
    let arguments = word(stack)?;
    // Their number, they, a zero; the environment, a zero; pairs.
    let mut at = stack.checked_add(arguments.checked_add(2)?.checked_mul(8)?)?;
    let end = at.checked_add(WORDS * 8)?;
    while word(at)? != 0 {
        at = Some(at + 8).filter(|&at| at < end)?;
    }
    at += 8;
    loop {
        match (word(at)?, word(at + 8)?) {
            (AT_ENTRY, value) => return (value == entry).then_some(at + 8),
            (0, _) => return None,
            _ => at += 16,
        }
    }
}

/// Lets it run until a probe was passed as often as it is to be. Returns the registers with which
/// it goes on, or its status if it has ended.
fn run(
    tracee: &Tracee,
    probes: &mut [Probe],
    of_probes: i32,
    deadline: Option<Instant>,
) -> io::Result<Result<Registers, i32>> {
    let mut signal = 0;
    loop {
        tracee.resume(signal)?;
        signal = 0;
        match wait(tracee, deadline)? {
            Stop::Ended(status) => return Ok(Err(status)),
            Stop::Signal(number) => {
                let registers = tracee.registers()?;
                let behind = registers.program_counter();
                let mut probes = probes.iter_mut();
                let probe = probes
                    .find(|probe| number == of_probes && probe.at + PROBE.len() as u64 == behind);
                match probe {
                    None => signal = number,
                    Some(Probe {
                        passes: 0 | 1,
                        resume,
                        ..
                    }) => {
                        return Ok(Ok(registers.at(*resume).without_call()));
                    }
                    Some(probe) => probe.passes -= 1,
                }
            }
            Stop::Trap => signal = libc::SIGTRAP,
            Stop::Exec | Stop::Made | Stop::Asked | Stop::Call | Stop::Other => {}
        }
    }
}

/// Lets it go on to where the kernel returns to it. Returns its status if it ends before.
fn stand(tracee: &Tracee, deadline: Option<Instant>) -> io::Result<Option<i32>> {
    tracee.stop()?;
    let mut signal = 0;
    loop {
        tracee.resume(signal)?;
        signal = match wait(tracee, deadline)? {
            Stop::Asked => return Ok(None),
            Stop::Ended(status) => return Ok(Some(status)),
            Stop::Signal(signal) => signal,
            Stop::Trap => libc::SIGTRAP,
            Stop::Exec | Stop::Made | Stop::Call | Stop::Other => 0,
        };
    }
}

fn wait(tracee: &Tracee, deadline: Option<Instant>) -> io::Result<Stop> {
    let Some(deadline) = deadline else {
        return tracee.wait();
    };
    let mut looks = 0;
    loop {
        if let Some(stop) = tracee.has_stopped()? {
            return Ok(stop);
        }
        looks += 1;
        if looks < LOOKS {
            std::thread::yield_now();
            continue;
        }
        if Instant::now() > deadline {
            tracee.stop()?;
            return Err(io::Error::other("it does not come to its start"));
        }
        std::thread::sleep(APART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_do_nothing_are_padding() {
        // data16 data16 cs nopw 0(%rax,%rax,1); nopl 0(%rax)
        let long = [
            0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0,
        ];
        assert!(is_padding(&long));
        assert!(is_padding(&long[..4]) && is_padding(&[0x90, 0xcc]));
        assert!(!is_padding(&[0x90, 0x48, 0x89, 0xc3]));
        assert!(!is_padding(&[0x0f, 0x05, 0xc3]));
    }

    #[test]
    fn probes_have_room_for_their_instructions() {
        let entry = Probe::before_entry(0x1000, 0x40_1000, 0x7fff_0000);
        let code = entry.code(libc::SIGURG);
        assert!(code.len() as u64 <= BEFORE_ENTRY);
        assert_eq!(code[SIGNAL - 1..=SIGNAL], [0xbe, 23]);
        assert!(code.ends_with(&0x40_1000u64.to_le_bytes()));
    }
}
