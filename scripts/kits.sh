#!/usr/bin/env bash
# kits.sh [KIT…]: runs kits of ../shared on the program that test.sh built: identity and stacks, or those named (faults).
# Without the folder there is nothing to do. Kits run next to each other, as each keeps one processor busy.
# What fails in identity is run once more after the others, which is reported: shares of time waver on a
# busy machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/phases.sh

kits=$(realpath -m ../shared)
[ -d "$kits" ] || { echo "no kits at $kits"; exit 0; }
[ $# -gt 0 ] || set -- identity stacks
proftool=$(realpath -e "${CARGO_TARGET_DIR:-target}/debug/proftool")
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

# others_ended KIT: waits until no other kit runs.
others_ended() {
  local kit
  for kit in "${kits_to_run[@]}"; do
    while [ "$kit" != "$1" ] && [ ! -e "$logs/$kit.ended" ]; do sleep 0.2; done
  done
}

identity() {
  local runner="$kits/identity/check_identity.py" failed
  python3 "$runner" "$proftool" >"$log" && return
  # A failed check is said as "FAIL CASE/CHECK: …".
  failed=$(sed -nE 's|^FAIL ([^/ ]+)/.*|\1|p' "$log" | sort -u | paste -sd'|')
  cat "$log"
  others_ended identity
  [ -n "$failed" ] && echo "repeated: identity $failed 2 of 2" && python3 "$runner" "$proftool" "^($failed)\$" >"$log"
}

stacks() {
  if [ ! -e /usr/include/elfutils/libdwfl.h ]; then
    echo "skipped: the oracle needs libdw-dev" >"$log"
    return
  fi
  # Chain and 256 bytes have to be as good as the prototype of the join.
  MODES='fp=chain both=both:256 oracle=given:256' LIMIT=150 "$kits/stacks/truth_stacks.sh" "$proftool" >"$log" &&
    "$kits/stacks/check_record.sh" "$proftool" >>"$log"
}

faults() {
  WORK=$(mktemp -d) SLOW=3 "$kits/faults/run_faults.sh" "$proftool" >"$log"
}

# run KIT: its messages and the end of its log go to a file, so that those of kits do not mix.
run() {
  local log="$logs/$1" status=0
  phase "kit $1" "$1" || status=1
  touch "$logs/$1.ended"
  tail -n 3 "$log"
  return "$status"
}

kits_to_run=("$@")
declare -A running
for kit; do
  run "$kit" >"$logs/$kit.said" 2>&1 &
  running[$kit]=$!
done
status=0
for kit; do
  wait "${running[$kit]}" || status=1
  cat "$logs/$kit.said"
done
echo "== phases"
list_phases
exit "$status"
