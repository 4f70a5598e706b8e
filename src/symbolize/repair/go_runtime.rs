//! The functions of Go's runtime that are entered or left in other ways than by calls and returns.

use super::code::Code;
use super::function_exits::FunctionStart;

impl Code<'_> {
    /// Whether a goroutine or a thread of a Go program starts with this function.
    pub(super) fn starts_in_go(&self, place: FunctionStart) -> bool {
        // What runs in a goroutine seems to return to `goexit`, which did not call it.
        const STARTS: [&str; 3] = ["runtime.goexit", "runtime.mstart", "runtime.rt0_go"];
        let name = self.full_name(place);
        name.is_some_and(|name| STARTS.contains(&name.trim_end_matches(".abi0")))
    }

    /// Whether this function of Go's runtime is called on one stack and calls on another: on that
    /// of the thread to run C code or the scheduler, and on a goroutine's when C code calls back.
    pub(super) fn switches_stacks_in_go(&self, place: FunctionStart) -> bool {
        const SWITCHES: [&str; 6] = [
            "runtime.asmcgocall",
            "runtime.asmcgocall_no_g",
            "runtime.cgocallback",
            "runtime.mcall",
            "runtime.morestack",
            "runtime.systemstack",
        ];
        let name = self.full_name(place);
        name.is_some_and(|name| SWITCHES.contains(&name.trim_end_matches(".abi0")))
    }

    /// Whether the runtime of Go enters this function by changing the registers of what a signal
    /// has interrupted, as if it had been called there.
    pub(super) fn is_inserted_in_go(&self, place: FunctionStart) -> bool {
        const INSERTED: [&str; 4] = [
            "runtime.asyncPreempt",
            "runtime.sigpanic",
            "runtime.sigpanic0",
            "runtime.debugCallV2",
        ];
        let name = self.full_name(place);
        name.is_some_and(|name| INSERTED.contains(&name.trim_end_matches(".abi0")))
    }
}
