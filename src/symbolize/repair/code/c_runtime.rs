//! The functions of the C library and the dynamic linker that are entered or left in other ways
//! than by calls and returns.

use super::CodeReader;
use crate::base::Svma;
use crate::scan;
use crate::symbolize::repair::function_exits::FunctionStart;
use crate::trace::ImageId;

/// What in the C library calls `main`, and nothing else but what ends a program.
const STARTER: &str = "__libc_start_call_main";

impl CodeReader<'_> {
    /// Whether this is the place in the C library that calls a program's `main`, by a pointer.
    pub(in crate::symbolize::repair) fn starts_programs(&self, image: ImageId, at: u64) -> bool {
        let name = self.name(FunctionStart { image, start: at });
        name.is_some_and(|name| name == STARTER)
    }

    /// The linkage name of a function, without a version or suffix.
    fn name(&self, place: FunctionStart) -> Option<String> {
        let name = self.full_name(place)?;
        Some(name.split(['@', '.']).next().unwrap_or_default().to_owned())
    }

    /// Whether this is the function of the dynamic linker that finds what is called for the first
    /// time.
    pub(in crate::symbolize::repair) fn links_lazily(&self, place: FunctionStart) -> bool {
        let name = self.name(place);
        name.is_some_and(|name| name.starts_with("_dl_runtime_resolve"))
    }

    /// Whether a function is `main`, which only start-up code calls. A file that is not named as a library need not
    /// tell in another way that it is a program.
    pub(in crate::symbolize::repair) fn is_main(&self, place: FunctionStart) -> bool {
        // The name is at hand, what tells a library is read from its file.
        let is_named = self.name(place).is_some_and(|name| name == "main");
        let binary = self.binary(place.image).filter(|_| is_named);
        binary.is_some_and(|binary| binary.needed().soname.is_none())
    }

    /// Whether a program or a thread starts with this function of the C library, as far as frame
    /// pointers can show.
    pub(in crate::symbolize::repair) fn starts_tasks(&mut self, place: FunctionStart) -> bool {
        const TASKS: [&str; 6] = [
            STARTER,
            "__libc_start_main",
            "_start",
            "start_thread",
            "__clone",
            "__clone3",
        ];
        if let Some(&known) = self.starts.get(&place) {
            return known;
        }
        let name = self.name(place);
        let starts =
            name.is_some_and(|name| TASKS.contains(&name.as_str())) || self.starts_in_go(place);
        self.starts.insert(place, starts);
        starts
    }

    /// Whether a thread may start with this function, by its code, where the C library has no names: it is
    /// called through pointers only, and never returns.
    pub(in crate::symbolize::repair) fn may_start_tasks(&mut self, place: FunctionStart) -> bool {
        if let Some(&known) = self.task_starts.get(&place) {
            return known;
        }
        // Reading the code takes longest.
        let may_start =
            !self.may_be_called(place) && !self.is_exported(place) && self.never_returns(place);
        self.task_starts.insert(place, may_start);
        may_start
    }

    fn may_be_called(&mut self, place: FunctionStart) -> bool {
        let callers = self.callers(place.image);
        callers.is_none_or(|callers| callers.of_function(place.start).next().is_some())
    }

    fn is_exported(&self, place: FunctionStart) -> bool {
        let file = self.files.iter().position(|&image| image == place.image);
        file.is_some_and(|file| {
            let exports = self.definitions.exports(file);
            exports.addresses().any(|at| at.0 == place.start)
        })
    }

    fn never_returns(&self, place: FunctionStart) -> bool {
        let bounds = self.binary(place.image).zip(self.bounds(place));
        bounds.is_some_and(|(binary, (from, to))| scan::never_returns(binary, Svma(from), Svma(to)))
    }

    /// Whether the code at this stated address does nothing but return from a signal, by the system
    /// call of that name. Debuggers know it in the same way.
    pub(in crate::symbolize::repair) fn returns_from_signal(
        &self,
        image: ImageId,
        at: u64,
    ) -> bool {
        const CODE: [&[u8]; 6] = [
            // x86-64: mov $15,%rax or mov $15,%eax; syscall
            &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
            &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
            // x86: mov $173,%eax; int $0x80, and the older pop %eax; mov $119,%eax; int $0x80
            &[0xb8, 0xad, 0, 0, 0, 0xcd, 0x80],
            &[0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80],
            // AArch64: mov x8,#139; svc #0
            &[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4],
            // RISC-V: li a7,139; ecall
            &[0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0],
        ];
        let bytes = self
            .binary(image)
            .and_then(|binary| binary.bytes_at(Svma(at)));
        bytes.is_some_and(|bytes: [u8; 9]| CODE.iter().any(|code| bytes.starts_with(code)))
    }
}
