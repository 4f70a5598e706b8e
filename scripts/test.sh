#!/usr/bin/env bash
# test.sh [--full] [ARG…]: all checks that a change must pass. ARGs go to the tests (a part of their names).
# --full tries all cases of property tests; without it a quarter of them is tried.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/phases.sh

# Numbers of cases are stated for 256, the default of proptest.
export PROPTEST_CASES=64
if [ "${1:-}" = --full ]; then
  PROPTEST_CASES=256
  shift
fi
# Many tests wait for a program that they watch, so there are more at a time than processors. None
# hangs: a test ends the run after ten minutes, and what no test watches ends here.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) * 3))}"
lists="${CARGO_TARGET_DIR:-target}/tmp"
output=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$output"' EXIT

# All of it is of one profile, so that each package is built once. Optimized, our own code would run the suite
# in little less time, and take four times as long to build.
build() {
  cargo test --locked --quiet --lib --bins --test suite --no-run &&
    # The suite shows recordings on a terminal with it; of other examples only the types are checked.
    cargo build --locked --quiet --example top_replay
}

# A check whose warnings are errors.
check() {
  local said
  said=$(cargo check --locked --quiet "$@" 2>&1) && [ -z "$said" ] || { echo "$said" && return 1; }
}

lints() {
  cargo clippy --locked --quiet --all-targets -- -D warnings || return
  # Of any two features of the library one is there without the other: a use of a room that another
  # feature builds fails here.
  local features
  for features in export,record import,record,xz parquet,import,xz; do
    check --no-default-features --features "$features" --lib || return
  done
  check --no-default-features --features cli --bins
}

documentation() {
  RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --document-private-items &&
    cargo test --locked --quiet --doc
}

# How long a test takes, libtest says to a toolchain only that may use what is not stable.
tests() {
  rm -f "$lists/skipped.txt" "$lists/repeated.txt"
  timeout --foreground 3600 cargo test --locked --no-fail-fast --lib --bins --test suite \
    --config "target.'cfg(unix)'.runner=['env','RUSTC_BOOTSTRAP=1']" \
    -- -Z unstable-options --report-time "$@" 2>&1 | tee "$output/tests"
}

# in_background NAME…: phases at low priority, as the tests often wait; what they print comes at their end.
in_background() {
  local name
  renice -n 19 "$BASHPID" >/dev/null
  for name; do
    phase "$name" "$name" || return
  done
}

phase formatting cargo fmt --check
phase build build
in_background lints documentation >"$output/background" 2>&1 &
background=$!
status=0
phase tests tests "$@" || status=1
# The processor that one of them leaves idle is the background's.
[ $# -gt 0 ] || timeout 1200 scripts/kits.sh || status=1
wait "$background" || status=1
cat "$output/background"

# listed NAME: what tests reported, and how many of them.
listed() {
  sort -u "$lists/$1.txt" 2>/dev/null >"$output/$1" || true
  echo "== $1: $(cut -d ' ' -f 1 "$output/$1" | sort -u | wc -l) tests, or parts of them"
  cat "$output/$1"
}
listed skipped
listed repeated
echo "== slowest"
sed -nE 's/^test (.*) \.\.\. ok <([0-9.]+)s>$/\2 s  \1/p' "$output/tests" | sort -rn | sed -n 1,10p
echo "== phases"
list_phases
exit "$status"
