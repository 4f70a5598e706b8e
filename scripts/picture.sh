#!/usr/bin/env bash
# picture.sh: makes fixtures/words.svg, the picture in README.md: records the demonstration program, and draws it.
# PROFTOOL names another proftool than the installed one.
set -euo pipefail
cd "$(dirname "$0")/.."
# The title of the picture is the command, without its folder.
PATH=$(dirname "$(realpath -e "${PROFTOOL:-$(command -v proftool)}")"):$PATH
picture=$PWD/fixtures/words.svg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rustc -O -g -C force-frame-pointers=yes --out-dir "$work/target" fixtures/programs/words.rs
cd "$work"
# A low rate, so that the file is small.
proftool record -F 499 target/words
proftool export --to svg --collapse conservative --names short -o "$picture"
