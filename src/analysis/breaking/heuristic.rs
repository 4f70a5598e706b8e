//! Rows of large cycles: a good one, and a better one.

use std::collections::BinaryHeap;

use super::Inside;
use super::sequence::{Place, Sequence};
use crate::base::Lists;

// How many neighbours and members may be passed while a row is improved.
const WORK: usize = 1 << 27;

#[derive(Clone, Copy)]
pub(super) struct Neighbour {
    weight: u64,
    member: u32,
    is_callee: bool,
}

// Of each member those that it calls and those that call it.
pub(super) fn neighbours(inside: &Inside) -> Lists<Neighbour> {
    let both_ways = inside.arcs.iter().flat_map(|&(from, to, weight, _)| {
        [(from, to, true), (to, from, false)].map(|(of, member, is_callee)| {
            let neighbour = Neighbour {
                weight,
                member,
                is_callee,
            };
            (of as usize, neighbour)
        })
    });
    Lists::new(inside.members, both_ways)
}

// A row by the rule of Eades, Lin and Smyth.
pub(super) fn good_row(inside: &Inside, neighbours: &Lists<Neighbour>) -> Vec<u32> {
    let scale = scale(inside);
    let mut members = vec![Member::default(); inside.members];
    for &(from, to, weight, _) in &inside.arcs {
        members[from as usize].add(true, weight >> scale);
        members[to as usize].add(false, weight >> scale);
    }
    // The largest turn is next. A turn that becomes worse stays in the row until it is next, and is
    // put back then: most change often before they are.
    for (member, number) in members.iter_mut().zip(0..) {
        member.waits_with = member.turn(number);
    }
    let mut waiting: BinaryHeap<Turn> = members.iter().map(|member| member.waits_with).collect();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(turn) = waiting.pop() {
        let number = turn.member();
        let member = &mut members[number as usize];
        if turn != member.waits_with {
            continue;
        }
        let now = member.turn(number);
        if turn != now {
            member.waits_with = now;
            waiting.push(now);
            continue;
        }
        member.waits_with = Turn::PLACED;
        if turn.is_sink() {
            back.push(number);
        } else {
            front.push(number);
        }
        for neighbour in neighbours.of(number as usize) {
            let other = &mut members[neighbour.member as usize];
            if other.waits_with != Turn::PLACED {
                other.remove(!neighbour.is_callee, neighbour.weight >> scale);
                let now = other.turn(neighbour.member);
                if now > other.waits_with {
                    other.waits_with = now;
                    waiting.push(now);
                }
            }
        }
    }
    front.extend(back.into_iter().rev());
    front
}

// How many low bits of all weights are left out so that their sum has 62 bits: the row is only a
// good one in any case.
fn scale(inside: &Inside) -> u32 {
    let sum: u128 = inside.arcs.iter().map(|arc| u128::from(arc.2)).sum();
    (u128::BITS - sum.leading_zeros()).saturating_sub(62)
}

// The arcs of a member that are still to be decided, and its turn.
#[derive(Clone, Copy, Default)]
struct Member {
    // The largest turn that it waits with; smaller ones are passed over.
    waits_with: Turn,
    // What the arcs to callees weigh more than those from callers.
    surplus: i64,
    callees: u32,
    callers: u32,
}

impl Member {
    fn add(&mut self, outwards: bool, weight: u64) {
        if outwards {
            self.surplus += weight.cast_signed();
            self.callees += 1;
        } else {
            self.surplus -= weight.cast_signed();
            self.callers += 1;
        }
    }

    fn remove(&mut self, outwards: bool, weight: u64) {
        if outwards {
            self.surplus -= weight.cast_signed();
            self.callees -= 1;
        } else {
            self.surplus += weight.cast_signed();
            self.callers -= 1;
        }
    }

    fn turn(&self, member: u32) -> Turn {
        match (self.callees, self.callers) {
            (0, _) => Turn::new(Turn::SINK, 0, member),
            (_, 0) => Turn::new(Turn::SOURCE, 0, member),
            (to, from) => Turn::new(self.surplus, i64::from(to) - i64::from(from), member),
        }
    }
}

// What member is next, and where it goes: sinks before sources before all others; of these those
// with the largest surplus of weight, then of arcs; then the first. One number, as rows of these
// are compared more than anything else: the surplus in the upper half, then that of arcs, then the
// member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(i128);

impl Turn {
    const SINK: i64 = i64::MAX;
    const SOURCE: i64 = i64::MAX - 1;
    const PLACED: Turn = Turn(i128::MIN);

    fn new(surplus: i64, of_arcs: i64, member: u32) -> Turn {
        let of_arcs = of_arcs.clamp(i32::MIN.into(), i32::MAX.into()) - i64::from(i32::MIN);
        Turn(i128::from(surplus) << 64 | i128::from(of_arcs) << 32 | i128::from(!member))
    }

    fn member(self) -> u32 {
        !(self.0 as u32)
    }

    fn is_sink(self) -> bool {
        self.0 >> 64 == i128::from(Turn::SINK)
    }
}

// Each member is moved to where it is best, until none moves.
pub(super) fn improved(neighbours: &Lists<Neighbour>, row: &[u32]) -> Vec<u32> {
    let mut sequence = Sequence::new(row);
    let mut around = Vec::new();
    let mut work = 0usize;
    loop {
        let mut moved = false;
        for member in 0..row.len() as u32 {
            let neighbours = neighbours.of(member as usize);
            work += neighbours.len() + 1;
            if work > WORK {
                return sequence.row().collect();
            }
            if let Some(to) = best_place(neighbours, &sequence, member, &mut around) {
                moved = true;
                work += sequence.shift(member, to);
            }
        }
        if !moved {
            return sequence.row().collect();
        }
    }
}

// Where among its neighbours a member makes the arcs that lead backwards cheapest; `None` unless
// some place is better than where it is. `around` is for the places of the neighbours.
fn best_place(
    neighbours: &[Neighbour],
    sequence: &Sequence,
    member: u32,
    around: &mut Vec<(Place, bool, u64)>,
) -> Option<Place> {
    let at = sequence.place(member);
    around.clear();
    around.extend(neighbours.iter().map(|neighbour| {
        let place = sequence.place(neighbour.member);
        (place, neighbour.is_callee, neighbour.weight)
    }));
    around.sort_unstable();
    // What it costs to stand before a place, less what it costs at `at`. A callee that is passed
    // on the way to the back leads backwards from then on; a caller no longer does.
    let mut best = ((0i128, 0i64), None);
    let (before, behind) = around.split_at(around.partition_point(|&(place, ..)| place < at));
    let mut pass = |arcs: &[(Place, bool, u64)], forwards: bool, cost: &mut (i128, i64)| {
        for &(_, is_callee, weight) in arcs {
            let sign = if is_callee == forwards { 1 } else { -1 };
            cost.0 += i128::from(sign) * i128::from(weight);
            cost.1 += sign;
        }
        if let Some(&(place, ..)) = arcs.first()
            && *cost < best.0
        {
            best = (*cost, Some(place));
        }
    };
    // A neighbour that calls and is called is passed with both arcs at once.
    let mut cost = (0, 0);
    for arcs in behind.chunk_by(|a, b| a.0 == b.0) {
        pass(arcs, true, &mut cost);
    }
    cost = (0, 0);
    for arcs in before.chunk_by(|a, b| a.0 == b.0).rev() {
        pass(arcs, false, &mut cost);
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callgraph::ArcId;

    // A member calls all others; the sum of these weights does not fit the numbers that turns are
    // made of.
    #[test]
    fn weights_of_63_bits_do_not_overflow() {
        let members = 20u32;
        let calls = (0..members - 1).map(|to| (members - 1, to, u64::MAX / 2));
        let back = (0..members - 1).map(|from| (from, members - 1, 1));
        let arcs = calls.chain(back).enumerate();
        let inside = Inside {
            members: members as usize,
            arcs: arcs
                .map(|(id, (from, to, weight))| (from, to, weight, ArcId::new(id)))
                .collect(),
        };
        let neighbours = neighbours(&inside);
        let row = good_row(&inside, &neighbours);
        assert_eq!(row[0], members - 1);
        assert_eq!(improved(&neighbours, &row), row);
    }
}
