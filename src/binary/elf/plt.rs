//! The stubs of the procedure linkage table, named after what they call: `write@plt`.
//!
//! ```text
//!   call write  ─▶  stub: jmp *slot  ─▶  slot in .got.plt, which a relocation ties to `write`
//!
//!   x86-64    [endbr64] [bnd] jmp *disp(%rip)     f3 0f 1e fa, f2, ff 25 disp32
//!   i386      jmp *slot                           ff 25 slot32
//!             jmp *disp(%ebx), ebx = .got.plt     ff a3 disp32
//!   AArch64   [bti c]; adrp x16, page; ldr x17, [x16, #offset]; add …; br x17
//!   RISC-V    auipc t3, high; ld t3, low(t3); jalr t1, t3; nop      lw with 32-bit addresses
//! ```
//!
//! The slot is read from the instruction, so the order of stubs and the kind of table do not
//! matter.

use std::sync::Arc;

use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};

use super::functions::{FunctionSymbol, Functions, Rank, SymbolSource};
use super::slot_target::SlotTarget;
use super::slots;
use super::{Elf, Section};
use crate::base::Svma;

// Longer names are cut.
const NAME_LIMIT: usize = 8 << 10;
// Bytes that the names of all stubs of a file may have.
const NAMES_LIMIT: usize = 64 << 20;

// A stub: where it is, how long, and which slot it jumps through.
struct Stub {
    start: u64,
    size: u64,
    slot: u64,
}

// The functions that are there already name resolvers.
pub(in crate::binary) fn read(elf: &Elf, into: &mut Functions) {
    let mut problems = Vec::new();
    let tables = elf.believed("linkage tables", &mut problems, Section::is_linkage_table);
    let mut stubs = Vec::new();
    for table in tables {
        if let Ok(code) = elf.contents("linkage table", table) {
            match elf.machine {
                m if m == elf::EM_X86_64.0 || m == elf::EM_386.0 => {
                    x86(elf, table, &code, &mut stubs);
                }
                m if m == elf::EM_AARCH64.0 => aarch64(table, &code, &mut stubs),
                m if m == elf::EM_RISCV.0 => riscv(elf, table, &code, &mut stubs),
                _ => {}
            }
        }
    }
    let mut slots: FxHashMap<u64, Option<SlotTarget>> =
        stubs.iter().map(|stub| (stub.slot, None)).collect();
    if !stubs.is_empty() {
        slots::visit(elf, &mut problems, |slot, target, _| {
            if let Some(known) = slots.get_mut(&slot) {
                *known = Some(target);
            }
        });
    }
    into.problems.append(&mut problems);
    if stubs.is_empty() {
        return;
    }
    let symbols = elf.dynamic_symbols().ok();
    let resolvers = into.choosers_at(&resolvers(&slots));
    let mut names: Vec<u8> = Vec::new();
    let mut named = Vec::new();
    for stub in stubs {
        let unnamed: Vec<u8>;
        let name = match slots.get(&stub.slot).copied().flatten() {
            Some(SlotTarget::Symbol(index)) => {
                symbols.and_then(|symbols| symbols.name(symbols.entries.get(index as usize)?))
            }
            Some(SlotTarget::ChosenBy(at)) => match resolvers.get(&at.0) {
                Some(name) => Some(name.as_slice()),
                None => {
                    unnamed = format!("*ABS*+{:#x}", at.0).into_bytes();
                    Some(unnamed.as_slice())
                }
            },
            _ => None,
        };
        // Each symbol has one stub, or two in programs with tables of both kinds.
        let fits = names.len() < NAMES_LIMIT;
        if let (Some(name), Ok(at), true) = (name, u32::try_from(names.len()), fits) {
            names.extend_from_slice(name.get(..NAME_LIMIT).unwrap_or(name));
            names.extend_from_slice(b"@plt\0");
            named.push((stub, at));
        }
    }
    let table = into.add_names(Arc::new(names));
    for (stub, name) in named {
        into.push(FunctionSymbol {
            start: Svma(stub.start),
            size: stub.size,
            name,
            names: table,
            rank: Rank::new(false, stub.size, elf::STB_LOCAL.0),
            source: SymbolSource::Plt,
        });
    }
}

fn resolvers(slots: &FxHashMap<u64, Option<SlotTarget>>) -> FxHashSet<u64> {
    let resolver = |target: &Option<SlotTarget>| match target {
        Some(SlotTarget::ChosenBy(at)) => Some(at.0),
        _ => None,
    };
    slots.values().filter_map(resolver).collect()
}

fn x86(elf: &Elf, table: &Section, code: &[u8], stubs: &mut Vec<Stub>) {
    // Tables of static programs state no size; there two stubs of 8 bytes may follow each other.
    let is_jump = |at: usize| matches!(code.get(at..), Some([0xff, 0x25 | 0xa3, ..]));
    let step = match table.entry_size {
        8 | 16 => table.entry_size,
        _ if &*table.name == b".plt.got" || is_jump(0) && is_jump(8) => 8,
        _ => 16,
    };
    let got = elf
        .section(b".got.plt")
        .or_else(|| elf.section(b".got"))
        .map_or(0, |section| section.address);
    let length = usize::try_from(step).unwrap_or(16);
    for (index, stub) in code.chunks(length).enumerate() {
        let start = table.address.wrapping_add(step.wrapping_mul(index as u64));
        let jump = (0..=6).find(|&at| matches!(stub.get(at..), Some([0xff, 0x25 | 0xa3, ..])));
        let Some(jump) = jump else { continue };
        // Only what may stand before the jump: endbr and the prefix bnd.
        let prefix = stub.get(..jump).unwrap_or_default();
        if !matches!(
            prefix,
            [] | [0xf2] | [0xf3, 0x0f, 0x1e, 0xfa | 0xfb] | [0xf3, 0x0f, 0x1e, 0xfa | 0xfb, 0xf2]
        ) {
            continue;
        }
        let Some(value) = elf.fields(stub).u32(jump.saturating_add(2)) else {
            continue;
        };
        let distance = i64::from(value.cast_signed());
        let relative = stub.get(jump.saturating_add(1)) == Some(&0xa3);
        let slot = match (elf.wide, relative) {
            (true, false) => {
                let next = start.wrapping_add(jump as u64).wrapping_add(6);
                next.wrapping_add_signed(distance)
            }
            (false, false) => u64::from(value),
            (false, true) => got.wrapping_add_signed(distance) & 0xffff_ffff,
            (true, true) => continue,
        };
        stubs.push(Stub {
            start,
            size: stub.len() as u64,
            slot,
        });
    }
}

fn aarch64(table: &Section, code: &[u8], stubs: &mut Vec<Stub>) {
    const BTI_C: u32 = 0xd503_245f;
    // Instructions are little-endian whatever the data are.
    let words: Vec<u32> = code
        .chunks_exact(4)
        .map(|word| word.try_into().map_or(0, u32::from_le_bytes))
        .collect();
    let mut before = 0;
    for (index, pair) in words.windows(2).enumerate() {
        let [adrp, ldr] = pair else { continue };
        let here = table.address.wrapping_add((index as u64).wrapping_mul(4));
        if adrp & 0x9f00_001f == 0x9000_0010 && ldr & 0xffc0_03ff == 0xf940_0211 {
            let low = u64::from(adrp >> 29 & 3);
            let high = u64::from(adrp >> 5 & 0x7_ffff);
            // 21 bits of pages of 4 KiB, signed.
            let pages = ((high << 2 | low) << 43).cast_signed() >> 31;
            let offset = u64::from(ldr >> 10 & 0xfff).wrapping_mul(8);
            let slot = (here & !0xfff)
                .wrapping_add_signed(pages)
                .wrapping_add(offset);
            let guarded = before == BTI_C;
            stubs.push(Stub {
                start: if guarded { here.wrapping_sub(4) } else { here },
                size: if guarded { 24 } else { 16 },
                slot,
            });
        }
        before = *adrp;
    }
}

fn riscv(elf: &Elf, table: &Section, code: &[u8], stubs: &mut Vec<Stub>) {
    const JALR_T1_T3: u32 = 0x000e_0367;
    let load = if elf.wide { 0x000e_3e03 } else { 0x000e_2e03 };
    let words: Vec<u32> = code
        .chunks_exact(4)
        .map(|word| word.try_into().map_or(0, u32::from_le_bytes))
        .collect();
    for (index, three) in words.windows(3).enumerate() {
        let &[auipc, ld, JALR_T1_T3] = three else {
            continue;
        };
        if auipc & 0xfff != 0xe17 || ld & 0xf_ffff != load {
            continue;
        }
        let start = table.address.wrapping_add((index as u64).wrapping_mul(4));
        let high = (auipc & 0xffff_f000).cast_signed();
        let low = ld.cast_signed() >> 20;
        let distance = i64::from(high).wrapping_add(i64::from(low));
        stubs.push(Stub {
            start,
            size: 16,
            slot: elf.address(start.wrapping_add_signed(distance)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_aarch64_are_read_from_the_instructions() {
        let table = Section {
            name: (*b".plt").into(),
            kind: elf::SHT_PROGBITS.0,
            flags: 0,
            address: 0x40_0440,
            offset: 0,
            size: 40,
            link: 0,
            info: 0,
            entry_size: 16,
            is_old_compressed: false,
        };
        // adrp x16, 0x410000; ldr x17, [x16, #8]; add x16, x16, #8; br x17; the same behind bti c.
        let words: [u32; 9] = [
            0x9000_0090,
            0xf940_0611,
            0x9100_2210,
            0xd61f_0220,
            0xd503_245f,
            0x9000_0090,
            0xf940_0a11,
            0x9100_4210,
            0xd61f_0220,
        ];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut stubs = Vec::new();
        aarch64(&table, &code, &mut stubs);
        let found: Vec<_> = stubs.iter().map(|s| (s.start, s.size, s.slot)).collect();
        assert_eq!(
            found,
            [(0x40_0440, 16, 0x41_0008), (0x40_0450, 24, 0x41_0010)]
        );
    }
}
