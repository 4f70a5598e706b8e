//! What `proftool record` advises to those who lack a right: followed to the letter, it helps.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::record::{PROFTOOL, Room, can_record, is_root, stderr};
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;
use crate::support::{copy_program, skipped};

/// Half of its time in the clock of the vdso, half in system calls.
const CALLS: &str = "\
#include <sys/stat.h>
#include <time.h>
int main(void) {
    struct timespec time;
    struct stat found;
    while (clock() < CLOCKS_PER_SEC / 4) {
        for (int i = 0; i < 2000; i++) clock_gettime(CLOCK_MONOTONIC, &time);
        for (int i = 0; i < 200; i++) stat(\"/proc/self/stat\", &found);
    }
    return 0;
}
";

/// The group whose members may run the program.
const MEMBERS: u32 = 54321;

fn setting(name: &str) -> Option<i32> {
    let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
    text.trim().parse().ok()
}

#[test]
fn a_program_with_capabilities_sees_the_kernel_once_its_advice_is_followed() {
    repeated(|| {
        if !can_record() || !is_root() {
            return skipped("needs root, to give capabilities to a program");
        }
        let hidden = setting("kptr_restrict").is_none_or(|level| level > 1);
        if hidden || setting("perf_event_paranoid").is_none_or(|level| level < 2) {
            return skipped("needs perf_event_paranoid=2 and kptr_restrict below 2");
        }
        let room = Room::new();
        let Some(program) = build(&room, "calls", CALLS, &["-O2"]) else {
            return;
        };
        let proftool = room.path("proftool");
        copy_program(PROFTOOL, &proftool);
        let shell = |command: &str| Command::new("sh").args(["-c", command]).output().unwrap();
        let given = shell(&format!("setcap cap_perfmon=ep {}", proftool.display()));
        if !given.status.success() {
            return skipped(&format!("setcap: {}", stderr(&given)));
        }
        let nobody = |args: &[&str]| -> Output {
            let mut command = Command::new(&proftool);
            command.args(args).current_dir(&room.0);
            command.uid(65534).gid(MEMBERS).output().unwrap()
        };
        let record = || {
            let output = nobody(&["record", "-g", "fp", program.to_str().unwrap()]);
            assert!(output.status.success(), "{}", stderr(&output));
            stderr(&output)
        };
        let flat = || {
            let output = nobody(&["flat", "--limit", "0", "--min", "0"]);
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
        };
        let told = record();
        let advice = told.split("as root: ").nth(1).unwrap_or_default();
        let commands = advice.split(" (then").next().unwrap();
        let it = proftool.display();
        let expected = format!(
            "groupadd -f perf_users && chgrp perf_users {it} && chmod o-rwx {it} && \
             setcap cap_perfmon,cap_syslog=ep {it}"
        );
        assert_eq!(commands, expected, "{told}");
        // The machine keeps its groups: a number is enough.
        let commands = commands.replace("groupadd -f perf_users && ", "");
        let commands = commands.replace("chgrp perf_users", &format!("chgrp {MEMBERS}"));
        assert!(
            flat().contains("kernel samples without names"),
            "{}",
            flat()
        );
        // The vdso is memory of the reader, which is not to be looked at from outside now.
        assert!(flat().contains("clock_gettime"), "{}", flat());

        let given = shell(&commands);
        assert!(given.status.success(), "{}", stderr(&given));
        let told = record();
        assert!(!told.contains("hides its addresses"), "{told}");
        let rows = flat();
        assert!(!rows.contains("without names"), "{rows}");
        assert!(
            rows.contains("clock_gettime") && rows.contains("[vdso]"),
            "{rows}"
        );
        assert!(
            rows.contains("do_syscall_64") || !cfg!(target_arch = "x86_64"),
            "{rows}"
        );
    });
}
