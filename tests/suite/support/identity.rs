//! Profiles in which functions share a name.

use std::path::Path;

use proftool::binary::Binary;
use proftool::profile::Profile;
use proftool::symbolize::{self, Options};

pub fn profile(program: &Path) -> Profile {
    let binary = Binary::open(program).unwrap();
    symbolize::programs(vec![binary], &Options::default()).unwrap()
}

/// Names of functions that call or contain themselves.
pub fn recursive(profile: &Profile) -> Vec<String> {
    let calls = profile.code.calls();
    let own = calls.iter().filter(|call| call.from == call.to);
    own.map(|call| profile.functions[call.from].name.clone())
        .collect()
}

pub fn json(args: &[&str], data: &Path) -> serde_json::Value {
    let mut command = crate::support::cli::proftool(args);
    let output = command.args(["--format", "json"]).arg(data).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {said}"))
}
