//! How reliable the stacks of a recording are.

/// The numbers of samples with stacks in user space, by what the code says of them. They are of the
/// whole recording, whatever is selected of it.
///
/// Each call on a stack is checked against the code: the instruction before the return address
/// calls the function that is next on the stack, or it does not, or only a run can tell. A sample
/// counts once, by the worst finding about its stack. So all fields but `rooted` and `exact_leaf`
/// add up to `stacks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Samples with a user-space stack.
    pub stacks: u64,
    /// Those whose outermost function is one that nothing calls: where a program or a thread
    /// starts.
    pub rooted: u64,
    /// Those where unwinding rules have found the caller of the innermost function in user space.
    pub exact_leaf: u64,
    /// Those with one function only.
    pub alone: u64,
    /// Those with calls that the code has, and no other.
    pub verified: u64,
    /// Those with missing frames that were restored: every way through the code passes through
    /// them.
    pub lacking: u64,
    /// Those with a call through a pointer, or in code that cannot be read, as that of a JIT
    /// compiler.
    pub unchecked: u64,
    /// Whether they were found by following frame pointers, at least in part.
    pub by_frame_pointers: bool,
    /// Those with missing frames that were not restored, because the code allows several.
    pub ambiguous: u64,
    /// Those with a call that is not in the code, and that nothing explains.
    pub contradicted: u64,
    /// The different calls on them: places that call, each with what was next on the stack.
    pub calls: CheckedCalls,
}

/// Numbers of different calls on stacks, by what the code says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedCalls {
    /// The code has them.
    pub verified: u64,
    /// They go through a pointer, or their code cannot be read.
    pub unchecked: u64,
    /// The code has others, and the frames missing in between were restored.
    pub lacking: u64,
    /// The code has others, and several explanations of what is missing.
    pub ambiguous: u64,
    /// The code has others, or none there, and no way.
    pub contradicted: u64,
}

impl Quality {
    /// Adds the samples of another recording of the program. How many of its calls are the same is
    /// not known: the larger number stays.
    pub(super) fn add(&mut self, other: &Quality) {
        self.stacks += other.stacks;
        self.rooted += other.rooted;
        self.exact_leaf += other.exact_leaf;
        self.alone += other.alone;
        self.verified += other.verified;
        self.lacking += other.lacking;
        self.unchecked += other.unchecked;
        self.by_frame_pointers |= other.by_frame_pointers;
        self.ambiguous += other.ambiguous;
        self.contradicted += other.contradicted;
        let (calls, others) = (&mut self.calls, &other.calls);
        calls.verified = calls.verified.max(others.verified);
        calls.unchecked = calls.unchecked.max(others.unchecked);
        calls.lacking = calls.lacking.max(others.lacking);
        calls.ambiguous = calls.ambiguous.max(others.ambiguous);
        calls.contradicted = calls.contradicted.max(others.contradicted);
    }
}
