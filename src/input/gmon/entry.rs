//! Where a cycle begins that holds `main`.
//!
//! `mcount` leaves out calls that come from outside of the program's code, and `main` is called
//! from the C library. So a cycle with `main` in it often has no counted caller at all. Every run
//! begins with a call of `main`: that one is assumed.

use super::Symbol;

// The function `main`, if it is in a cycle of counted calls that no function outside of the cycle
// calls. `calls` are caller, callee and their number.
pub(super) fn of_cycle(symbols: &[Symbol], calls: &[(usize, usize, u64)]) -> Option<usize> {
    let is_main = |symbol: &Symbol| symbol.name.as_deref() == Some("main");
    let main = symbols.iter().position(is_main)?;
    let made: Vec<(usize, usize)> = calls
        .iter()
        .filter(|call| call.2 > 0 && call.0 != call.1)
        .map(|&(from, to, _)| (from, to))
        .collect();
    let callers = reached(
        symbols.len(),
        main,
        made.iter().map(|&(from, to)| (to, from)),
    );
    let callees = reached(symbols.len(), main, made.iter().copied());
    let mut callers = (0..).zip(&callers).filter(|&(at, &is)| is && at != main);
    let mut is_called = false;
    let all_inside = callers.all(|(at, _): (usize, _)| {
        is_called = true;
        callees[at]
    });
    (is_called && all_inside).then_some(main)
}

// `from` is reached, too.
fn reached(functions: usize, from: usize, ways: impl Iterator<Item = (usize, usize)>) -> Vec<bool> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); functions];
    for (from, to) in ways {
        next[from].push(to);
    }
    let mut reached = vec![false; functions];
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            waiting.append(&mut next[at]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Svma;

    #[test]
    fn main_is_entered_if_nothing_else_calls_its_cycle() {
        let symbols: Vec<Symbol> = ["main", "turn", "helper", "outer"]
            .map(|name| Symbol {
                start: Svma(0),
                name: Some(name.into()),
            })
            .into();
        let entry = |calls: &[(usize, usize, u64)]| of_cycle(&symbols, calls);
        assert_eq!(entry(&[(0, 1, 5), (1, 0, 4), (1, 2, 9)]), Some(0));
        // Calls by the cycle's own members only; calls of main by itself make no cycle.
        assert_eq!(entry(&[(0, 0, 3), (0, 1, 5)]), None);
        assert_eq!(entry(&[(0, 1, 5), (1, 0, 0)]), None);
        // The cycle has a caller, over any way.
        assert_eq!(entry(&[(0, 1, 5), (1, 0, 4), (3, 1, 1)]), None);
        assert_eq!(entry(&[(0, 1, 5), (1, 0, 4), (3, 2, 1), (2, 1, 1)]), None);
    }
}
