//! The rules of one file: its call frame information or Go's table, and the row of an address.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection,
    Vendor,
};

use super::arch::Arch;
use super::index::{Candidate, Index, Linked};
use super::row::UnwindRow;
use crate::base::{FileOffset, Svma};
use crate::binary::{Binary, FrameSection, GoFrames, common_entry};

// The longest instructions of one entry and its common part that are run, in bytes: thousands of
// times what compilers write for a large function.
const PROGRAM_LIMIT: usize = 1 << 18;

/// The rules of a file. It is `Sync`: workers share it.
#[derive(Debug)]
pub struct Rules {
    binary: Arc<Binary>,
    arch: Arch,
    exception: Option<RuleTable>,
    /// An index of the same that leans on no table of the linker, for the case that this is wrong.
    remade: OnceLock<Option<Index>>,
    /// `.debug_frame`, here or in the debug file, once an address is not in the first.
    debug: OnceLock<Option<RuleTable>>,
    /// How the stack grows in functions of Go, once an address is not in the first.
    go: OnceLock<Option<GoFrames>>,
    /// The rows that were computed, for all workers: by the first address that each holds for, with
    /// the address behind the last.
    known: Mutex<BTreeMap<u64, (u64, Option<UnwindRow>)>>,
    /// How many bytes of instructions may yet be run: entries of a hostile file may share theirs.
    fuel: AtomicU64,
}

/// A section with its index.
#[derive(Debug)]
struct RuleTable {
    kind: SectionKind,
    bytes: Vec<u8>,
    bases: BaseAddresses,
    index: Index,
}

#[derive(Clone, Copy, Debug)]
enum SectionKind {
    Exception,
    Debug,
}

/// What an index leads to.
enum LookedUp {
    /// The row, and the addresses that it holds for.
    Row(UnwindRow, Range<u64>),
    /// No entry has the address.
    Nothing,
    /// The index is wrong.
    Wrong,
}

/// What gimli computes rows in. Making one costs more than most rows: use it again.
#[derive(Default)]
pub struct Scratch(UnwindContext<usize>);

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scratch")
    }
}

impl Rules {
    /// The rules of a file; `None` where it has none, or for a machine that is not known.
    pub fn new(binary: Arc<Binary>) -> Option<Rules> {
        let arch = Arch::of_machine(binary.machine()?);
        if !binary.is_little_endian() {
            return None;
        }
        let frames = binary.exception_frames().unwrap_or_default();
        let exception = frames.entries.map(|section| {
            let bases = BaseAddresses::default()
                .set_eh_frame(section.address.0)
                .set_text(frames.text.0)
                .set_got(frames.got.0);
            let table = frames.table.as_ref();
            let linked = table.and_then(|table| Linked::new(table, section.address.0));
            let bytes = section.bytes;
            let index = match linked {
                Some(linked) => Index::Linked(linked),
                None => Index::made(&exception_frame(&bytes, arch), &bytes, &bases),
            };
            RuleTable {
                kind: SectionKind::Exception,
                bytes,
                bases,
                index,
            }
        });
        let size = exception.as_ref().map_or(0, |table| table.bytes.len());
        Some(Rules {
            binary,
            arch,
            exception,
            remade: OnceLock::new(),
            debug: OnceLock::new(),
            go: OnceLock::new(),
            known: Mutex::default(),
            fuel: AtomicU64::new((1 << 27) + 64 * size as u64),
        })
    }

    /// The architecture of the code.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The stated address of the byte at `offset` of the file.
    pub fn svma(&self, offset: FileOffset) -> Option<Svma> {
        self.binary.svma(offset)
    }

    /// Whether an address is in the first instructions of a program, which nothing calls.
    pub(super) fn is_entry(&self, address: Svma) -> bool {
        // The dynamic linker has no rules for its own.
        // Bytes: it sets the stack up, and calls what is written in C.
        const LENGTH: u64 = 64;
        let entry = self.binary.entry();
        entry.is_some_and(|entry| address.0.wrapping_sub(entry.0) < LENGTH)
    }

    /// The row of an address; `None` where there are no rules for it.
    pub fn row(&self, address: Svma) -> Option<UnwindRow> {
        self.row_with(address, &mut Scratch::default())
    }

    /// [`Rules::row`], computed in `scratch`.
    pub fn row_with(&self, address: Svma, scratch: &mut Scratch) -> Option<UnwindRow> {
        let known = || self.known.lock().expect("no worker panics");
        if let Some((_, (end, row))) = known().range(..=address.0).next_back()
            && address.0 < *end
        {
            return row.clone();
        }
        let (row, holds) = self.computed(address, scratch);
        known().insert(holds.start, (holds.end, row.clone()));
        row
    }

    fn computed(&self, address: Svma, scratch: &mut Scratch) -> (Option<UnwindRow>, Range<u64>) {
        let here = address.0..address.0.saturating_add(1);
        let Some(table) = &self.exception else {
            return (self.elsewhere(address, scratch), here);
        };
        match self.found(table, &table.index, address, scratch) {
            LookedUp::Row(row, holds) => return (Some(row), holds),
            LookedUp::Nothing => return (self.elsewhere(address, scratch), here),
            LookedUp::Wrong => {}
        }
        let remade = self.remade.get_or_init(|| match table.index {
            Index::Linked(_) => {
                let frame = exception_frame(&table.bytes, self.arch);
                Some(Index::made(&frame, &table.bytes, &table.bases))
            }
            Index::Made(_) => None,
        });
        let found = remade
            .as_ref()
            .map(|index| self.found(table, index, address, scratch));
        match found {
            Some(LookedUp::Row(row, _)) => (Some(row), here),
            _ => (self.elsewhere(address, scratch), here),
        }
    }

    fn elsewhere(&self, address: Svma, scratch: &mut Scratch) -> Option<UnwindRow> {
        // Go writes `.debug_frame` too. It says less, is stripped more often, and is wrong in
        // functions that change to another stack.
        let go = || match self.arch {
            Arch::X86_64 => self.binary.go_frames(),
            _ => None,
        };
        let go = self.go.get_or_init(go).as_ref();
        if let Some(stack) = go.and_then(|go| go.at(address))
            && self.take(stack.work)
        {
            return UnwindRow::of_go(self.arch, &stack);
        }
        self.by_debug_frames(address, scratch)
    }

    fn by_debug_frames(&self, address: Svma, scratch: &mut Scratch) -> Option<UnwindRow> {
        let debug = self.debug.get_or_init(|| self.debug_table()).as_ref();
        let found = debug.map(|debug| self.found(debug, &debug.index, address, scratch));
        if let Some(LookedUp::Row(row, _)) = found {
            return Some(row);
        }
        if self.binary.is_stub(address) {
            return UnwindRow::of_stub(self.arch);
        }
        self.behind_system_call(address, scratch)
            .or_else(|| self.of_signal_return(address))
    }

    /// The row of code that returns from signal handlers, and of the byte before it: that of what a
    /// handler returns to is looked up there, as if something had called.
    fn of_signal_return(&self, address: Svma) -> Option<UnwindRow> {
        // `mov $15,%rax` in 7 or `mov $15,%eax` in 5 bytes, and `syscall` in 2.
        const X86: [u64; 4] = [0, 5, 7, 9];
        const AARCH64: [u64; 3] = [0, 4, 8];
        let places = match self.arch {
            Arch::Aarch64 => &AARCH64[..],
            _ => &X86,
        };
        let before = places.iter().map(|place| address.0.checked_sub(*place));
        let mut starts = before.chain([address.0.checked_add(1)]).flatten();
        let returns = starts.any(|start| self.binary.returns_from_signal(Svma(start)));
        returns.then(|| UnwindRow::of_signal_return(self.arch))?
    }

    /// The row behind a system call where rules end that hold up to it. glibc ends those of `clone`
    /// and `clone3` so, because the child goes on there on a stack of its own.
    fn behind_system_call(&self, address: Svma, scratch: &mut Scratch) -> Option<UnwindRow> {
        // Samples of the kernel's part of the call, which takes long, are the parent's.
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let call = address.0.checked_sub(SYSCALL.len() as u64)?;
        if self.arch != Arch::X86_64 || self.binary.bytes_at(Svma(call)) != Some(SYSCALL) {
            return None;
        }
        let table = self.exception.as_ref()?;
        let before = Svma(call.checked_sub(1)?);
        match self.found(table, &table.index, before, scratch) {
            LookedUp::Row(row, _) => row.behind_system_call(),
            LookedUp::Nothing | LookedUp::Wrong => None,
        }
    }

    fn debug_table(&self) -> Option<RuleTable> {
        let FrameSection { bytes, address } = self.binary.debug_frames().ok()??;
        let bases = BaseAddresses::default().set_eh_frame(address.0);
        let index = Index::made(&debug_frame(&bytes, self.arch), &bytes, &bases);
        self.fuel
            .fetch_add(64 * bytes.len() as u64, Ordering::Relaxed);
        Some(RuleTable {
            kind: SectionKind::Debug,
            bytes,
            bases,
            index,
        })
    }

    fn found(
        &self,
        table: &RuleTable,
        index: &Index,
        address: Svma,
        scratch: &mut Scratch,
    ) -> LookedUp {
        let Some(candidate) = index.find(address.0) else {
            return LookedUp::Nothing;
        };
        match table.kind {
            SectionKind::Exception => {
                let frame = exception_frame(&table.bytes, self.arch);
                self.run(&frame, table, candidate, address, scratch)
            }
            SectionKind::Debug => {
                let frame = debug_frame(&table.bytes, self.arch);
                self.run(&frame, table, candidate, address, scratch)
            }
        }
    }

    /// Runs the instructions of an entry up to an address.
    fn run<'a, S>(
        &self,
        section: &S,
        RuleTable { bytes, bases, .. }: &RuleTable,
        candidate: Candidate,
        address: Svma,
        scratch: &mut Scratch,
    ) -> LookedUp
    where
        S: UnwindSection<EndianSlice<'a, LittleEndian>>,
        S::Offset: From<usize>,
    {
        let parsed = section.fde_from_offset(
            bases,
            S::Offset::from(candidate.entry),
            |section, bases, at| common_entry(section, bytes, bases, at),
        );
        let Ok(entry) = parsed else {
            return LookedUp::Wrong;
        };
        // The linker's index and the entry disagree, so the caller makes an index of its own.
        if entry.initial_address() != candidate.start {
            return LookedUp::Wrong;
        }
        if !entry.contains(address.0) {
            return LookedUp::Nothing;
        }
        let program = entry.entry_len().saturating_add(entry.cie().entry_len());
        if program > PROGRAM_LIMIT || !self.take(program) {
            return LookedUp::Nothing;
        }
        let about = (
            entry.cie().return_address_register(),
            entry.is_signal_trampoline(),
        );
        let row = entry.unwind_info_for_address(section, bases, &mut scratch.0, address.0);
        let Ok(row) = row else {
            return LookedUp::Nothing;
        };
        // Entries of damaged files overlap. The cache must not answer for addresses that a look-up
        // would give to the next entry.
        let holds = row.start_address()..row.end_address().min(candidate.next);
        match UnwindRow::new(row, about, section, self.arch) {
            Some(row) => LookedUp::Row(row, holds),
            None => LookedUp::Nothing,
        }
    }

    /// Takes fuel for a program of this number of bytes. Returns whether there was enough.
    fn take(&self, bytes: usize) -> bool {
        let rest = |fuel: u64| fuel.checked_sub(bytes as u64);
        let taken = self
            .fuel
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        taken.is_ok()
    }
}

fn exception_frame(bytes: &[u8], arch: Arch) -> EhFrame<EndianSlice<'_, LittleEndian>> {
    let mut frame = EhFrame::new(bytes, LittleEndian);
    frame.set_address_size(arch.word());
    frame.set_vendor(vendor(arch));
    frame
}

fn debug_frame(bytes: &[u8], arch: Arch) -> DebugFrame<EndianSlice<'_, LittleEndian>> {
    let mut frame = DebugFrame::new(bytes, LittleEndian);
    frame.set_address_size(arch.word());
    frame.set_vendor(vendor(arch));
    frame
}

/// Whose extensions of the instructions are meant.
fn vendor(arch: Arch) -> Vendor {
    match arch {
        Arch::Aarch64 => Vendor::AArch64,
        _ => Vendor::Default,
    }
}
