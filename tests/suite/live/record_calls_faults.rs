//! `record --counts` of threads that do not stop in time, and after the recording.

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{built, counted, graph};
use crate::support::record_calls_faults::loads;
use crate::support::record_calls_later::calls;
use crate::support::repeated::repeated;

#[test]
fn a_thread_that_does_not_stop_in_time_goes_on_later() {
    repeated(|| {
        // It waits in the kernel until its child ends, which has its memory. The first thread ends the
        // child when it has loaded the library.
        let text = r#"
        static int ends[2], ready[2];
        static void *waits(void *sum) {
            char byte = 0;
            if (!vfork()) {
                ssize_t done = write(ready[1], &byte, 1) + read(ends[0], &byte, 1);
                _exit(done != 2);
            }
            for (int i = 0; i < 1000; i++) ++*(int *)sum;
            return 0;
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            char byte = 0;
            int sum = 0, calls;
            if (argc < 2 || pipe(ends) || pipe(ready)) return 1;
            pthread_create(&thread, 0, waits, &sum);
            if (read(ready[0], &byte, 1) != 1) return 1;
            calls = load(argv[1]);
            if (write(ends[1], &byte, 1) != 1) return 1;
            pthread_join(thread, 0);
            return sum == 1000 ? calls + load(argv[1]) : 1;
        }"#;
        if let Some((room, output)) = loads(text, &[], 1) {
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(20), "{text}");
            let expected = "first.so: a thread of it does not stop: it waits in the kernel";
            assert!(text.contains(expected), "{text}");
            // The second time all threads stop.
            let graph = graph(&room, &[]);
            assert_eq!(calls(&graph, "plugin_run", "inside"), Some((10, true)));
        }
    });
}

#[test]
fn a_program_with_one_thread_goes_on_when_it_is_recorded_no_more() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let text = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            int status = 1;
            sleep(2);
            if (!fork()) _exit(5);
            wait(&status);
            return WEXITSTATUS(status) + 1;
        }"#;
        let Some(program) = built(&room, text, &[], "prog") else {
            return;
        };
        let output = counted(&room, &["-d", "0.5"], &[program.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    });
}
