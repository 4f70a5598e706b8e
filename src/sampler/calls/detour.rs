//! System calls that a thread makes which stands still, on a way that leads back by itself.
//!
//! ```text
//!   where the thread stands          unused bytes behind the code of a file, or of the vdso
//!   ───────────────────────          ──────────────────────────────────────────────────────
//!   … ────── registers are set ────▶ syscall                  the call; the tracer stops it here
//!                                    rt_sigprocmask(old)      signals come again
//!                                    mov old, %rax …          its registers
//!   … ◀───────────────────────────── jmp *back
//! ```
//!
//! A tracer may be killed at any moment, and the kernel lets its tracees run then. So nothing is
//! changed that only the tracer could change back: no instruction that the program executes, no
//! breakpoint, no single step (whose SIGTRAP the kernel delivers if the tracer has gone), and
//! nothing on the stack, below which a program may have other data. A thread that is let go in the
//! middle makes the call, takes its own signal mask and registers, and goes on where it stood. If
//! the tracer lives, it restores the registers itself, and the rest is never executed.
//!
//! The one difference if it is let go: a system call that a stop interrupts and that the kernel
//! would continue (`restart_syscall`) begins again. A sleep takes longer by what was over of it.

use std::io;

use crate::sampler::targets::mapped::{Mapped, mappings, maps};
use crate::sampler::targets::tracee::Registers;

// The bytes that are needed: the instructions, the signal mask, and an argument that is a string.
const ROOM: u64 = CODE as u64 + 8 + TEXT as u64;
// The bytes before them, for instructions on the way to the entry point of a program.
const ENTRY: u64 = 64;
// The bytes of the instructions, and the address that they jump to, up to a multiple of eight.
const CODE: usize = (2 + 30 + 9 * 10 + 6 + 8_usize).next_multiple_of(8);
// The longest string, with the zero at its end.
const TEXT: usize = 64;

// `mov $14,%eax; mov $2,%edi; lea mask(%rip),%rsi; mov $0,%edx; mov $8,%r10d; syscall`: none of
// them changes the flags, nor does `syscall`. The distance to the mask is from the fourth
// instruction on.
#[rustfmt::skip]
const CLEAN: [u8; 30] = [
    0xb8, 14, 0, 0, 0, // rt_sigprocmask
    0xbf, 2, 0, 0, 0, // SIG_SETMASK
    0x48, 0x8d, 0x35, (CODE - 19) as u8, 0, 0, 0,
    0xba, 0, 0, 0, 0,
    0x41, 0xba, 8, 0, 0, 0,
    0x0f, 0x05,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detour {
    pub(super) at: u64,
}

impl Detour {
    /// Finds a place in the memory of a process, which `read` reads: bytes that are zero behind all
    /// else of an executable mapping. `None` if there is none.
    pub(super) fn find(
        thread: i32,
        read: &dyn Fn(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Option<Detour>> {
        let maps = maps(thread)?;
        let is_vdso = |mapped: &Mapped<'_>| mapped.path == b"[vdso]";
        // The vdso first: a file may have zeros at its end that mean something.
        let vdso = mappings(&maps).filter(is_vdso);
        let files = mappings(&maps).filter(|mapped| mapped.path.starts_with(b"/"));
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u32;
        let mut all = vdso.chain(files);
        Ok(all.find_map(|mapped| {
            let at = mapped.end.checked_sub(ROOM)? & !7;
            let mut bytes = [0xff; ROOM as usize];
            let is_code = mapped.protection == rights && !mapped.shared;
            let is_large = mapped.start < at.checked_sub(ENTRY)?;
            let is_unused = is_code && is_large && read(at, &mut bytes).is_ok();
            (is_unused && bytes == [0; ROOM as usize]).then_some(Detour { at })
        }))
    }

    /// What is to be written there: instructions that make a call, and then go on with this signal
    /// mask and these registers.
    pub(super) fn code(mask: u64, back: &Registers) -> Vec<u8> {
        let mut code = vec![0x0f, 0x05];
        code.extend(CLEAN);
        for (opcode, value) in MOVES.iter().zip(back.of_calls()) {
            code.extend(opcode);
            code.extend(value.to_le_bytes());
        }
        code.extend([0xff, 0x25, 0, 0, 0, 0]); // jmp *0(%rip)
        code.extend(back.program_counter().to_le_bytes());
        code.resize(CODE, 0xcc);
        code.extend(mask.to_le_bytes());
        code
    }

    pub(super) fn unused() -> [u8; ROOM as usize] {
        [0; ROOM as usize]
    }

    /// Where instructions can be that a program passes later; `None` if there is something else.
    pub(super) fn before(self, read: &dyn Fn(u64, &mut [u8]) -> io::Result<()>) -> Option<u64> {
        let mut bytes = [0xff; ENTRY as usize];
        let at = self.at - ENTRY;
        read(at, &mut bytes).ok()?;
        (bytes == [0; ENTRY as usize]).then_some(at)
    }

    pub(super) fn behind(self) -> u64 {
        self.at + 2
    }

    /// Where an argument that is a string can be, if there is room for it.
    pub(super) fn text(self, bytes: &[u8]) -> Option<u64> {
        (bytes.len() <= TEXT).then_some(self.at + CODE as u64 + 8)
    }
}

// `mov $…, register` of those that a system call uses and changes, in the order of
// `Registers::of_calls`: rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11.
const MOVES: [[u8; 2]; 9] = [
    [0x48, 0xb8],
    [0x48, 0xb9],
    [0x48, 0xba],
    [0x48, 0xbe],
    [0x48, 0xbf],
    [0x49, 0xb8],
    [0x49, 0xb9],
    [0x49, 0xba],
    [0x49, 0xbb],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_room_for_a_detour() {
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        let read = |at: u64, bytes: &mut [u8]| {
            std::os::unix::fs::FileExt::read_exact_at(&memory, bytes, at)
        };
        let found = Detour::find(std::process::id() as i32, &read).unwrap();
        assert!(found.is_some());
    }
}
