#!/usr/bin/env bash
# fuzz.sh TARGET SECONDS: fuzzes perfdata, elf, scan or demangle for so long; exits with 1 when it finds
# a fault, which is then in tests/fuzz/artifacts/TARGET.
#
# Begins with small sound inputs that it makes itself, with what former runs found
# (tests/fuzz/corpus/TARGET), with former faults (tests/fuzz/seeds/TARGET), and, for perfdata, with
# the files in $PROFTOOL_CORPUS up to 1 MB. Needs `cargo install cargo-fuzz`, a nightly toolchain
# and a C++ compiler.
set -euo pipefail
[ $# = 2 ] || { echo "usage: fuzz.sh TARGET SECONDS" >&2; exit 2; }
target=$1 seconds=$2

cd "$(dirname "$0")/../tests/fuzz"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "corpus/$target" "$made/$target"
python3 make_seeds.py "$made"

if [ "$target" = elf ] || [ "$target" = scan ]; then
  echo 'static inline int twice(int x) { return 2 * x; }
        int once(int x) { return x > 0 ? once(x - 1) + twice(x) : 1; }
        void _start(void) { once(3); for (;;); }' >"$made/seed.c"
  for flags in "-g" "-g -gz" "-g -gdwarf-4" "-g -static-pie" "-s" "-g -c" "-g -m32 -gdwarf-3"; do
    # shellcheck disable=SC2086
    gcc -nostdlib -O1 $flags -o "$made/$target/seed${flags// /}" "$made/seed.c" 2>/dev/null || true
  done
fi
if [ "$target" = scan ]; then
  echo 'extern int there(int); int here(int x); int far(int x) { return x + 2; }
        int (*const fixed[])(int) = {here, far}; int (*hook)(int) = here;
        int here(int x) { return x > 1 ? here(x - 1) + fixed[x & 1](x) : hook(x) + 1; }
        int out(int x) { return x == 7 ? there(x) : here(x) + far(x); }' >"$made/calls.c"
  for flags in "-c" "-c -fno-pic" "-c -ffunction-sections" "-shared -fPIC" "-shared -fPIC -fno-plt" \
    "-shared -fPIC -s" "-shared -fPIC -Wl,-z,pack-relative-relocs" "-shared -m32 -fPIC"; do
    for gcc in gcc aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc i686-linux-gnu-gcc; do
      # shellcheck disable=SC2086
      "$gcc" -nostdlib -O2 $flags -o "$made/scan/$gcc${flags// /}" "$made/calls.c" 2>/dev/null || true
    done
  done
fi
if [ "$target" = perfdata ] && [ -d "${PROFTOOL_CORPUS:-}" ]; then
  find "$PROFTOOL_CORPUS" -type f -size -1025k -exec cp -t "$made/perfdata" {} +
fi

folders=("$PWD/corpus/$target" "$made/$target")
[ ! -d "seeds/$target" ] || folders+=("$PWD/seeds/$target")
cd ../..
cargo +nightly fuzz run --fuzz-dir tests/fuzz "$target" "${folders[@]}" -- \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=1048576 -print_final_stats=1
