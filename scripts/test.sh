#!/usr/bin/env bash
# test.sh [ARG…]: all checks that a change must pass. ARGs go to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== formatting" && cargo fmt --check
echo "== lints" && cargo clippy --locked --quiet --all-targets -- -D warnings
# Each feature of the library alone, and none: a use of a room that another feature builds fails here.
echo "== features" && for features in '' export import record xz parquet; do
  cargo clippy --locked --quiet --no-default-features --features "$features" --lib -- -D warnings
done
cargo clippy --locked --quiet --no-default-features --features cli --bins -- -D warnings
echo "== documentation" && RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --document-private-items
skipped="${CARGO_TARGET_DIR:-target}/tmp/skipped.txt"
rm -f "$skipped"
# Many tests wait for a program that they watch, so there are more at a time than processors. None
# hangs: a test ends the run after ten minutes, and what no test watches ends here.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) * 2))}"
echo "== tests" && timeout --foreground 3600 cargo test --locked "$@"
if [ -s "$skipped" ]; then
  echo "== skipped: $(cut -d: -f1-3 "$skipped" | sort -u | wc -l) tests, or parts of them"
  sort -u "$skipped"
else
  echo "== skipped: none"
fi
