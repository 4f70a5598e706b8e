#!/usr/bin/env bash
# bench.sh [reading|recording|all] [RUNS] [PART]: what proftool and its peers cost, as markdown
# tables; medians of RUNS turns (5). With PART only files and programs with it in their name: 100k.
#
# Workloads, peers and recordings are made where missing (see bench/workloads.sh), in
# ${PROFTOOL_BENCH:-~/.cache/proftool-bench}. A peer that is not there is left out, with a word.
# PROFTOOL names another proftool than the release build of this clone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PROFTOOL_BENCH:-$HOME/.cache/proftool-bench}
what=${1:-all} runs=${2:-5} part=${3:-}
case $what in reading | recording | all) ;; *) echo "usage: bench.sh [reading|recording|all] [RUNS] [PART]" >&2; exit 2 ;; esac

"$here/bench/workloads.sh"
if [ -z "${PROFTOOL:-}" ]; then
  (cd "$here/.." && cargo build --release --locked --quiet)
  PROFTOOL=$(cd "$here/.." && pwd)/target/release/proftool
fi
rustc -O --edition 2024 -o "$cache/bin/bare_loop" "$here/bench/bare_loop.rs"
exec python3 "$here/bench/measure.py" "$what" "$runs" "$cache" "$PROFTOOL" "$part"
