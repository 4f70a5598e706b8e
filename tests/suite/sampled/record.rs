//! `proftool record`: its samples, with perf as a witness.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::record::{BURN, PROFTOOL, Room, can_record, is_root, perf, samples, stderr};
use crate::support::repeated::repeated;
use crate::support::{copy_program, skipped};

#[test]
fn perf_reads_the_same_samples_from_the_file() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let output = room.record(&["-e", "cpu-clock,page-faults", "--", "sh", "-c", BURN]);
        assert!(output.status.success(), "{}", stderr(&output));
        let file = room.path("perf.data");
        let count = samples(&file);
        let line = format!("proftool: {count} samples in perf.data (");
        assert!(stderr(&output).contains(&line), "{}", stderr(&output));
        assert!(count > 100, "{count} samples");
        let file = file.to_str().unwrap();
        let Some(stats) = perf(&["report", "--stats", "-i", file]) else {
            return;
        };
        let counted = |line: &str| -> usize {
            let after = line.split("SAMPLE events:").nth(1).unwrap();
            after.split_whitespace().next().unwrap().parse().unwrap()
        };
        let total = stats.lines().find(|line| line.contains("SAMPLE events:"));
        assert_eq!(counted(total.unwrap()), count, "{stats}");
        let script = perf(&["script", "-F", "comm,event,ip,sym", "-i", file]).unwrap();
        let heads = script.lines().filter(|line| line.starts_with("sh")).count();
        assert_eq!(heads, count);
        let events = perf(&["evlist", "-i", file]).unwrap();
        let user = if stderr(&output).contains("user space only") {
            ":u"
        } else {
            ""
        };
        assert_eq!(events, format!("cpu-clock{user}\npage-faults{user}\n"));
        let build_ids = perf(&["buildid-list", "-i", file]).unwrap();
        assert!(build_ids.contains("libc.so"), "{build_ids}");
        let header = perf(&["report", "--header-only", "-i", file]).unwrap();
        for feature in ["hostname", "os release", "arch", "nrcpus online", "cmdline"] {
            assert!(header.contains(&format!("# {feature} : ")), "{header}");
        }
        let complaints = Command::new("perf")
            .args(["report", "--stdio", "-i", file])
            .output();
        assert_eq!(stderr(&complaints.unwrap()), "");
    });
}

#[test]
fn without_privilege_user_space_is_recorded() {
    repeated(|| {
        if !is_root() || !can_record() {
            skipped("only root can give privileges up");
            return;
        }
        let room = Room::new();
        // The tested program may lie where nobody may go.
        let program = room.path("proftool");
        copy_program(PROFTOOL, &program);
        let output = Command::new(&program)
            .args(["record", "-e", "cpu-clock", "sh", "-c", BURN])
            .current_dir(&room.0)
            .gid(65534)
            .uid(65534)
            .output()
            .unwrap();
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
        let paranoid: i32 = paranoid.trim().parse().unwrap();
        let text = stderr(&output);
        if output.status.success() {
            assert!(samples(&room.path("perf.data")) > 50);
            let told = text.contains("recording user space only");
            assert_eq!(told, paranoid >= 2, "{text}");
        } else {
            assert!(paranoid > 2, "{text}");
            assert!(text.contains(&format!("perf_event_paranoid is {paranoid}")));
            assert!(text.contains("\nhint: "), "{text}");
        }
    });
}
