//! The functions of the C library and the dynamic linker that are entered or left in other ways
//! than by calls and returns.

use super::Code;
use crate::base::Svma;
use crate::binary::Machine;
use crate::scan;
use crate::symbolize::repair::function_exits::{FunctionStart, To};
use crate::trace::ImageId;

// What in the C library calls `main`, and nothing else but what ends a program.
const STARTER: &str = "__libc_start_call_main";

impl Code<'_> {
    /// Whether this is the place in the C library that calls a program's `main`, by a pointer.
    pub(in super::super) fn starts_programs(&self, image: ImageId, at: u64) -> bool {
        let name = self.name(FunctionStart { image, start: at });
        name.is_some_and(|name| name == STARTER)
    }

    fn name(&self, place: FunctionStart) -> Option<String> {
        let name = self.full_name(place)?;
        Some(name.split(['@', '.']).next().unwrap_or_default().to_owned())
    }

    /// Whether this is the function of the dynamic linker that finds what is called for the first
    /// time.
    pub(in super::super) fn links_lazily(&self, place: FunctionStart) -> bool {
        let name = self.name(place);
        name.is_some_and(|name| name.starts_with("_dl_runtime_resolve"))
    }

    /// Whether a function is `main`, which only start-up code calls.
    pub(in super::super) fn is_main(&self, place: FunctionStart) -> bool {
        // A file that is not named as a library need not tell in another way that it is a program.
        // The name is at hand, what tells a library is read from its file.
        let is_named = self.name(place).is_some_and(|name| name == "main");
        let binary = self.binary(place.image).filter(|_| is_named);
        binary.is_some_and(|binary| binary.needed().soname.is_none())
    }

    /// Whether a program or a thread starts with this function of the C library, as far as frame
    /// pointers can show.
    pub(in super::super) fn starts_tasks(&self, place: FunctionStart) -> bool {
        const TASKS: [&str; 7] = [
            STARTER,
            "__libc_start_main",
            "__libc_start_main_impl",
            "_start",
            "start_thread",
            "__clone",
            "__clone3",
        ];
        self.starts.get(&place, || {
            let name = self.name(place);
            name.is_some_and(|name| TASKS.contains(&&*name)) || self.starts_in_go(place)
        })
    }

    /// Whether a call through a pointer returns to this stated address, and what it returns is the
    /// status with which the program or the thread ends, as of start-up code of a C library:
    /// `exit(main(…))`.
    pub(in super::super) fn ends_a_task(&self, image: ImageId, at: u64) -> bool {
        // Known on x86-64 only. musl has neither unwind information nor, as a rule, names for this
        // code.
        const CALL: u64 = 5;
        const ENDS: [&str; 4] = ["exit", "_exit", "pthread_exit", "__pthread_exit"];
        let binary = self.binary(image);
        let binary = binary.filter(|binary| binary.machine() == Some(Machine::X86_64));
        let Some(bytes) = binary.and_then(|binary| binary.bytes_at(Svma(at.checked_sub(2)?)))
        else {
            return false;
        };
        let [first, second, after @ ..]: [u8; 6] = bytes;
        // mov %eax,%edi; mov %rax,%rdi; movslq %eax,%rdi; each before a call.
        let moved: u64 = match after {
            [0x89, 0xc7, 0xe8, _] => 2,
            [0x48, 0x89, 0xc7, 0xe8] | [0x48, 0x63, 0xf8, 0xe8] => 3,
            _ => return false,
        };
        // call *%rax; others go through memory.
        let is_by_register = first == 0xff && second & 0xf8 == 0xd0;
        let is_by_pointer = is_by_register
            || matches!(
                self.likely_call_before(image, at),
                Some((To::Unknown, None))
            );
        let behind = at.wrapping_add(moved).wrapping_add(CALL);
        let Some((To::Function(end), None)) = self.likely_call_before(image, behind) else {
            return false;
        };
        is_by_pointer
            && end.image == image
            && (self.name(end)).is_some_and(|name| ENDS.contains(&name.as_str()))
    }

    /// Whether a thread may start with this function, by its code, where the C library has no
    /// names: it is called through pointers only, and never returns.
    pub(in super::super) fn may_start_tasks(&self, place: FunctionStart) -> bool {
        self.task_starts.get(&place, || {
            // What calls it is asked last: that takes all code of the file.
            self.never_returns(place) && !self.is_exported(place) && !self.may_be_called(place)
        })
    }

    fn may_be_called(&self, place: FunctionStart) -> bool {
        let callers = self.callers(place.image);
        callers.is_none_or(|callers| callers.of_function(place.start).next().is_some())
    }

    fn is_exported(&self, place: FunctionStart) -> bool {
        let exports = self.exports(place.image);
        exports.is_some_and(|exports| exports.addresses().any(|at| at.0 == place.start))
    }

    fn never_returns(&self, place: FunctionStart) -> bool {
        let bounds = self.binary(place.image).zip(self.bounds(place));
        bounds.is_some_and(|(binary, (from, to))| scan::never_returns(binary, Svma(from), Svma(to)))
    }

    /// Whether the code at this stated address does nothing but return from a signal. What is
    /// inside of a function does more than that, and its bytes need not be read.
    pub(in super::super) fn returns_from_signal(&self, image: ImageId, at: u64) -> bool {
        self.binary(image).is_some_and(|binary| {
            let function = binary.function_at(Svma(at));
            let is_inside = function.is_some_and(|it| it.start.0 < at && it.has_stated_end());
            !is_inside && binary.returns_from_signal(Svma(at))
        })
    }
}
