#!/usr/bin/env bash
# fuzz.sh TARGET SECONDS: fuzzes perfdata, compressed, elf, links, scan, patch, unwind, demangle, jitdump, or the
# readers pprof, speedscope, perf_script or folded, for so long; exits with 1 when it finds a fault, which is then in tests/fuzz/artifacts/TARGET.
#
# Begins with small sound inputs that it makes itself, with what former runs found
# (tests/fuzz/corpus/TARGET), with former faults (tests/fuzz/seeds/TARGET), and, for perfdata, with
# the files in $PROFTOOL_CORPUS up to 1 MB. Needs a stable toolchain and a C++ compiler: the counters
# that libFuzzer reads are a pass of LLVM, which rustc runs when it is asked to.
set -euo pipefail
[ $# = 2 ] || { echo "usage: fuzz.sh TARGET SECONDS" >&2; exit 2; }
target=$1 seconds=$2

cd "$(dirname "$0")/../tests/fuzz"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "corpus/$target" "$made/$target"
python3 make_seeds.py "$made"

if [ "$target" = elf ] || [ "$target" = scan ] || [ "$target" = patch ]; then
  echo 'static inline int twice(int x) { return 2 * x; }
        int once(int x) { return x > 0 ? once(x - 1) + twice(x) : 1; }
        void _start(void) { once(3); for (;;); }' >"$made/seed.c"
  for flags in "-g" "-g -gz" "-g -gdwarf-4" "-g -static-pie" "-s" "-g -c" "-g -m32 -gdwarf-3"; do
    # shellcheck disable=SC2086
    gcc -nostdlib -O1 $flags -o "$made/$target/seed${flags// /}" "$made/seed.c" 2>/dev/null || true
  done
fi
if [ "$target" = scan ] || [ "$target" = patch ]; then
  echo 'extern int there(int); int here(int x); int far(int x) { return x + 2; }
        int (*const fixed[])(int) = {here, far}; int (*hook)(int) = here;
        int here(int x) { return x > 1 ? here(x - 1) + fixed[x & 1](x) : hook(x) + 1; }
        int out(int x) { return x == 7 ? there(x) : here(x) + far(x); }' >"$made/calls.c"
  for flags in "-c" "-c -fno-pic" "-c -ffunction-sections" "-shared -fPIC" "-shared -fPIC -fno-plt" \
    "-shared -fPIC -s" "-shared -fPIC -Wl,-z,pack-relative-relocs" "-shared -m32 -fPIC"; do
    for gcc in gcc aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc i686-linux-gnu-gcc; do
      # shellcheck disable=SC2086
      "$gcc" -nostdlib -O2 $flags -o "$made/$target/$gcc${flags// /}" "$made/calls.c" 2>/dev/null || true
    done
  done
fi
if [ "$target" = links ]; then
  # A program, its debug file, and, where dwz is installed, what that has in common with another.
  (
    cd "$made"
    echo 'struct all { int a; char *b; struct all *c; double d[4]; }; struct all *all;
          int twice(struct all *x) { return x ? 2 * x->a + twice(x->c) : (int)all->d[1]; }
          void _start(void) { twice(all); for (;;); }' >links.c
    for id in "" "-Wl,--build-id"; do
      # shellcheck disable=SC2086
      gcc -nostdlib -g -O1 -fno-inline $id -o p links.c
      objcopy --only-keep-debug p d.debug
      cp d.debug other.debug
      : >d.alt
      dwz -m d.alt d.debug other.debug 2>/dev/null || true
      strip p
      objcopy --add-gnu-debuglink=d.debug p
      python3 - p d.debug d.alt >"links/seed$id" <<'END'
import struct, sys
program, debug, rest = (open(name, "rb").read() for name in sys.argv[1:])
sys.stdout.buffer.write(struct.pack("<II", len(program), len(debug)) + program + debug + rest)
END
    done
  )
fi
if [ "$target" = unwind ]; then
  echo 'void use(void *); int odd(int x);
        int even(int x) { char a[64]; use(a); return x ? odd(x - 1) + 1 : a[3]; }
        int odd(int x) { char a[x]; use(a); return x ? even(x - 1) * 2 : a[x & 7]; }
        __attribute__((force_align_arg_pointer)) void use(void *p) { if (!p) even(3); }
        void _start(void) { even(9); for (;;); }' >"$made/frames.c"
  for flags in "-O2" "-O2 -fno-asynchronous-unwind-tables -g" "-O2 -Wl,--no-eh-frame-hdr" "-O0 -fno-pic -no-pie"; do
    for gcc in gcc aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc i686-linux-gnu-gcc; do
      # shellcheck disable=SC2086
      "$gcc" -nostdlib $flags -o "$made/frames" "$made/frames.c" 2>/dev/null || continue
      for which in 0 1 2 3; do
        python3 - "$made/frames" "$which" >"$made/unwind/$gcc${flags// /}$which" <<'END'
import struct, sys
stack = b"".join(struct.pack("<Q", 0x1000 + 8 * i) for i in range(64))
registers = [0x7000 + 64 * (i % 5) for i in range(32)]
for stack_pointer in (2, 4, 7, 31):
    registers[stack_pointer] = 0x7000
head = struct.pack("<HBBH", int(sys.argv[2]), 4, 1, len(stack)) + struct.pack("<32Q", *registers)
sys.stdout.buffer.write(head + stack + open(sys.argv[1], "rb").read())
END
      done
    done
  done
fi
if [ "$target" = perfdata ] && [ -d "${PROFTOOL_CORPUS:-}" ]; then
  find "$PROFTOOL_CORPUS" -type f -size -1025k -exec cp -t "$made/perfdata" {} +
fi

folders=("$PWD/corpus/$target" "$made/$target")
[ ! -d "seeds/$target" ] || folders+=("$PWD/seeds/$target")
# Build scripts and macros are not instrumented: with --target, RUSTFLAGS are not theirs.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing" \
  cargo build --release --target "$host" --bin "$target"
mkdir -p "artifacts/$target"
"${CARGO_TARGET_DIR:-target}/$host/release/$target" "${folders[@]}" -artifact_prefix="artifacts/$target/" \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=1048576 -print_final_stats=1
