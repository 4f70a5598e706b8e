#!/usr/bin/env bash
# make_fixtures.sh DIR: builds the programs of fixtures/programs into DIR, each with frame
# pointers and debug information. A program whose compiler is not there is left out, with a word.
set -euo pipefail
[ $# = 1 ] || { echo "usage: make_fixtures.sh DIR" >&2; exit 2; }

programs=$(cd "$(dirname "$0")/../fixtures/programs" && pwd)
mkdir -p "$1"

# build COMPILER SOURCE FLAG…: DIR/NAME of the source, unless it is newer already.
build() {
  local compiler=$1 source=$2 out
  shift 2
  out=$target/$(basename "${source%.*}")
  if ! command -v "$compiler" >/dev/null; then
    echo "no $compiler: $source is left out" >&2
  elif [ ! "$out" -nt "$programs/$source" ]; then
    # By way of a name of its own: tests may build and run at the same time.
    "$compiler" "$@" -o "$out.$$" "$programs/$source" && mv "$out.$$" "$out"
  fi
}

target=$(cd "$1" && pwd)
build gcc recurse.c -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id -Wall -Wextra
build g++ shapes.cpp -std=c++17 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id -Wall -Wextra
build rustc words.rs --edition 2024 -O -g -C force-frame-pointers=yes -C link-arg=-Wl,--build-id
