//! `record --counts-limit` on the command line.

use crate::support::record::{Room, stderr};

#[test]
fn a_limit_is_a_percentage_or_none() {
    let room = Room::new();
    for limit in ["0", "-3", "much", "nan"] {
        let limit = format!("--counts-limit={limit}");
        let output = room.record(&["--counts", &limit, "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    let output = room.record(&["--counts-limit", "30", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--counts"), "{}", stderr(&output));
}
