//! The inside of one cycle, and the time that is followed through it.

use super::super::attribution::Portion;
use super::Rule;
use crate::callgraph::ArcId;

// Members are known by their places in the cycle. What a walk visits most often lies closest
// together: large cycles do not fit into a processor's caches.
#[derive(Default)]
pub(super) struct Inside {
    members: Vec<Member>,
    // For each member where its arcs begin; one more behind the last.
    first_arc: Vec<u32>,
    // Of each arc the callee, and the part of its callee that it stands for.
    to: Vec<u32>,
    ratio: Vec<f64>,
    id: Vec<ArcId>,
}

#[derive(Clone, Copy)]
struct Member {
    self_weight: f64,
    // With what comes from callees outside.
    total: f64,
    // In a walk: what the arcs from the level before add up to in ratios.
    ratios: f64,
    // In a walk: the member's part of the time.
    part: f64,
}

impl Inside {
    // Arcs to members: their places, ids and ratios.
    pub fn push(&mut self, portion: Portion, arcs: impl Iterator<Item = (u32, ArcId, f64)>) {
        self.members.push(Member {
            self_weight: portion.self_weight,
            total: portion.total(),
            ratios: 0.0,
            part: 0.0,
        });
        self.first_arc.push(self.to.len() as u32);
        for (to, id, ratio) in arcs {
            self.to.push(to);
            self.id.push(id);
            self.ratio.push(ratio);
        }
    }
}

pub(super) struct Walks {
    inside: Inside,
    rule: Rule,
    // By member: the distance from the entry, counted on from the walk before, so that those of
    // older walks are lower.
    level: Vec<u32>,
    // The level that no walk so far has reached.
    next_level: u32,
    // Of the last walk: the members by distance, and the arcs that lead to the next level, those of
    // one member together; for each member where they begin.
    order: Vec<u32>,
    down: Vec<u32>,
    first_down: Vec<usize>,
    // What came over each arc in all walks.
    over: Vec<Portion>,
}

impl Walks {
    pub fn through(mut inside: Inside, rule: Rule) -> Walks {
        inside.first_arc.push(inside.to.len() as u32);
        Walks {
            rule,
            level: vec![0; inside.members.len()],
            next_level: 1,
            order: Vec::new(),
            down: Vec::new(),
            first_down: Vec::new(),
            over: vec![Portion::default(); inside.to.len()],
            inside,
        }
    }

    // Follows `part` of the time of the cycle from one member; `has` is called with each member and
    // its time.
    pub fn follow(&mut self, entry: u32, part: f64, mut has: impl FnMut(u32, f64)) {
        self.find_levels(entry);
        let Inside {
            members, to, ratio, ..
        } = &mut self.inside;
        let mut end = self.down.len();
        for (&member, &start) in self.order.iter().zip(&self.first_down).rev() {
            let mut total = part * members[member as usize].total;
            for &arc in &self.down[start..end] {
                let callee = &members[to[arc as usize] as usize];
                let share = self.rule.share(ratio[arc as usize], callee.ratios);
                let time = share * callee.part;
                let own = share * part * callee.self_weight;
                total += time;
                self.over[arc as usize] += Portion {
                    self_weight: own,
                    children: (time - own).max(0.0),
                };
            }
            end = start;
            members[member as usize].part = total;
            has(member, total);
        }
    }

    // Finds the distances from a member, and the arcs that lead away from it. An arc of a member
    // leads to a level that is known by then: it has been reached, or is reached now.
    fn find_levels(&mut self, entry: u32) {
        let Inside {
            members,
            first_arc,
            to,
            ratio,
            ..
        } = &mut self.inside;
        // Levels are never cleared between entries: each search counts on from the last, so
        // whatever is below `least` is from an earlier one. Clearing would cost all members for
        // each entry.
        if self.next_level > u32::MAX / 2 {
            self.level.fill(0);
            self.next_level = 1;
        }
        let least = self.next_level;
        self.order.clear();
        self.down.clear();
        self.first_down.clear();
        self.order.push(entry);
        self.level[entry as usize] = least;
        let mut below = least;
        let mut next = 0;
        while let Some(&member) = self.order.get(next) {
            next += 1;
            self.first_down.push(self.down.len());
            below = self.level[member as usize] + 1;
            let (first, end) = (first_arc[member as usize], first_arc[member as usize + 1]);
            for (arc, &callee) in (first..end).zip(&to[first as usize..end as usize]) {
                let level = &mut self.level[callee as usize];
                if *level < least {
                    *level = below;
                    members[callee as usize].ratios = 0.0;
                    self.order.push(callee);
                }
                if *level == below {
                    members[callee as usize].ratios += ratio[arc as usize];
                    self.down.push(arc);
                }
            }
        }
        self.next_level = below + 1;
    }

    // What came over each arc of the cycle, and the place of the member that it leads to.
    pub fn over(&self) -> impl Iterator<Item = (ArcId, u32, Portion)> {
        let arcs = self.inside.id.iter().zip(&self.inside.to).zip(&self.over);
        arcs.map(|((&id, &to), &over)| (id, to, over))
    }
}
