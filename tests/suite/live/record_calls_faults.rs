//! `record --counts` of threads that do not stop in time, and after the recording.

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{built, counted};
use crate::support::repeated::repeated;

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
