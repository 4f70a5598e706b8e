//! Which calls and jumps through registers lead to what was loaded into the register before.
//!
//! ```text
//!   mov  slot(%rip),%rbx     ─▶ load
//!   lea  0x8(%rsp),%rdi
//!   call *%rbx               ─▶ CallSlot(slot): rbx is as it was loaded, however this is reached
//!   …
//!   call *%rbx               ─▶ CallSlot(slot): calls keep rbx, and nothing else is put into it
//! ```
//!
//! A register's value is followed along all ways through the stretch that can be seen: from one
//! instruction to the next and along direct jumps, until nothing changes (G. Kildall, "A unified
//! approach to global program optimization", POPL 1973). Where two ways bring different values,
//! none is known. What cannot be seen is where the unwinder and tables of switches enter: the
//! unwinder behind a call or where the instruction before does not go on, tables anywhere. Other
//! parts of a function (`f.cold`) may enter anywhere too, so functions that have some are not
//! looked at, nor are those without a name, which may. A call is decided only where one of these
//! holds:
//!
//! - **On the way.** Calls are taken to change every register; nothing is known where an
//!   instruction stands behind one that does not go on, however else it is reached; and the stretch
//!   has no jump to where one cannot see. Then no hidden entry can lie between load and call.
//! - **Nothing else.** The register is one that calls keep, the function saves what its caller
//!   had in it, and all that is ever put into it are loads of this one pointer, and what was
//!   saved. Wherever the unwinder or a table enters, it holds the pointer or what belongs to the
//!   caller, and nobody calls through that.
//!
//! The load stays a step of its own: the function does take the address, whatever else becomes
//! of it.

use rustc_hash::FxHashMap;

use super::flow::{Flow, Step};

/// What an instruction does with registers, a bit each, and where it goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effect {
    pub(super) at: u64,
    pub(super) reads: u32,
    /// Registers that it changes or may change.
    pub(super) writes: u32,
    pub(super) saves: u32,
    pub(super) restores: u32,
    pub(super) loads: Option<u8>,
    pub(super) through: Option<u8>,
    pub(super) next: Next,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    #[default]
    On,
    /// To the next one, when a callee returns.
    Call,
    /// To this address, or to the next one.
    Branch(u64),
    Jump(u64),
    /// To what cannot be seen.
    Unknown,
    /// Nowhere in this function.
    Stop,
}

/// What is known about the stretch as a whole. No jump leaves it but to start another function.
pub(super) struct FollowedCode {
    pub(super) end: u64,
    /// Registers that a callee keeps.
    pub(super) kept: u32,
    pub(super) followed: u32,
}

/// What a register holds: [`UNREACHED`] where no way was found to, [`UNKNOWN`], or the index of
/// the step that loads it.
type Value = u32;
const UNREACHED: Value = u32::MAX;
const UNKNOWN: Value = u32::MAX - 1;

type Values = [Value; 32];

// Times that all ways are followed before it is given up; most need two or three.
const ROUNDS: usize = 16;

/// Replaces the steps that go through a register by what they lead to, where it is certain.
/// `effects` are all instructions of the stretch, in order, and `steps` what they refer to.
pub(super) fn decide(effects: &[Effect], place: &FollowedCode, steps: &mut [Step]) {
    let mut ways = Ways::new(effects, place, steps);
    if !ways.follow() {
        return;
    }
    let decided = ways.decided();
    let loads = steps.to_vec();
    for step in steps.iter_mut() {
        let load = decided.get(&step.at);
        let Some(load) = load.and_then(|&load| loads.get(load as usize)) else {
            continue;
        };
        let through = match (step.flow, load.flow) {
            (Flow::CallUnknown, Flow::LoadSlot(slot)) => Flow::CallSlot(slot),
            (Flow::CallUnknown, Flow::Address(to)) => Flow::Call(to),
            (Flow::JumpUnknown, Flow::LoadSlot(slot)) => Flow::JumpSlot(slot),
            (Flow::JumpUnknown, Flow::Address(to)) => Flow::Jump(to),
            _ => continue,
        };
        step.flow = through;
        step.field = load.field;
    }
}

struct Ways<'a> {
    effects: &'a [Effect],
    /// Indices of the instructions that matter. The next three tables are at first of all.
    kept: Vec<u32>,
    place: &'a FollowedCode,
    /// For each instruction the step that stands for what it loads.
    loads: Vec<Option<Value>>,
    /// For each instruction the index of its entry, if direct jumps lead to it.
    entry_of: Vec<Option<u32>>,
    target_of: Vec<Option<u32>>,
    entries: Vec<Values>,
    loaded: u32,
    /// Registers into which one pointer is put and nothing else, and its step.
    sole: u32,
    sole_loads: Values,
    astray: bool,
}

impl<'a> Ways<'a> {
    fn new(effects: &'a [Effect], place: &'a FollowedCode, steps: &'a [Step]) -> Ways<'a> {
        // Loads of the same are one: the first.
        let mut first: FxHashMap<Flow, Value> = FxHashMap::default();
        let loads = effects.iter().map(|effect| {
            effect
                .loads
                .filter(|&register| place.followed & bit(register) != 0)?;
            let index = steps
                .binary_search_by_key(&effect.at, |step| step.at)
                .ok()?;
            let flow = steps.get(index)?.flow;
            let is_load = matches!(flow, Flow::LoadSlot(_) | Flow::Address(_));
            is_load.then(|| *first.entry(flow).or_insert(index as Value))
        });
        let mut ways = Ways {
            effects,
            kept: Vec::new(),
            place,
            loads: loads.collect(),
            entry_of: vec![None; effects.len()],
            target_of: vec![None; effects.len()],
            entries: Vec::new(),
            loaded: 0,
            sole: 0,
            sole_loads: [UNREACHED; 32],
            astray: false,
        };
        ways.find_entries();
        ways.find_sole();
        ways.shorten();
        ways
    }

    /// Leaves out instructions that jumps do not lead to and that change nothing.
    fn shorten(&mut self) {
        let mut to = 0;
        for from in 0..self.effects.len() {
            let effect = &self.effects[from];
            let touched = (effect.reads | effect.writes) & self.loaded;
            let matters = touched != 0
                || effect.next != Next::On
                || effect.through.is_some()
                || self.loads[from].is_some()
                || self.entry_of[from].is_some();
            if matters {
                self.kept.push(from as u32);
                self.loads[to] = self.loads[from];
                self.entry_of[to] = self.entry_of[from];
                self.target_of[to] = self.target_of[from];
                to += 1;
            }
        }
    }

    fn find_entries(&mut self) {
        let start = self.effects.first().map_or(0, |effect| effect.at);
        for (effect, target) in self.effects.iter().zip(&mut self.target_of) {
            let (Next::Branch(to) | Next::Jump(to)) = effect.next else {
                continue;
            };
            if !(start..self.place.end).contains(&to) {
                continue;
            }
            let index = self.effects.binary_search_by_key(&to, |effect| effect.at);
            let entry = index.ok().and_then(|index| self.entry_of.get_mut(index));
            let Some(entry) = entry else {
                self.astray = true;
                continue;
            };
            *target = Some(*entry.get_or_insert_with(|| {
                self.entries.push([UNREACHED; 32]);
                (self.entries.len() - 1) as u32
            }));
        }
    }

    /// Finds registers into which nothing but one pointer is put.
    fn find_sole(&mut self) {
        let mut saved = 0;
        for (effect, load) in self.effects.iter().zip(&self.loads) {
            saved |= effect.saves;
            let mut other = effect.writes & !effect.restores;
            if let (Some(register), Some(load)) = (effect.loads, *load) {
                self.loaded |= bit(register);
                other &= !bit(register);
                if let Some(sole) = self.sole_loads.get_mut(usize::from(register)) {
                    *sole = meet(*sole, load);
                }
            }
            for register in registers(other) {
                self.sole_loads[register] = UNKNOWN;
            }
        }
        for (register, sole) in self.sole_loads.iter().enumerate() {
            if *sole < UNKNOWN {
                self.sole |= 1 << register & saved & self.place.kept;
            }
        }
    }

    /// Follows all ways until nothing changes; false if that takes too long.
    fn follow(&mut self) -> bool {
        for _ in 0..ROUNDS {
            let mut settled = true;
            let mut values = [UNKNOWN; 32];
            for (index, &effect) in self.kept.iter().enumerate() {
                let effect = &self.effects[effect as usize];
                if let Some(entry) = self.entry_of[index] {
                    let entry = &mut self.entries[entry as usize];
                    merge(self.loaded, entry, &values);
                    values = *entry;
                }
                self.apply(index, effect, &mut values);
                if let (Some(target), Next::Branch(to) | Next::Jump(to)) =
                    (self.target_of[index], effect.next)
                    && merge(self.loaded, &mut self.entries[target as usize], &values)
                    && to <= effect.at
                {
                    settled = false;
                }
                if ends(effect.next) {
                    values = self.at_hidden_entry();
                }
            }
            if settled {
                return true;
            }
        }
        false
    }

    fn apply(&self, index: usize, effect: &Effect, values: &mut Values) {
        let mut changed = effect.writes;
        if effect.next == Next::Call {
            changed |= !self.sole;
        }
        for register in registers(changed & self.loaded) {
            // What cannot be reached stays so, unless the instruction itself says otherwise.
            if values[register] != UNREACHED || effect.writes >> register & 1 != 0 {
                values[register] = UNKNOWN;
            }
        }
        if let (Some(register), Some(Some(load))) = (effect.loads, self.loads.get(index))
            && let Some(value) = values.get_mut(usize::from(register))
        {
            *value = *load;
        }
    }

    // What registers hold where the unwinder may enter: nothing that is known, except for those
    // that nothing else is ever put into.
    fn at_hidden_entry(&self) -> Values {
        let mut values = [UNKNOWN; 32];
        for register in registers(self.sole) {
            values[register] = UNREACHED;
        }
        values
    }

    fn decided(&self) -> FxHashMap<u64, Value> {
        let mut candidates = Vec::new();
        let mut hidden = false;
        let mut values = [UNKNOWN; 32];
        for (index, &effect) in self.kept.iter().enumerate() {
            let effect = &self.effects[effect as usize];
            if let Some(entry) = self.entry_of[index] {
                values = self.entries[entry as usize];
            }
            let held = |register: u8| match *values.get(usize::from(register))? {
                UNREACHED if self.sole & bit(register) != 0 => {
                    self.sole_loads.get(usize::from(register)).copied()
                }
                UNREACHED | UNKNOWN => None,
                load => Some(load),
            };
            // Where it leads may be decided here, but not that it leads out of the function.
            hidden |= effect.next == Next::Unknown;
            if let Some(register) = effect.through
                && let Some(load) = held(register)
            {
                candidates.push((effect.at, register, load));
            }
            self.apply(index, effect, &mut values);
            if ends(effect.next) {
                values = self.at_hidden_entry();
            }
        }
        let sure = |register: u8| !self.astray && (!hidden || self.sole & bit(register) != 0);
        candidates
            .into_iter()
            .filter(|&(_, register, _)| sure(register))
            .map(|(at, _, load)| (at, load))
            .collect()
    }
}

fn ends(next: Next) -> bool {
    matches!(next, Next::Jump(_) | Next::Unknown | Next::Stop)
}

fn registers(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let register = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (register < 32).then_some(register as usize)
    })
}

fn bit(register: u8) -> u32 {
    1u32.checked_shl(u32::from(register)).unwrap_or(0)
}

fn meet(a: Value, b: Value) -> Value {
    match (a, b) {
        (UNREACHED, other) | (other, UNREACHED) => other,
        (a, b) if a == b => a,
        _ => UNKNOWN,
    }
}

/// Meets the values of these registers; whether anything changed.
fn merge(bits: u32, values: &mut Values, others: &Values) -> bool {
    let mut changed = false;
    for register in registers(bits) {
        let met = meet(values[register], others[register]);
        changed |= met != values[register];
        values[register] = met;
    }
    changed
}

#[cfg(test)]
mod tests;
