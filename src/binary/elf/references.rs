//! What instructions and data of a relocatable file (`.o`, `.ko`) refer to. Their own operands
//! are not filled in yet; records say what a linker will write:
//!
//! ```text
//!   e8 00 00 00 00   call …     .rela.text: at the four zero bytes, R_X86_64_PLT32 parse - 4
//!
//!   form        types                                 what the field will hold
//!   word        64, ABS64, 386_32, RISCV_64           S + A
//!   absolute    32, 32S, ADD_ABS_LO12, HI20, …        S + A, or a part of it
//!   relative    PC32, PLT32, CALL26, JAL, CALL_PLT, … S + A - P
//!   slot        GOTPCRELX, ADR_GOT_PAGE, GOT_HI20, …  where the slot with S + A is
//!   low         PCREL_LO12_I                          the rest of the address at S, an AUIPC
//! ```
//!
//! S is the symbol's address, A the addend, P the address of the field. The processor adds a
//! relative field of x86 to the address behind it, so assemblers take 4 off the addend.

use object::elf::{self, RelocationType};
use rustc_hash::FxHashMap;

use super::relocations;
use super::slot_target::SlotTarget;
use super::symbols;
use super::{Elf, Section};
use crate::base::Svma;
use crate::binary::Binary;

// References of one file.
const LIMIT: usize = 1 << 23;

/// What the operand of an instruction stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// This place or symbol.
    To(SlotTarget),
    /// The slot that a linker will make, which points to this.
    SlotOf(SlotTarget),
    /// Something else, such as a variable without contents or of a thread.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) enum Form {
    Word,
    Absolute,
    Relative,
    Slot,
    Low,
}

/// What a file's instructions refer to, by address of the field; see [`Binary::references`].
#[derive(Debug, Default)]
pub struct References {
    fields: FxHashMap<u64, Reference>,
    /// What could not be read; each a lower-case fragment.
    pub problems: Vec<String>,
}

impl References {
    /// What the operand in the field at this address stands for, if a linker is to fill it in.
    pub fn at(&self, field: Svma) -> Option<Reference> {
        self.fields.get(&field.0).copied()
    }
}

impl Binary {
    /// What instructions refer to, where a linker is yet to fill that in: in relocatable files.
    /// Fields are the four bytes of the operand on x86, instructions elsewhere.
    pub fn references(&self) -> References {
        let mut references = References::default();
        let References { fields, problems } = &mut references;
        if !self.elf.relocatable {
            return references;
        }
        let mut low = Vec::new();
        visit(
            &self.elf,
            problems,
            &Section::is_code,
            |at, form, reference| {
                if fields.len() >= LIMIT {
                    return;
                }
                match (form, reference) {
                    (Form::Low, Reference::To(SlotTarget::Address(high))) => low.push((at, high)),
                    _ => {
                        let known = fields.entry(at).or_insert(reference);
                        if *known == Reference::Other {
                            *known = reference;
                        }
                    }
                }
            },
        );
        for (at, high) in low {
            let reference = fields.get(&high.0).copied();
            fields.insert(at, reference.unwrap_or(Reference::Other));
        }
        references
    }
}

// Hands on the references of all fields in sections that pass: where, how, to what.
pub(in crate::binary) fn visit(
    elf: &Elf,
    problems: &mut Vec<String>,
    pass: &dyn Fn(&Section) -> bool,
    mut field: impl FnMut(u64, Form, Reference),
) {
    let changed = |table: &Section| elf.sections.get(table.info as usize).filter(|s| pass(s));
    let tables = elf.believed("relocations", problems, |section| {
        relocations::is_table(section) && changed(section).is_some()
    });
    let mut symbols = elf.sections.iter().zip(0_u32..);
    let Some((table, index)) = symbols.find(|(s, _)| s.kind == elf::SHT_SYMTAB.0) else {
        return;
    };
    let symbols = symbols::entries(elf, table).unwrap_or_else(|error| {
        problems.push(error.to_string());
        Vec::new()
    });
    // With addends in the fields, their contents are read once, whatever the number of tables.
    let mut contents: FxHashMap<u32, Vec<u8>> = FxHashMap::default();
    let mut room = elf.source.size();
    for table in tables {
        let Some(section) = changed(table).filter(|_| table.link == index) else {
            continue;
        };
        let Ok(bytes) = elf.source.read("relocations", table.offset, table.size) else {
            continue;
        };
        if table.kind == elf::SHT_REL.0 && !contents.contains_key(&table.info) {
            let Some(rest) = room.checked_sub(section.size) else {
                continue;
            };
            room = rest;
            let bytes = elf.source.read("code", section.offset, section.size);
            contents.insert(table.info, bytes.unwrap_or_default());
        }
        let contents = contents.get(&table.info).map_or(&[][..], Vec::as_slice);
        for record in relocations::records(elf.fields(&bytes), table.kind) {
            if is_mark(elf.machine, record.kind) || record.at >= section.size {
                continue;
            }
            let at = section.offset.wrapping_add(record.at);
            let Some(form) = form(elf.machine, elf.wide, record.kind) else {
                field(at, Form::Absolute, Reference::Other);
                continue;
            };
            let addend = record.addend.or_else(|| {
                let at = usize::try_from(record.at).ok()?;
                let value = elf.fields(contents).u32(at)?;
                Some(i64::from(value.cast_signed()))
            });
            let symbol = symbols.get(record.symbol as usize);
            let reference = match (symbol, addend) {
                (Some(symbol), Some(addend)) => {
                    let addend = addend.wrapping_add(bias(elf.machine, form));
                    target(elf, symbol, record.symbol, addend)
                }
                _ => None,
            };
            let reference = match (form, reference) {
                (_, None) => Reference::Other,
                (Form::Slot, Some(target)) => Reference::SlotOf(target),
                (_, Some(target)) => Reference::To(target),
            };
            field(at, form, reference);
        }
    }
}

// How far behind the field the processor counts from; on 32-bit x86 slots are absolute.
fn bias(machine: u16, form: Form) -> i64 {
    let behind = match form {
        Form::Relative => [elf::EM_X86_64.0, elf::EM_386.0].contains(&machine),
        Form::Slot => machine == elf::EM_X86_64.0,
        _ => false,
    };
    if behind { 4 } else { 0 }
}

fn target(elf: &Elf, symbol: &symbols::Entry, index: u32, addend: i64) -> Option<SlotTarget> {
    if symbol.section == u32::from(elf::SHN_UNDEF.0) {
        // Behind the start of what another file defines nothing is known.
        return (index != 0 && addend == 0).then_some(SlotTarget::Symbol(index));
    }
    let section = elf.sections.get(usize::try_from(symbol.section).ok()?)?;
    if !section.is_code() && !section.is_data() {
        return None;
    }
    let at = symbol.value.wrapping_add_signed(addend);
    let at = elf.address(section.offset.wrapping_add(at));
    Some(if symbol.kind == elf::STT_GNU_IFUNC.0 && addend == 0 {
        SlotTarget::ChosenBy(Svma(at))
    } else {
        SlotTarget::Address(Svma(at))
    })
}

// Relocations that write nothing; they accompany others for the same field.
fn is_mark(machine: u16, kind: u32) -> bool {
    let riscv = [elf::R_RISCV_RELAX.0, elf::R_RISCV_ALIGN.0];
    kind == 0 || machine == elf::EM_RISCV.0 && riscv.contains(&kind)
}

fn form(machine: u16, wide: bool, kind: u32) -> Option<Form> {
    let kind = RelocationType(kind);
    match machine {
        m if m == elf::EM_X86_64.0 => x86_64(kind),
        m if m == elf::EM_386.0 => x86(kind),
        m if m == elf::EM_AARCH64.0 => aarch64(kind),
        m if m == elf::EM_RISCV.0 => riscv(wide, kind),
        _ => None,
    }
}

fn x86_64(kind: RelocationType) -> Option<Form> {
    Some(match kind {
        elf::R_X86_64_64 => Form::Word,
        elf::R_X86_64_32 | elf::R_X86_64_32S => Form::Absolute,
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => Form::Relative,
        elf::R_X86_64_GOTPCREL
        | elf::R_X86_64_GOTPCRELX
        | elf::R_X86_64_REX_GOTPCRELX
        | elf::R_X86_64_CODE_4_GOTPCRELX => Form::Slot,
        _ => return None,
    })
}

fn x86(kind: RelocationType) -> Option<Form> {
    Some(match kind {
        elf::R_386_32 => Form::Word,
        elf::R_386_GOTOFF => Form::Absolute,
        elf::R_386_PC32 | elf::R_386_PLT32 => Form::Relative,
        elf::R_386_GOT32 | elf::R_386_GOT32X => Form::Slot,
        _ => return None,
    })
}

fn aarch64(kind: RelocationType) -> Option<Form> {
    Some(match kind {
        elf::R_AARCH64_ABS64 => Form::Word,
        elf::R_AARCH64_ADD_ABS_LO12_NC
        | elf::R_AARCH64_LDST64_ABS_LO12_NC
        | elf::R_AARCH64_MOVW_UABS_G0
        | elf::R_AARCH64_MOVW_UABS_G0_NC
        | elf::R_AARCH64_MOVW_UABS_G1
        | elf::R_AARCH64_MOVW_UABS_G1_NC
        | elf::R_AARCH64_MOVW_UABS_G2
        | elf::R_AARCH64_MOVW_UABS_G2_NC
        | elf::R_AARCH64_MOVW_UABS_G3 => Form::Absolute,
        elf::R_AARCH64_CALL26
        | elf::R_AARCH64_JUMP26
        | elf::R_AARCH64_CONDBR19
        | elf::R_AARCH64_TSTBR14
        | elf::R_AARCH64_LD_PREL_LO19
        | elf::R_AARCH64_ADR_PREL_LO21
        | elf::R_AARCH64_ADR_PREL_PG_HI21
        | elf::R_AARCH64_ADR_PREL_PG_HI21_NC => Form::Relative,
        elf::R_AARCH64_GOT_LD_PREL19
        | elf::R_AARCH64_ADR_GOT_PAGE
        | elf::R_AARCH64_LD64_GOT_LO12_NC
        | elf::R_AARCH64_LD64_GOTPAGE_LO15 => Form::Slot,
        _ => return None,
    })
}

fn riscv(wide: bool, kind: RelocationType) -> Option<Form> {
    Some(match kind {
        elf::R_RISCV_64 if wide => Form::Word,
        elf::R_RISCV_32 if !wide => Form::Word,
        elf::R_RISCV_HI20 | elf::R_RISCV_LO12_I | elf::R_RISCV_LO12_S => Form::Absolute,
        elf::R_RISCV_BRANCH
        | elf::R_RISCV_JAL
        | elf::R_RISCV_CALL
        | elf::R_RISCV_CALL_PLT
        | elf::R_RISCV_PCREL_HI20
        | elf::R_RISCV_RVC_BRANCH
        | elf::R_RISCV_RVC_JUMP => Form::Relative,
        elf::R_RISCV_GOT_HI20 => Form::Slot,
        elf::R_RISCV_PCREL_LO12_I | elf::R_RISCV_PCREL_LO12_S => Form::Low,
        _ => return None,
    })
}
