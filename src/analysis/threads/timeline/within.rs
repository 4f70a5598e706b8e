//! The weights of source lines and instructions of some functions by bucket: the figures of
//! [`annotate`](crate::analysis::annotate), for the requested parts.
//!
//! A place knows from which line its caller called, and at which address it was. So each place
//! stands for parts of functions, and a sample counts once for a part: at the outermost place that
//! stands for it.
//!
//! ```text
//!   main ◀─9─ sum ◀─4─ sum ◀─4─ add      asked: line 4 of sum
//!                      ▲        ▲
//!                      counts   stands for the same line, and adds nothing
//! ```

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::base::{IdVec, define_id};
use crate::profile::{FunctionId, LineId, PlaceId, Places, Profile, TimedRow};

use super::PartSum;

define_id! {
    /// A part that was asked for, in the order in which it was.
    pub PartId
}

define_id! {
    // A place that stands for parts for which none outwards of it does.
    StandingId
}

/// A part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A source line; `None` for all weight whose line is not known.
    Line(Option<LineId>),
    /// All of its machine code, with what is inlined into it.
    Code,
    /// An instruction, by its place among [`AskedFunction::instructions`].
    Instruction(usize),
    /// Addresses of its machine code that are in no instruction.
    Outside,
    /// The function where it is inlined into the machine code of others.
    Elsewhere,
}

/// A function of which parts are asked for.
#[derive(Clone, Debug)]
pub struct AskedFunction {
    /// The function.
    pub function: FunctionId,
    /// The parts, each once. They are numbered on from those of the functions before this one.
    pub parts: Vec<Part>,
    /// The stated addresses of its instructions, in order.
    pub instructions: Vec<Range<u64>>,
}

// A function with the numbers of its parts.
pub(super) struct Numbered<'a> {
    function: FunctionId,
    parts: FxHashMap<Part, PartId>,
    code: Option<PartId>,
    elsewhere: Option<PartId>,
    instructions: &'a [Range<u64>],
}

impl<'a> Numbered<'a> {
    pub fn all(functions: &'a [AskedFunction]) -> Vec<Numbered<'a>> {
        let mut ids = (0..).map(PartId::new);
        let function = |asked: &'a AskedFunction| {
            let parts = asked.parts.iter().copied().zip(&mut ids);
            let parts: FxHashMap<Part, PartId> = parts.collect();
            Numbered {
                function: asked.function,
                code: parts.get(&Part::Code).copied(),
                elsewhere: parts.get(&Part::Elsewhere).copied(),
                parts,
                instructions: &asked.instructions,
            }
        };
        functions.iter().map(function).collect()
    }

    fn part(&self, part: Part) -> Option<PartId> {
        self.parts.get(&part).copied()
    }

    fn part_at(&self, address: u64) -> Option<PartId> {
        let after = self
            .instructions
            .partition_point(|instruction| instruction.start <= address);
        let place = after.checked_sub(1);
        match place.filter(|&place| self.instructions[place].contains(&address)) {
            Some(place) => self.part(Part::Instruction(place)),
            None => self.part(Part::Outside),
        }
    }
}

// The parts, and what they have in the bucket that is summed up.
pub(super) struct Parts<'a> {
    profile: &'a Profile,
    places: &'a Places,
    functions: &'a [Numbered<'a>],
    // Which of the functions each function is, if it is one.
    asked: IdVec<FunctionId, Option<u8>>,
    of_places: IdVec<PlaceId, OfPlace>,
    standing: IdVec<StandingId, Standing>,
    // The parts that places stand for, one place after the other.
    stands_for: Vec<PartId>,
    // Those with weight in the bucket.
    taken: Vec<StandingId>,
    sums: IdVec<PartId, OfPart>,
    seen: Vec<PartId>,
}

// All that a row needs, as there are far more rows than places.
#[derive(Clone, Copy, Default)]
struct OfPlace {
    // The innermost place that stands for parts: this one, or one outwards of it.
    standing: Option<StandingId>,
    // The part of `machine` that its address is in.
    instruction: Option<PartId>,
    // Which of the functions its function is.
    function: Option<u8>,
    // Which of them the function is in whose machine code its address lies.
    machine: Option<u8>,
    has_address: bool,
}

// Parts for which no place outwards of it stands.
struct Standing {
    // The next such place outwards.
    outer: Option<StandingId>,
    parts: Range<u32>,
    // The weight of the bucket's samples at it or further in, as far as they were seen.
    weight: u64,
    is_taken: bool,
}

#[derive(Clone, Copy, Default)]
struct OfPart {
    self_weight: u64,
    total: u64,
    is_seen: bool,
}

impl<'a> Parts<'a> {
    // `None` where the profile has no places, or nothing is asked for. Linear in places, and for
    // those that stand for parts in the number of such places outwards.
    pub fn of(profile: &'a Profile, functions: &'a [Numbered<'a>]) -> Option<Parts<'a>> {
        let places = profile.places.as_ref().filter(|_| !functions.is_empty())?;
        let mut asked = IdVec::filled(None, profile.functions.len());
        for (number, function) in (0..u8::MAX).zip(functions) {
            asked[function.function] = Some(number);
        }
        let count = functions.iter().map(|function| function.parts.len()).sum();
        let mut parts = Parts {
            profile,
            places,
            functions,
            asked,
            of_places: IdVec::filled(OfPlace::default(), places.tree().len()),
            standing: IdVec::new(),
            stands_for: Vec::new(),
            taken: Vec::new(),
            sums: IdVec::filled(OfPart::default(), count),
            seen: Vec::new(),
        };
        places.tree().ids().for_each(|place| parts.look_at(place));
        Some(parts)
    }

    fn function(&self, number: Option<u8>) -> Option<&'a Numbered<'a>> {
        self.functions.get(usize::from(number?))
    }

    // Those outwards of it were looked at.
    fn look_at(&mut self, id: PlaceId) {
        let place = self.places.tree()[id];
        let path = self.profile.paths[place.path];
        let caller = place.caller.map(|caller| self.of_places[caller]);
        let caller = caller.unwrap_or_default();
        let function = self.asked[path.function];
        // Inlined calls share the address with the function around them.
        let is_around = |caller: PlaceId| self.places.tree()[caller].address == place.address;
        let machine = if path.inlined && place.caller.is_some_and(is_around) {
            caller.machine
        } else {
            function
        };
        let line = self.function(caller.function);
        let line = line.and_then(|asked| asked.part(Part::Line(place.line)));
        let address = place
            .address
            .map(|address| self.places.addresses()[address]);
        let within = self.function(machine).zip(address);
        let instruction = within.and_then(|(asked, address)| asked.part_at(address));
        let outer = caller.standing;
        let first = self.stands_for.len() as u32;
        let code = within.filter(|_| !path.inlined);
        let code = code.map_or([None; 2], |(asked, _)| [asked.code, instruction]);
        let found = [line].into_iter().chain(code).flatten();
        for part in found {
            if !self.stand_for(outer, part) {
                self.stands_for.push(part);
            }
        }
        let last = self.stands_for.len() as u32;
        let is_new = first < last;
        let standing = is_new.then(|| {
            self.standing.push(Standing {
                outer,
                parts: first..last,
                weight: 0,
                is_taken: false,
            })
        });
        self.of_places[id] = OfPlace {
            standing: standing.or(outer),
            instruction,
            function,
            machine,
            has_address: address.is_some(),
        };
    }

    // The place or one outwards of it.
    fn stand_for(&self, from: Option<StandingId>, part: PartId) -> bool {
        let mut from = from;
        while let Some(standing) = from.map(|id| &self.standing[id]) {
            let parts = standing.parts.start as usize..standing.parts.end as usize;
            if self.stands_for[parts].contains(&part) {
                return true;
            }
            from = standing.outer;
        }
        false
    }

    fn sum(&mut self, part: PartId) -> &mut OfPart {
        let sum = &mut self.sums[part];
        if !std::mem::replace(&mut sum.is_seen, true) {
            self.seen.push(part);
        }
        sum
    }

    pub fn take(&mut self, row: &TimedRow) {
        let Some(place) = row.place else {
            return;
        };
        let place = self.of_places[place];
        if let Some(asked) = self.function(place.function) {
            if let Some(line) = asked.part(Part::Line(row.line)) {
                let is_counted = self.stand_for(place.standing, line);
                let sum = self.sum(line);
                sum.self_weight += row.weight;
                sum.total += if is_counted { 0 } else { row.weight };
            }
            let is_elsewhere = place.has_address && place.machine != place.function;
            if let Some(elsewhere) = asked.elsewhere.filter(|_| is_elsewhere) {
                let sum = self.sum(elsewhere);
                sum.self_weight += row.weight;
                // What it calls from there is not asked for.
                sum.total += row.weight;
            }
        }
        if let Some(asked) = self.function(place.machine).filter(|_| place.has_address) {
            for part in [asked.code, place.instruction].into_iter().flatten() {
                self.sum(part).self_weight += row.weight;
            }
        }
        if let Some(standing) = place.standing {
            self.standing[standing].weight += row.weight;
        }
        let mut at = place.standing;
        while let Some(id) = at {
            let standing = &mut self.standing[id];
            if std::mem::replace(&mut standing.is_taken, true) {
                break;
            }
            self.taken.push(id);
            at = standing.outer;
        }
    }

    pub fn finish(&mut self, bucket: u32, sums: &mut Vec<PartSum>) {
        let mut taken = std::mem::take(&mut self.taken);
        // What is further in comes before what is outwards of it.
        taken.sort_unstable_by(|a, b| b.cmp(a));
        for id in taken.drain(..) {
            let standing = &mut self.standing[id];
            let weight = std::mem::take(&mut standing.weight);
            let (outer, parts) = (standing.outer, standing.parts.clone());
            standing.is_taken = false;
            if let Some(outer) = outer {
                self.standing[outer].weight += weight;
            }
            for place in parts {
                let part = self.stands_for[place as usize];
                self.sum(part).total += weight;
            }
        }
        self.taken = taken;
        for part in self.seen.drain(..) {
            let sum = std::mem::take(&mut self.sums[part]);
            if sum.self_weight > 0 || sum.total > 0 {
                sums.push(PartSum {
                    part,
                    bucket,
                    self_weight: sum.self_weight,
                    total: sum.total,
                });
            }
        }
    }
}
