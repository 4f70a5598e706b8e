//! A limit of the file that leaves no room.

use crate::support::record::{Room, can_record, samples, stderr};
use crate::support::record_bounds::WORK;

#[test]
fn a_limit_without_room_for_samples_is_reported() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let output = room.record(&["--max-size", "1K", "--", "sh", "-c", WORK]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("--max-size leaves no room for samples"),
        "{said}"
    );
    assert_eq!(samples(&room.path("perf.data")), 0);
}
