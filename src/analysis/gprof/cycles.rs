//! The cycles in gprof's order (`cg_dfn.c`).
//!
//! The cycles are those of [`callgraph::Cycles`](crate::callgraph::Cycles), but that search cannot
//! be shared: gprof's text shows the order in which gprof's search visited the functions. The order
//! in which it links the members of a cycle is that in which their time is added up, the first of
//! them gives the cycle its number, and its topological numbers, one valid order of many, say in
//! which order time is handed to callers. petgraph's search promises none of these.

use super::GprofArc;

pub(super) struct Linked {
    // The members of each cycle, as gprof links them; cycles by the address of their heads.
    pub members: Vec<Vec<usize>>,
    // By function the topological number, callees first; members of one cycle share theirs.
    pub number: Vec<usize>,
}

struct Search {
    // The place of a function on the stack, from 0, while it is there.
    on_stack: Vec<Option<usize>>,
    stack: Vec<usize>,
    // Where on the stack each cycle begins, as far as it is known, or a function that is in none.
    segments: Vec<usize>,
    busy: Vec<bool>,
    // The topological number; 0 until it is assigned.
    number: Vec<usize>,
    // On the way to the head of a function's cycle; a head leads to itself.
    towards_head: Vec<usize>,
    next: Vec<Option<usize>>,
    // For a head, the last function that is linked to it.
    last: Vec<usize>,
    counter: usize,
}

impl Search {
    fn head(&mut self, mut function: usize) -> usize {
        while self.towards_head[function] != function {
            let beyond = self.towards_head[self.towards_head[function]];
            self.towards_head[function] = beyond;
            function = beyond;
        }
        function
    }

    // The function is on a path from itself: everything on the stack above it is in its cycle.
    fn close(&mut self, function: usize) {
        let head = self.head(function);
        let Some(top) = self.on_stack[function].or(self.on_stack[head]) else {
            return;
        };
        let above = self.segments.partition_point(|&start| start <= top);
        for at in above..self.segments.len() {
            let inner = self.stack[self.segments[at]];
            let last = self.last[head];
            self.next[last] = Some(inner);
            self.last[head] = self.last[inner];
            self.towards_head[inner] = head;
        }
        self.segments.truncate(above);
    }

    // Numbers a function that is done, with all of its cycle.
    fn leave(&mut self, function: usize) {
        if self.head(function) == function {
            self.counter += 1;
            let mut linked = Some(function);
            while let Some(member) = linked {
                self.number[member] = self.counter;
                linked = self.next[member];
            }
        }
        self.stack.pop();
        self.on_stack[function] = None;
        if self.segments.last() == Some(&self.stack.len()) {
            self.segments.pop();
        }
    }
}

// Depth first from each function by address. `callees` has by function the arcs from it, as indices
// of `arcs`; they are followed from the last to the first.
pub(super) fn find(callees: &[Vec<usize>], arcs: &[GprofArc]) -> Linked {
    let functions = callees.len();
    let mut search = Search {
        on_stack: vec![None; functions],
        stack: Vec::new(),
        segments: Vec::new(),
        busy: vec![false; functions],
        number: vec![0; functions],
        towards_head: (0..functions).collect(),
        next: vec![None; functions],
        last: (0..functions).collect(),
        counter: 0,
    };
    // Functions that are visited, each with how many of its callees are still to come.
    let mut visits: Vec<(usize, usize)> = Vec::new();
    let enter = |search: &mut Search, visits: &mut Vec<(usize, usize)>, function: usize| {
        search.busy[function] = true;
        search.on_stack[function] = Some(search.stack.len());
        search.segments.push(search.stack.len());
        search.stack.push(function);
        visits.push((function, callees[function].len()));
    };
    for start in 0..functions {
        if search.busy[start] {
            continue;
        }
        enter(&mut search, &mut visits, start);
        while let Some((function, left)) = visits.last_mut() {
            let function = *function;
            let Some(arc) = left.checked_sub(1) else {
                visits.pop();
                search.leave(function);
                continue;
            };
            *left = arc;
            let callee = arcs[callees[function][arc]].to;
            if !search.busy[callee] {
                enter(&mut search, &mut visits, callee);
            } else if search.number[callee] == 0 {
                search.close(callee);
            }
        }
    }
    let mut cycles = Vec::new();
    for head in 0..functions {
        if search.head(head) != head || search.next[head].is_none() {
            continue;
        }
        let mut members = vec![head];
        let mut last = head;
        while let Some(next) = search.next[last] {
            members.push(next);
            last = next;
        }
        cycles.push(members);
    }
    Linked {
        members: cycles,
        number: search.number,
    }
}
