#!/usr/bin/env bash
# objdump_corpus.sh DIR: builds and collects in DIR the programs and libraries that
# compare_objdump.py is run over. What is there already is kept. What a compiler or file is missing
# for is left out, with a word.
set -euo pipefail
[ $# = 1 ] || { echo "usage: objdump_corpus.sh DIR" >&2; exit 2; }

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
left_out=0

leave_out() {
  echo "left out: $1" >&2
  left_out=$((left_out + 1))
}

# build NAME COMPILER ARG…: DIR/NAME.
build() {
  local name=$1 compiler=$2
  shift 2
  if [ -e "$target/$name" ]; then
    return
  elif ! command -v "$compiler" >/dev/null; then
    leave_out "$name, no $compiler"
  elif "$compiler" "$@" -o "$target/.$name" 2>"$target/.log"; then
    mv "$target/.$name" "$target/$name"
  else
    leave_out "$name, $compiler failed: $(head -n 1 "$target/.log")"
  fi
  rm -f "$target/.log"
}

# take NAME FILE: DIR/NAME is a link to a file of this machine.
take() {
  if [ -f "$2" ]; then
    ln -sfn "$(readlink -f "$2")" "$target/$1"
  else
    leave_out "$1, no $2"
  fi
}

# What of a C library cargo has fetched for proftool itself: some 600 functions, a few in assembly.
zstd=$(cd "$root" && cargo metadata --locked --format-version 1 2>/dev/null |
  grep -o '"manifest_path":"[^"]*/zstd-sys-[^"]*/Cargo.toml"' | head -n 1 | cut -d '"' -f 4 || true)
zstd=${zstd%/Cargo.toml}/zstd/lib
c=("$root/fixtures/programs/recurse.c") asm=() lib=("${c[@]}")
if [ -d "$zstd" ]; then
  lib=(-DZSTD_LEGACY_SUPPORT=1 "$zstd"/common/*.c "$zstd"/decompress/*.c "$zstd"/legacy/*.c)
  asm=("$zstd"/decompress/*.S)
  c+=("${lib[@]}")
else
  leave_out "a C library in the C programs, no sources of zstd"
fi
cpp=$root/fixtures/programs/shapes.cpp
rust=$root/fixtures/programs/words.rs

build c-O0 gcc -O0 -g "${c[@]}" "${asm[@]}"
build c-O2 gcc -O2 "${c[@]}" "${asm[@]}"
build c-lto.so gcc -O3 -flto -fPIC -shared "${lib[@]}" "${asm[@]}"
build c-Os-large gcc -Os -mcmodel=large "${c[@]}" "${asm[@]}"
build c-no-pie gcc -O2 -fno-pie -no-pie "${c[@]}" "${asm[@]}"
build c-static gcc -O2 -fno-pie -static "${c[@]}" "${asm[@]}"
build c-static-pie gcc -O2 -static-pie "${c[@]}" "${asm[@]}"
build c-no-plt gcc -O2 -fno-plt "${c[@]}" "${asm[@]}"
build c-ibt gcc -O2 -fcf-protection=full -Wl,-z,ibtplt "${c[@]}" "${asm[@]}"
build c-stripped gcc -O2 -s "${c[@]}" "${asm[@]}"
build c-shared.so gcc -O2 -fPIC -shared "${lib[@]}" "${asm[@]}"
build c-relr.so gcc -O2 -fPIC -shared -fno-plt -Wl,-z,pack-relative-relocs "${lib[@]}" "${asm[@]}"
build clang-O0 clang -O0 "${c[@]}" "${asm[@]}"
build clang-O2 clang -O2 "${c[@]}" "${asm[@]}"
build clang-lld-icf.so clang -O2 -fPIC -shared -fuse-ld=lld -ffunction-sections -Wl,--icf=all,-z,now "${lib[@]}" "${asm[@]}"
build cpp-O0 g++ -std=c++17 -O0 "$cpp"
build cpp-O2 g++ -std=c++17 -O2 "$cpp"
build cpp-static g++ -std=c++17 -O2 -static "$cpp"
build cpp-clang clang++ -std=c++17 -O2 "$cpp"
build clang-no-pie clang -O2 -fno-pie -no-pie "${c[@]}" "${asm[@]}"
build rust-O rustc --edition 2024 -O "$rust"
build rust-debug rustc --edition 2024 -g "$rust"
build rust-static rustc --edition 2024 -O -C target-feature=+crt-static "$rust"

build a64-c-O0 aarch64-linux-gnu-gcc -O0 "${c[@]}"
build a64-c-O2 aarch64-linux-gnu-gcc -O2 "${c[@]}"
build a64-c-bti aarch64-linux-gnu-gcc -O2 -mbranch-protection=standard -Wl,-z,force-bti "${c[@]}"
build a64-c-static aarch64-linux-gnu-gcc -O2 -static "${c[@]}"
build a64-c-no-plt aarch64-linux-gnu-gcc -O2 -fno-plt "${c[@]}"
build a64-c-stripped aarch64-linux-gnu-gcc -O2 -s "${c[@]}"
build a64-c-shared.so aarch64-linux-gnu-gcc -O2 -fPIC -shared "${lib[@]}"
build a64-clang clang --target=aarch64-linux-gnu -O2 "${c[@]}"
build a64-cpp aarch64-linux-gnu-g++ -std=c++17 -O2 "$cpp"
build rv64-c-O2 riscv64-linux-gnu-gcc -O2 "${c[@]}"
build i386-c-O2 i686-linux-gnu-gcc -O2 "${c[@]}"
build i386-c-no-pie i686-linux-gnu-gcc -O2 -fno-pie -no-pie "${c[@]}"

take sys-libc.so.6 /lib/x86_64-linux-gnu/libc.so.6
take sys-ld.so /lib64/ld-linux-x86-64.so.2
take sys-libm.so.6 /lib/x86_64-linux-gnu/libm.so.6
take sys-libstdc++.so.6 /usr/lib/x86_64-linux-gnu/libstdc++.so.6
take sys-libcrypto.so.3 /usr/lib/x86_64-linux-gnu/libcrypto.so.3
for program in ls bash perl python3 sqlite3 gdb; do
  take "sys-$program" "$(PATH=/usr/bin:/bin command -v "$program" || echo "/usr/bin/$program")"
done
take a64-libc.so.6 /usr/aarch64-linux-gnu/lib/libc.so.6
take a64-libstdc++.so.6 /usr/aarch64-linux-gnu/lib/libstdc++.so.6
take rv64-libc.so.6 /usr/riscv64-linux-gnu/lib/libc.so.6
take i386-libc.so.6 /usr/i686-linux-gnu/lib/libc.so.6
take rust-proftool "${CARGO_TARGET_DIR:-$root/target}/release/proftool"
bench=${PROFTOOL_BENCH:-~/.cache/proftool-bench}
take rust-rg "$bench/bin/rg"
take c-qjs "$bench/bin/qjs"
echo "$(find "$target" -mindepth 1 -name '[!.]*' | wc -l) files in $target, $left_out left out"
