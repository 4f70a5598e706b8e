#!/usr/bin/env bash
# Checks licences, advisories, duplicates and sources of the dependencies (deny.toml) with cargo-deny, if it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo deny --version >/dev/null 2>&1; then
    echo "skipped: cargo-deny is not installed (cargo install cargo-deny --locked)" >&2
    exit 0
fi
cargo deny --locked check licenses bans sources
# Advisories need RustSec's database: the network, or the copy of an earlier run.
if cargo deny --locked fetch db >/dev/null 2>&1; then
    cargo deny --locked check advisories
elif [ -n "$(ls -A "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" 2>/dev/null)" ]; then
    cargo deny --locked check --disable-fetch advisories
else
    echo "skipped: advisories; their database cannot be fetched" >&2
fi
