//! What would help where something could not be known.

/// What would make a caveat go away. How that is done is worded by the program that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// Record for longer, more often, or also while threads wait.
    RecordMore,
    /// Run the program for longer.
    RunLonger,
    /// Record as the user whom the program changes to.
    RecordAsItsUser,
    /// Start the recording before the program.
    RecordFromStart,
    /// Record again.
    RecordAgain,
    /// Record less at a time, or with larger buffers.
    AvoidLosses,
    /// Lift the kernel's limit for the time that samples take.
    LiftThrottle,
    /// Sample less often.
    SampleLess,
    /// Sample whole processors instead of threads.
    RecordProcessors,
    /// Sample by a counter of the processor instead of a clock.
    UseCounter,
    /// Record each occurrence of the event.
    RecordEveryOccurrence,
    /// Raise the kernel's limit of frames.
    RaiseFrameLimit,
    /// Use larger buffers, or get the right to see the kernel.
    RecordSwitchStacks,
    /// Use larger buffers.
    EnlargeBuffers,
    /// Record call stacks.
    RecordStacks,
    /// Record by frame pointers instead of copies.
    RecordByFramePointers,
    /// Copy more of each stack.
    CopyMore,
    /// Record by frame pointers, which lead to the stack that called.
    FollowOtherStack,
    /// Build with frame pointers, which lead to the stack that was interrupted.
    FollowSignalStack,
    /// Provide the files that ran, or build with unwind information.
    ProvideUnwindRules,
    /// Build with unwind information, and write it for assembly.
    WriteUnwindRules,
    /// Record copies of stacks, or build with frame pointers.
    CompleteStacks,
    /// Have runtimes keep frame pointers in the code that they generate.
    CompleteGeneratedStacks,
    /// Name the directory with the files.
    ProvideFiles,
    /// Link with a build ID.
    LinkBuildId,
    /// Record again, or provide the build that ran.
    ProvideBuild,
    /// Keep symbols and debug information.
    KeepSymbols,
    /// Have runtimes list the functions that they generate.
    NameGeneratedCode,
    /// Build and link so that functions do not share code.
    KeepFunctionsApart,
    /// Have generated code listed with times.
    WriteJitDump,
    /// Record with the clock of such lists.
    UseJitClock,
    /// Get the right to see the kernel's addresses.
    NameKernel,
    /// Get the right to record the kernel.
    SeeKernel,
    /// Count the calls of the program itself.
    CountProgram,
    /// Permit further source files.
    PermitSources,
    /// Record stacks instead of counts.
    SampleStacks,
    /// Compile so that calls are counted, or record stacks.
    CountOrSample,
    /// Use a build with symbols.
    UseUnstripped,
}
