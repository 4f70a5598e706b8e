//! Calls for `llvm-bolt`, in the text format of its profiles (fdata).
//!
//! ```text
//!   1 main 1f 1 lex/1 0 0 4711       a call in main, 0x1f bytes behind its start, of the local
//!                                    function lex, was made 4711 times
//! ```
//!
//! Each line is a branch: symbol and offset where it is, symbol and offset where it leads, how
//! often it was mispredicted, how often it was taken. BOLT gets such lines from the last branches
//! that a processor remembers (LBR). Here they are counted calls; where calls were not counted,
//! calls on stacks, with the weight of the samples in place of a number of calls. Branches inside
//! of functions are not known, so the file is for the order of functions, not for that of basic
//! blocks.

use std::io::{self, Write};

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch<'a> {
    /// The linkage name of the caller; of a local function with a slash and its number among those
    /// of its name.
    pub caller: &'a str,
    /// The distance of the instruction from the caller's start.
    pub offset: u64,
    /// The callee.
    pub callee: &'a str,
    /// How often, or the weight of its samples.
    pub count: u64,
}

/// Writes the calls. Names that the format cannot hold are left out: it separates by spaces.
pub fn write(out: &mut dyn Write, branches: &[Branch]) -> io::Result<()> {
    let fits = |name: &str| !name.contains(|c: char| c.is_whitespace() || c.is_control());
    for branch in branches {
        if !fits(branch.caller) || !fits(branch.callee) {
            continue;
        }
        let Branch {
            caller,
            offset,
            callee,
            count,
        } = branch;
        writeln!(out, "1 {caller} {offset:x} 1 {callee} 0 0 {count}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_branch_to_the_start_of_its_callee() {
        let branch = |caller| Branch {
            caller,
            offset: 0x1f,
            callee: "lex/1",
            count: 4711,
        };
        let mut out = Vec::new();
        write(&mut out, &[branch("main"), branch("operator new")]).unwrap();
        assert_eq!(out, b"1 main 1f 1 lex/1 0 0 4711\n");
    }
}
