//! Which instructions control flow reaches for certain.
//!
//! ```text
//!   f:       test %edi,%edi
//!            je   1f                      both ways of a conditional jump
//!            call g                       what lies behind a call, if g returns
//!            jmp  *table(,%rax,8)         the entries of the table of a switch
//!   literal: .byte 0xe8, …                nothing leads here: data, whatever it looks like
//!   1:       ret
//! ```
//!
//! Linear decoding (see [`calls`](super::calls)) takes data between instructions for code. Here,
//! decoding begins at the starts of functions and at landing pads of exceptions, and follows jumps.
//! What is not reached may still be code: behind a jump through a table that is not recognized, for
//! example. A conditional jump that always jumps, and a system call that ends the process, are
//! followed by data in code that is made to mislead; that is not recognized.

mod tables;

use rustc_hash::FxHashMap;

use super::Calls;
use super::file_tables::FileTables;
use super::flow::{Flow, Wants};
use super::resolve::{Lot, Resolved, Resolver, Target};
use super::x86::Instructions;
use super::x86::ends::{After, after};
use crate::base::Svma;

// How many instructions of a function are followed to find one that returns.
const STEPS: usize = 256;

// How far before the first code a table may lie.
const LOW: u64 = 1 << 30;

const ENDS: [&str; 24] = [
    "_Exit",
    "_Unwind_Resume",
    "_Z9terminatev",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_unexpected",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_start_main",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "abort",
    "exit",
    "longjmp",
    "siglongjmp",
];

/// Whether a function of this linkage name, of this or another file, is known never to return.
pub(super) fn is_end(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    ENDS.binary_search(&name).is_ok()
}

/// The bytes from an address to the end of its section.
pub type CodeAt<'a, 'c> = dyn Fn(Svma) -> Option<&'c [u8]> + 'a;

/// The instructions of x86-64 code that control flow reaches for certain.
#[derive(Debug)]
pub struct Reached {
    /// For each stretch of code its first address, the address behind it, and the number of its
    /// first bit.
    stretches: Vec<(u64, u64, usize)>,
    // A bit for each byte: whether an instruction begins there.
    begins: Vec<u64>,
}

impl Reached {
    /// Follows the code of a file. `calls` are those that were found in it.
    pub fn find(tables: &FileTables, calls: &Calls, code: &CodeAt<'_, '_>) -> Reached {
        let resolver = tables.resolver();
        let lots = tables.lots();
        let mut stretches = Vec::with_capacity(lots.len());
        let mut bit = 0usize;
        for lot in &lots {
            let length = usize::try_from(lot.piece.length).unwrap_or(0);
            let end = lot.start.saturating_add(length as u64);
            stretches.push((lot.start, end, bit));
            bit = bit.saturating_add(length);
        }
        let binary = tables.binary;
        let mut follower = Follower {
            tables,
            resolver: &resolver,
            calls,
            code,
            pads: binary.landing_pads(),
            lots,
            wants: Wants {
                // Tables do not lie before all code but where the file is small.
                addresses: tables.code.range().start().saturating_sub(LOW)..=u64::MAX,
                immediates: binary.is_fixed(),
                unlinked: false,
            },
            reached: Reached {
                stretches,
                begins: vec![0; bit / 64 + 1],
            },
            local: Vec::new(),
            addresses: Vec::new(),
            elsewhere: Vec::new(),
            returning: FxHashMap::default(),
        };
        follower.run();
        follower.reached
    }

    /// Whether an instruction of this length at this address is reached, and none begins inside of
    /// it.
    pub fn is_sure(&self, at: Svma, length: u8) -> bool {
        let Some((_, bit)) = self.place(at.0) else {
            return false;
        };
        self.has(bit) && !(1..usize::from(length)).any(|inside| self.has(bit + inside))
    }

    fn place(&self, at: u64) -> Option<(usize, usize)> {
        let after = self.stretches.partition_point(|(start, ..)| *start <= at);
        let stretch = after.checked_sub(1)?;
        let &(start, end, bit) = self.stretches.get(stretch)?;
        (at < end).then(|| (stretch, bit.saturating_add((at - start) as usize)))
    }

    #[inline]
    fn has(&self, bit: usize) -> bool {
        let word = self.begins.get(bit / 64).copied().unwrap_or(0);
        word >> (bit % 64) & 1 != 0
    }

    /// Returns whether it was there.
    #[inline]
    fn put(&mut self, bit: usize) -> bool {
        let Some(word) = self.begins.get_mut(bit / 64) else {
            return true;
        };
        let was = *word >> (bit % 64) & 1 != 0;
        *word |= 1 << (bit % 64);
        was
    }
}

struct Follower<'a, 'c> {
    tables: &'a FileTables<'a>,
    resolver: &'a Resolver<'a>,
    calls: &'a Calls,
    code: &'a CodeAt<'a, 'c>,
    pads: Vec<Svma>,
    lots: Vec<Lot<'a>>,
    wants: Wants,
    reached: Reached,
    // Indices in the stretch that is followed.
    local: Vec<usize>,
    // Addresses that its code takes: of tables, perhaps.
    addresses: Vec<u64>,
    elsewhere: Vec<u64>,
    /// Whether what is called returns, by address of the function or of the slot.
    returning: FxHashMap<(bool, u64), bool>,
}

fn key(flow: Flow) -> Option<(bool, u64)> {
    match flow {
        Flow::Call(to) => Some((false, to)),
        Flow::CallSlot(slot) => Some((true, slot)),
        _ => None,
    }
}

/// Where instructions begin if they are decoded one after the other.
fn begins(instructions: &mut Instructions<'_>, length: usize, wants: &Wants) -> Vec<bool> {
    let mut begins = vec![false; length];
    let mut index = 0;
    while let Some(begin) = begins.get_mut(index) {
        let read = instructions.read(index, wants);
        *begin = read.is_some();
        index += read.map_or(1, |read| usize::from(read.length).max(1));
    }
    begins
}

impl Follower<'_, '_> {
    fn run(&mut self) {
        for stretch in 0..self.lots.len() {
            let Some(lot) = self.lots.get(stretch) else {
                break;
            };
            // A mere label may be that of data.
            if lot.start == lot.symbol.start.0 && lot.symbol.has_stated_end() {
                self.follow(stretch, &[lot.start]);
            }
        }
        self.elsewhere.extend(self.pads.iter().map(|pad| pad.0));
        while !self.elsewhere.is_empty() {
            let mut targets = std::mem::take(&mut self.elsewhere);
            targets.sort_unstable();
            targets.dedup();
            let mut rest = &targets[..];
            while let Some(&first) = rest.first() {
                let Some((stretch, _)) = self.reached.place(first) else {
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                };
                let end = self.reached.stretches.get(stretch).map_or(0, |s| s.1);
                let (here, others) = rest.split_at(rest.partition_point(|&to| to < end).max(1));
                self.follow(stretch, here);
                rest = others;
            }
        }
    }

    fn follow(&mut self, stretch: usize, from: &[u64]) {
        let Some(&(start, end, bit)) = self.reached.stretches.get(stretch) else {
            return;
        };
        let bytes = (self.code)(Svma(start)).unwrap_or_default();
        let length = usize::try_from(end - start).unwrap_or(0);
        let bytes = bytes.get(..length).unwrap_or(bytes);
        self.addresses.clear();
        let mut jumps_by_table = false;
        let mut begin = Vec::new();
        let news = from.iter().map(|to| to.wrapping_sub(start) as usize);
        self.local.extend(news);
        let mut instructions = Instructions::new(bytes, start);
        loop {
            while let Some(index) = self.local.pop() {
                jumps_by_table |= self.straight(&mut instructions, bytes, (start, bit), index);
            }
            if !jumps_by_table {
                return;
            }
            jumps_by_table = false;
            self.add_absolute(bytes, bit);
            self.read_tables(stretch);
            // What stands behind a table may be read as part of it, and leads anywhere.
            if begin.is_empty() {
                begin = begins(&mut instructions, bytes.len(), &self.wants);
            }
            self.local.retain(|&index| begin.get(index) == Some(&true));
            if self.local.is_empty() {
                return;
            }
        }
    }

    /// Follows code from an index of a stretch to where it ends, or was followed before. Returns
    /// whether it ends in a jump to what is not known.
    fn straight(
        &mut self,
        instructions: &mut Instructions<'_>,
        bytes: &[u8],
        (start, bit): (u64, usize),
        mut index: usize,
    ) -> bool {
        while index < bytes.len() {
            if self.reached.put(bit.saturating_add(index)) {
                return false;
            }
            let Some(read) = instructions.read(index, &self.wants) else {
                return false;
            };
            let next = index.saturating_add(usize::from(read.length));
            let mut ends_unknown = false;
            match read.refers.map(|(flow, _)| flow) {
                Some(Flow::Jump(to)) => {
                    let inside = to.wrapping_sub(start);
                    match usize::try_from(inside) {
                        Ok(inside) if inside < bytes.len() => self.local.push(inside),
                        _ => self.elsewhere.push(to),
                    }
                }
                Some(flow @ (Flow::Call(_) | Flow::CallSlot(_))) => {
                    let end = start.wrapping_add(bytes.len() as u64);
                    if let Flow::Call(to) = flow
                        && (start.saturating_add(1)..end).contains(&to)
                    {
                        // It calls its own middle: what lies behind the call may be data, whose
                        // address the call puts on the stack.
                        self.local.push(to.wrapping_sub(start) as usize);
                        return false;
                    }
                    if !self.returns(flow) {
                        return false;
                    }
                }
                // Entries are aligned.
                Some(Flow::Address(to)) if to % 4 == 0 => self.addresses.push(to),
                Some(Flow::JumpUnknown | Flow::JumpSlot(_)) => ends_unknown = true,
                _ => {}
            }
            if after(bytes.get(index..next).unwrap_or_default()) != After::Next {
                return ends_unknown;
            }
            index = next;
        }
        // It runs on into the next function.
        self.elsewhere.push(start.wrapping_add(index as u64));
        false
    }

    fn returns(&mut self, flow: Flow) -> bool {
        let Some(key) = key(flow) else { return true };
        if let Some(&known) = self.returning.get(&key) {
            return known;
        }
        let found = match self.resolver.called(flow) {
            Some(Resolved::Site(_, Target::Import(import))) => {
                let name = self.resolver.import_name(import);
                !is_end(&name)
            }
            Some(Resolved::Site(_, Target::Function(id))) => {
                let function = self.calls.functions.get(id).map(|function| function.symbol);
                function.is_none_or(|function| self.comes_back(function.start.0))
            }
            _ => true,
        };
        self.returning.insert(key, found);
        found
    }

    /// Whether a return, or a way that cannot be followed, is reached from the start of a function.
    fn comes_back(&mut self, start: u64) -> bool {
        let Some((stretch, _)) = self.reached.place(start) else {
            return true;
        };
        let Some(&(_, end, _)) = self.reached.stretches.get(stretch) else {
            return true;
        };
        // Control reaches a landing pad from the unwinder, by no instruction, and may return from
        // there.
        let pad = self.pads.partition_point(|pad| pad.0 < start);
        if self.pads.get(pad).is_some_and(|pad| pad.0 < end) {
            return true;
        }
        let bytes = (self.code)(Svma(start)).unwrap_or_default();
        let length = usize::try_from(end - start).unwrap_or(0);
        let bytes = bytes.get(..length).unwrap_or(bytes);
        let mut instructions = Instructions::new(bytes, start);
        let mut seen = vec![0u64; bytes.len() / 64 + 1];
        let mut steps = 0;
        let mut work = vec![0usize];
        while let Some(mut index) = work.pop() {
            loop {
                // A bit for each byte: instructions may overlap, and a loop ends the second time.
                let Some(word) = seen.get_mut(index / 64) else {
                    return true;
                };
                if *word >> (index % 64) & 1 != 0 {
                    break;
                }
                *word |= 1 << (index % 64);
                steps += 1;
                if steps > STEPS {
                    return true;
                }
                let Some(read) = instructions.read(index, &self.wants) else {
                    return true;
                };
                let next = index.saturating_add(usize::from(read.length));
                let flow = read.refers.map(|(flow, _)| flow);
                if let Some(Flow::Jump(to)) = flow {
                    match usize::try_from(to.wrapping_sub(start)) {
                        Ok(inside) if inside < bytes.len() => work.push(inside),
                        _ => return true,
                    }
                }
                let goes_on = match after(bytes.get(index..next).unwrap_or_default()) {
                    After::Return => return true,
                    After::Jump if !matches!(flow, Some(Flow::Jump(_))) => return true,
                    After::Jump | After::Nothing => false,
                    After::Next => true,
                };
                let is_call = flow.is_some_and(|flow| {
                    matches!(flow, Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown)
                });
                if !goes_on || (is_call && (next >= bytes.len() || self.ends(flow))) {
                    break;
                }
                if next >= bytes.len() {
                    return true;
                }
                index = next;
            }
        }
        false
    }

    fn ends(&mut self, flow: Option<Flow>) -> bool {
        let Some((flow, key)) = flow.and_then(|flow| Some((flow, key(flow)?))) else {
            return false;
        };
        if let Some(&returns) = self.returning.get(&key) {
            return !returns;
        }
        match self.resolver.called(flow) {
            Some(Resolved::Site(_, Target::Import(_))) => !self.returns(flow),
            _ => false,
        }
    }
}
