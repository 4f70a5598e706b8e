//! Call sites that are kept until their file is settled.

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{built, graph};
use crate::support::record_calls_later::{HOST, calls, plugin};
use crate::support::repeated::repeated;

#[test]
fn call_sites_are_kept_for_the_next_start_and_count_the_same() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let (Some(library), Some(host)) =
            (plugin(&room, "first.so"), built(&room, HOST, &[], "host"))
        else {
            return;
        };
        let (library, host) = (library.to_str().unwrap(), host.to_str().unwrap());
        // A file that has just changed is not kept: it could change again.
        std::thread::sleep(std::time::Duration::from_secs(3));
        let kept = || {
            let files = std::fs::read_dir(room.path("cache/proftool"));
            let names = files
                .into_iter()
                .flatten()
                .map(|file| file.unwrap().file_name());
            let names = names.filter(|name| name.to_str().unwrap().starts_with("call-sites-"));
            names.count()
        };
        for (option, files) in [(Some("--no-cache"), 0), (None, 2), (None, 2)] {
            let options = ["--counts", "-e", "cpu-clock", "-o", "out.data"];
            let mut command = room.command(&options);
            command
                .env("XDG_CACHE_HOME", room.path("cache"))
                .args(option);
            let output = command
                .args(["--", host, library, library])
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
            assert_eq!(kept(), files, "{}", stderr(&output));
            let graph = graph(&room, &[]);
            // 10 + … + 14, three children with 1100, three threads, twenty times three.
            let run = calls(&graph, "plugin_run", "inside");
            assert_eq!(run, Some((60 + 3 * 1100 + 3 * 50 * 7 + 20 * 3, false)));
        }
    });
}
