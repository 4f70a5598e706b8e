#!/usr/bin/env bash
# bench.sh [reading|recording|scanning|graphs|exports|all] [RUNS] [PART]: what proftool and its peers cost, as markdown
# tables; medians of RUNS turns (5). With PART only files and programs with it in their name: 100k.
#
# Workloads, peers and recordings are made where missing (see bench/workloads.sh), in
# ${PROFTOOL_BENCH:-~/.cache/proftool-bench}. A peer that is not there is left out, with a word.
# What is scanned are programs and libraries of this machine, and more of them in PROFTOOL_CODE
# (separated by colons). PROFTOOL names another proftool than the release build of this clone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PROFTOOL_BENCH:-$HOME/.cache/proftool-bench}
what=${1:-all} runs=${2:-5} part=${3:-}
case $what in reading | recording | scanning | graphs | exports | all) ;; *) echo "usage: bench.sh [reading|recording|scanning|graphs|exports|all] [RUNS] [PART]" >&2; exit 2 ;; esac

case $what in scanning | graphs) ;; *) "$here/bench/workloads.sh" ;; esac
if [ -z "${PROFTOOL:-}" ]; then
  (cd "$here/.." && cargo build --release --locked --quiet --bins)
  PROFTOOL=$(cd "$here/.." && pwd)/target/release/proftool
fi
(cd "$here/.." && cargo build --release --locked --quiet --example scan_speed --example bare_loop)
mkdir -p "$cache"
export SCAN_SPEED="$here/../target/release/examples/scan_speed"
export BARE_LOOP="$here/../target/release/examples/bare_loop"
exec python3 "$here/bench/measure.py" "$what" "$runs" "$cache" "$PROFTOOL" "$part"
