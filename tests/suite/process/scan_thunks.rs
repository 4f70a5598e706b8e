//! Calls through pointers, and returns, that are made by calls and jumps of thunks.

use std::fs;
use std::process::Command;

use proftool::binary::Binary;
use proftool::scan::{self, Callee};

use crate::support::{directory, ran};

/// `f` makes a call through a pointer, `g` a jump, `h` a call.
const SOURCE: &str = "long (*volatile p)(long);\n\
    __attribute__((noinline)) long f(long n) { return p(n) + 1; }\n\
    long g(long n) { return p(n); }\nlong h(long n) { return f(n) + 2; }\n\
    int main(void) { return 0; }\n";

#[test]
fn calls_of_thunks_are_calls_through_pointers_and_returns() {
    let directory = directory("scan-thunks");
    fs::write(directory.join("it.c"), SOURCE).unwrap();
    let gcc = ["-fcf-protection=none", "-mindirect-branch=thunk"];
    let [extern_gcc, extern_returns] = [
        "-mindirect-branch=thunk-extern",
        "-mfunction-return=thunk-extern",
    ];
    let builds: [(&str, &[&str]); 6] = [
        ("gcc", &[]),
        ("gcc", &gcc),
        ("gcc", &[gcc[0], gcc[1], "-mfunction-return=thunk"]),
        // Those of the kernel's modules are not in the file.
        ("gcc", &["-c", gcc[0], extern_gcc, extern_returns]),
        ("clang", &["-mretpoline"]),
        (
            "clang",
            &["-c", "-mretpoline", "-mretpoline-external-thunk"],
        ),
    ];
    for (compiler, flags) in builds {
        let mut command = Command::new(compiler);
        command
            .current_dir(&directory)
            .args(["-O2", "it.c", "-o", "it"]);
        if ran(command.args(flags)).is_none() {
            continue;
        }
        let binary = Binary::open(&directory.join("it")).unwrap();
        let calls = scan::calls(&binary, None).unwrap();
        for (name, expected, callees) in [("f", (1, 0), 0), ("g", (0, 1), 0), ("h", (0, 0), 1)] {
            let is_it = |id: &_| {
                let found = binary.function_name(&calls.functions[*id].symbol);
                found.is_some_and(|found| found == name)
            };
            let id = calls.functions.ids().find(is_it).unwrap();
            let function = &calls.functions[id];
            let indirect = (function.indirect_calls, function.indirect_jumps);
            assert_eq!(indirect, expected, "{name}: {compiler} {flags:?}");
            let sites = calls.sites.iter().filter(|site| site.caller == id);
            let sites: Vec<Callee> = sites.map(|site| site.callee).collect();
            assert_eq!(
                sites.len(),
                callees,
                "{name}: {compiler} {flags:?}: {sites:?}"
            );
        }
    }
}
