#!/usr/bin/env bash
# kits.sh [KIT…]: runs kits of ../shared on the program that test.sh built: identity and stacks, or those named (faults).
# Without the folder there is nothing to do. What fails in identity is run once more alone, which is
# reported: shares of time waver on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/phases.sh

kits=$(realpath -m ../shared)
[ -d "$kits" ] || { echo "no kits at $kits"; exit 0; }
[ $# -gt 0 ] || set -- identity stacks
proftool=$(realpath -e "${CARGO_TARGET_DIR:-target}/debug/proftool")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

identity() {
  local runner="$kits/identity/check_identity.py" failed
  python3 "$runner" "$proftool" >"$log" && return
  # A failed check is said as "FAIL CASE/CHECK: …".
  failed=$(sed -nE 's|^FAIL ([^/ ]+)/.*|\1|p' "$log" | sort -u | paste -sd'|')
  cat "$log"
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

status=0
for kit; do
  phase "kit $kit" "$kit" || status=1
  tail -n 3 "$log"
done
echo "== phases"
list_phases
exit "$status"
