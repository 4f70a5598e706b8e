#!/usr/bin/env bash
# workloads.sh: the programs, peers and recordings that bench.sh measures with, made where missing.
#
# Everything goes to ${PROFTOOL_BENCH:-~/.cache/proftool-bench}:
#   bin/     qjs, rg (with debug information and frame pointers), inferno-*, samply
#   source/  what they are built from
#   text/    some 50 MB of source text for rg to search
#   data/    for qjs, rg and rustc NAME.100k.data and NAME.1m.data with frame pointers, and
#            NAME.dwarf.data with some 20 000 copied stacks; NAME.small.data with some 200 samples
#   run/NAME N  runs the workload's loop N times
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PROFTOOL_BENCH:-$HOME/.cache/proftool-bench}
mkdir -p "$cache"/{bin,source,text,data,run,out}
log=$cache/build.log

say() { echo "bench: $*" >&2; }

# fetch CRATE: the folder with the sources of its newest version.
fetch() {
  local project=$cache/source/fetch-$1
  [ -d "$project" ] || cargo new --quiet --vcs none --lib "$project" --name "fetch-$1"
  (cd "$project" && { grep -q "^$1 " Cargo.toml || cargo add --quiet "$1"; } && cargo fetch --quiet)
  (cd "$project" && cargo metadata --format-version 1) | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(os.path.dirname(next(p["manifest_path"] for p in packages if p["name"] == sys.argv[1])))' "$1"
}

build_qjs() {
  [ -x "$cache/bin/qjs" ] && return
  say "building qjs"
  local source
  source=$(fetch rquickjs-sys)/quickjs
  (cd "$source" && gcc -O2 -g -fno-omit-frame-pointer -w -std=gnu11 -D_GNU_SOURCE \
    -DQUICKJS_NG_BUILD -I. -o "$cache/bin/qjs" qjs.c gen/repl.c gen/standalone.c quickjs.c \
    quickjs-libc.c libregexp.c libunicode.c dtoa.c -lm -lpthread -ldl)
}

build_rg() {
  [ -x "$cache/bin/rg" ] && return
  say "building rg"
  CARGO_PROFILE_RELEASE_DEBUG=2 CARGO_PROFILE_RELEASE_STRIP=none \
    RUSTFLAGS="-C force-frame-pointers=yes" \
    cargo install ripgrep --locked --root "$cache" >>"$log" 2>&1
}

build_small() {
  gcc -O2 -g -fno-omit-frame-pointer -pthread -o "$cache/bin/$1" "$here/$1.c"
}

build_peer() {
  [ -x "$cache/bin/$2" ] && return
  say "building $1"
  cargo install "$1" --locked --root "$cache" >>"$log" 2>&1 || say "$1 could not be built; it is left out"
}

# About 50 MB of the sources that cargo has at hand, in files that are not hidden: rg passes those over.
gather_text() {
  [ -n "$(ls -A "$cache/text")" ] && return
  say "gathering text"
  local total=0 size file
  while IFS= read -r file; do
    size=$(stat -c %s "$file")
    cp "$file" "$cache/text/$(echo "text_${file#"$HOME"/}" | tr / _ | tail -c 200)"
    total=$((total + size))
    [ "$total" -gt 50000000 ] && break
  done < <(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -type f -size -4M \
    \( -name '*.rs' -o -name '*.c' -o -name '*.h' -o -name '*.md' \) | sort)
}

# The commands themselves, as run/NAME N.
write_runs() {
  local syntax rustc
  syntax=$(fetch regex-syntax)
  rustc=$(rustc --print sysroot)/bin/rustc
  printf '#!/bin/sh\nexec %s %s "$1"\n' "$cache/bin/qjs" "$here/deeprec.js" >"$cache/run/qjs"
  printf '#!/bin/sh\nexec %s %s %s "$1"\n' "$here/rgload.sh" "$cache/bin/rg" "$cache/text" >"$cache/run/rg"
  printf '#!/bin/sh\nexec %s %s %s %s "$1"\n' "$here/rustcload.sh" "$rustc" "$syntax" "$cache/out" \
    >"$cache/run/rustc"
  printf '#!/bin/sh\nexec %s "$1"\n' "$cache/bin/forks" >"$cache/run/forks"
  printf '#!/bin/sh\nexec %s "$1"\n' "$cache/bin/pool" >"$cache/run/pool"
  printf '#!/bin/sh\nexec %s %s %s "$1"\n' "$here/buildload.sh" "$(fetch rquickjs-sys)/quickjs" "$cache/out" \
    >"$cache/run/build"
  chmod +x "$cache"/run/* "$here"/*.sh
}

# Recording to $1 of $2 rounds of workload $3; the rest is how. A ring buffer of 16 MiB holds what
# comes while the file is written.
perf_record() {
  local out=$1 rounds=$2 name=$3
  shift 3
  perf record -q -e cpu-clock -m 16M "$@" -o "$out" "$cache/run/$name" "$rounds" >/dev/null 2>>"$log"
}

# record NAME SAMPLES TAG TRIAL HOW…: data/NAME.TAG.data, by as many rounds as give about that many
# samples when TRIAL rounds are believed.
record() {
  local name=$1 wanted=$2 trial=$4 out=$cache/data/$1.$3.data
  local how=("${@:5}")
  [ -s "$out" ] && return
  command -v perf >/dev/null || { say "no perf here: $out is left out"; return; }
  local found rounds
  perf_record "$out.part" "$trial" "$name" "${how[@]}"
  found=$(perf report --stats -i "$out.part" 2>/dev/null | awk '/SAMPLE events:/ { print $3; exit }')
  rounds=$(((wanted * trial + found / 2) / found))
  [ "$rounds" -gt 0 ] || rounds=1
  say "recording $name: $rounds rounds, $found samples in $trial"
  perf_record "$out.part" "$rounds" "$name" "${how[@]}"
  mv "$out.part" "$out"
  rm -f "$out.part.old"
}

# The kernel's brakes on sampling, loosened for the recordings and put back after.
loosen() {
  local knobs=/proc/sys/kernel
  [ -w $knobs/perf_cpu_time_max_percent ] || { say "not root: recordings may be throttled"; return; }
  local percent rate
  percent=$(cat $knobs/perf_cpu_time_max_percent)
  rate=$(cat $knobs/perf_event_max_sample_rate)
  trap "echo $percent >$knobs/perf_cpu_time_max_percent; echo $rate >$knobs/perf_event_max_sample_rate" EXIT
  echo 0 >$knobs/perf_cpu_time_max_percent
  # Writing the rate fails while the percentage is 0 on some kernels; it is high enough then.
  echo 100000 >$knobs/perf_event_max_sample_rate 2>/dev/null || true
}

build_qjs
build_rg
build_small forks
build_small pool
build_peer inferno inferno-collapse-perf
build_peer samply samply
gather_text
write_runs
loosen
for size in "100000 100k" "1000000 1m"; do
  record qjs $size 50 -F 25000 -g
  record rg $size 5 -F 25000 -g
  record rustc $size 1 -F 25000 -g
done
# The stacks of rustc are too deep for the 8 KiB that perf copies by default.
record qjs 20000 dwarf 50 -F 5000 --call-graph dwarf,8192
record rg 20000 dwarf 2 -F 5000 --call-graph dwarf,8192
record rustc 20000 dwarf 1 -F 5000 --call-graph dwarf,32768
record qjs 200 small 5 -F 997 -g
record rg 200 small 1 -F 997 -g
say "ready in $cache"
