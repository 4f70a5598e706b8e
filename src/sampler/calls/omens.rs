//! What a program may do that stands in the way of counting, as far as the bytes of its code show.
//!
//! ```text
//!   restrict its system calls     mov $317,%eax and syscall; mov $317,%edi and mov $1,%esi;
//!   (seccomp(2))                  mov $157 and mov $22; where prctl is imported
//!                                 mov $22,%edi and mov $2,%esi
//!   set the segment gs            mov $158 and mov $0x1001; where arch_prctl is imported
//!   (arch_prctl(2))               mov $0x1001,%edi; wrgsbase
//! ```
//!
//! Instructions of a line are near each other.
//!
//! Of 1537 programs and libraries of Debian 12, four may restrict their system calls by that
//! (libseccomp, libsystemd, strace, tmux), and one may set the segment (strace). The C library and
//! the dynamic linker have such instructions for those who call them, and are passed over. What is
//! compiled when the program runs, or computes the numbers, is not seen.

use std::io;

use rustc_hash::FxHashMap;

use crate::patch::{FileIdentity, LoadedImage};
use crate::sampler::targets::mapped::Mapped;

// How much is read at once, and how much of that again, so that nothing is cut.
const PIECE: usize = 1 << 16;
const OVERLAP: usize = 3 * NEAR;
// How far apart instructions are that belong together.
const NEAR: usize = 48;
// How much of what is mapped before and behind the code is looked through for names.
const NAMES: u64 = 16 << 20;

const SECCOMP: u32 = 317;
const SECCOMP_SET_MODE_FILTER: u32 = 1;
const PRCTL: u32 = 157;
const PR_SET_SECCOMP: u32 = 22;
const SECCOMP_MODE_FILTER: u32 = 2;
const ARCH_PRCTL: u32 = 158;
const ARCH_SET_GS: u32 = 0x1001;
const RAX: u8 = 0;
const RSI: u8 = 6;
const RDI: u8 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Omens {
    pub(super) filters: bool,
    pub(super) sets_segment: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    filters: bool,
    /// Whether it forbids itself system calls if `prctl` is imported.
    filters_by_prctl: bool,
    sets_segment: bool,
    /// Whether it sets the segment if `arch_prctl` is imported.
    sets_by_arch_prctl: bool,
}

pub(super) type Read<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + 'a;

// What files show that were looked through, each with the size of what is mapped of it. A compiler
// is started for each source of a build, and has 30 MB of code.
pub(super) type Known = FxHashMap<(FileIdentity, u64), Omens>;

impl Omens {
    /// What these images show, of those in the memory of a process with these mappings.
    pub(super) fn of<'a>(
        images: impl Iterator<Item = &'a LoadedImage>,
        known: &mut Known,
        mapped: &[Mapped<'_>],
        read: &Read<'_>,
    ) -> Omens {
        let mut omens = Omens::default();
        for image in images {
            let (start, end) = image.span;
            let file = (image.identity, end.wrapping_sub(start));
            let of_it = known.entry(file);
            let of_it = of_it.or_insert_with(|| Omens::of_image(image, mapped, read));
            omens.filters |= of_it.filters;
            omens.sets_segment |= of_it.sets_segment;
        }
        omens
    }

    fn of_image(image: &LoadedImage, mapped: &[Mapped<'_>], read: &Read<'_>) -> Omens {
        if is_of_system(image) {
            return Omens::default();
        }
        let mut found = Found::default();
        for mapping in &image.mappings {
            look_through(mapping.start, mapping.end, read, &mut |bytes| {
                found.look(bytes);
            });
        }
        let imports = |name: &[u8]| imports(image, mapped, read, name);
        let sets_by_import = found.sets_by_arch_prctl && imports(b"\0arch_prctl\0");
        Omens {
            filters: found.filters || found.filters_by_prctl && imports(b"\0prctl\0"),
            sets_segment: found.sets_segment || sets_by_import,
        }
    }
}

// Whether it makes such system calls for others.
fn is_of_system(image: &LoadedImage) -> bool {
    let name = image.path.file_name().and_then(|name| name.to_str());
    image.is_loader || name.is_some_and(|name| name.starts_with("libc.so"))
}

/// Whether the names of an image have this one, with the zeros around it.
fn imports(image: &LoadedImage, mapped: &[Mapped<'_>], read: &Read<'_>, name: &[u8]) -> bool {
    let (start, end) = image.span;
    let of_it = mapped.iter().filter(|mapped| {
        let is_constant = mapped.protection & libc::PROT_WRITE as u32 == 0;
        is_constant && (start..end).contains(&mapped.start)
    });
    let mut has = false;
    for mapped in of_it {
        let end = mapped.end.min(mapped.start.saturating_add(NAMES));
        look_through(mapped.start, end, read, &mut |bytes| {
            has |= bytes.windows(name.len()).any(|window| window == name);
        });
    }
    has
}

/// Passes what is in memory there in pieces, each of which begins with the end of the one before.
fn look_through(start: u64, end: u64, read: &Read<'_>, look: &mut dyn FnMut(&[u8])) {
    let mut bytes = vec![0; PIECE];
    let mut at = start;
    while at < end {
        let length = PIECE.min((end - at) as usize);
        let Some(piece) = bytes.get_mut(..length) else {
            return;
        };
        if read(at, piece).is_err() {
            return;
        }
        look(piece);
        if at + length as u64 == end {
            return;
        }
        at += (length - OVERLAP) as u64;
    }
}

impl Found {
    fn look(&mut self, bytes: &[u8]) {
        for (at, window) in bytes.windows(5).enumerate() {
            let &[opcode, a, b, c, d] = window else {
                continue;
            };
            let register = opcode & 7;
            if c == 0 && d == 0 && is_move(opcode) {
                let around = || {
                    let (from, to) = (at.saturating_sub(NEAR), at + 5 + NEAR);
                    bytes.get(from..to.min(bytes.len())).unwrap_or_default()
                };
                match (u32::from_le_bytes([a, b, c, d]), register) {
                    (SECCOMP, RAX) => self.filters |= has_call(bytes.get(at..).unwrap_or_default()),
                    (SECCOMP, RDI) => {
                        self.filters |= moves(around(), SECCOMP_SET_MODE_FILTER, &[RSI]);
                    }
                    (PRCTL, RAX | RDI) => {
                        self.filters |= moves(around(), PR_SET_SECCOMP, &[RSI, RDI]);
                    }
                    (PR_SET_SECCOMP, RDI) => {
                        self.filters_by_prctl |= moves(around(), SECCOMP_MODE_FILTER, &[RSI]);
                    }
                    (ARCH_PRCTL, RAX | RDI) => {
                        self.sets_segment |= moves(around(), ARCH_SET_GS, &[RSI, RDI]);
                    }
                    (ARCH_SET_GS, RDI) => self.sets_by_arch_prctl = true,
                    _ => {}
                }
            }
            // wrgsbase, of 64 or 32 bits
            if opcode == 0xf3 {
                let register = match [a, b, c, d] {
                    [0x40..=0x4f, 0x0f, 0xae, register] | [0x0f, 0xae, register, _] => register,
                    _ => 0,
                };
                self.sets_segment |= (0xd8..=0xdf).contains(&register);
            }
        }
    }
}

// Whether this is the byte before the number of `mov $…,register`; its last three bits are the
// register.
fn is_move(opcode: u8) -> bool {
    matches!(opcode & 0xf8, 0xb8 | 0xc0)
}

fn moves(bytes: &[u8], number: u32, registers: &[u8]) -> bool {
    bytes.windows(5).any(|window| {
        window.split_first().is_some_and(|(&opcode, value)| {
            is_move(opcode) && registers.contains(&(opcode & 7)) && value == number.to_le_bytes()
        })
    })
}

fn has_call(bytes: &[u8]) -> bool {
    let soon = bytes.get(..NEAR).unwrap_or(bytes);
    soon.windows(2).any(|window| window == [0x0f, 0x05])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Found {
        let mut found = Found::default();
        found.look(bytes);
        found
    }

    #[test]
    fn instructions_that_belong_together_are_found() {
        // mov $22,%edi; mov $2,%esi; call prctl
        let prctl = found(&[0xbf, 22, 0, 0, 0, 0xbe, 2, 0, 0, 0, 0xe8, 1, 2, 3, 4]);
        assert!(prctl.filters_by_prctl && !prctl.filters);
        // mov $157,%rax; mov $22,%edi
        let direct = [
            0x48, 0xc7, 0xc0, 0x9d, 0, 0, 0, 0xbf, 22, 0, 0, 0, 0x0f, 0x05,
        ];
        assert!(found(&direct).filters);
        // mov $1,%esi; mov $317,%edi; call syscall
        assert!(found(&[0xbe, 1, 0, 0, 0, 0xbf, 0x3d, 1, 0, 0, 0xe8, 1, 2, 3, 4]).filters);
        // mov $317,%eax; syscall. It may be a length as well.
        assert!(found(&[0x31, 0xff, 0xb8, 0x3d, 1, 0, 0, 0x0f, 0x05]).filters);
        assert!(!found(&[0x31, 0xff, 0xb8, 0x3d, 1, 0, 0, 0xe8, 1, 2, 3, 4]).filters);
        // mov $0x1001,%esi; mov $158,%edi
        assert!(found(&[0xbe, 1, 0x10, 0, 0, 0xbf, 0x9e, 0, 0, 0]).sets_segment);
        assert!(!found(&[0xbe, 1, 0x10, 0, 0, 0x90, 0x90]).sets_segment);
        // wrgsbase %rax, %r8, %eax; rdgsbase and wrfsbase are something else.
        for (bytes, is_found) in [
            ([0xf3, 0x48, 0x0f, 0xae, 0xd8], true),
            ([0xf3, 0x49, 0x0f, 0xae, 0xd8], true),
            ([0xf3, 0x0f, 0xae, 0xd8, 0x90], true),
            ([0xf3, 0x48, 0x0f, 0xae, 0xc8], false),
            ([0xf3, 0x48, 0x0f, 0xae, 0xd0], false),
        ] {
            assert_eq!(found(&bytes).sets_segment, is_found, "{bytes:x?}");
        }
        assert_eq!(found(&[0x90; 64]), Found::default());
    }

    #[test]
    fn nothing_is_missed_between_two_pieces() {
        let mut memory = vec![0x90; 3 * PIECE];
        for at in [PIECE - 3, PIECE - 30, PIECE - OVERLAP + 3] {
            memory[at..at + 5].copy_from_slice(&[0xb8, 0x3d, 1, 0, 0]);
            memory[at + 40..at + 42].copy_from_slice(&[0x0f, 0x05]);
            let read = |from: u64, bytes: &mut [u8]| {
                let from = from as usize;
                bytes.copy_from_slice(&memory[from..from + bytes.len()]);
                Ok(())
            };
            let mut found = Found::default();
            look_through(0, memory.len() as u64, &read, &mut |bytes| {
                found.look(bytes)
            });
            assert!(found.filters, "{at}");
            memory[at..at + 42].fill(0x90);
        }
    }
}
