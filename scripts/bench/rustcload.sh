#!/bin/sh
# rustcload.sh RUSTC SOURCE OUT N: compiles the crate regex-syntax at SOURCE, optimised, N times.
rustc=$1 source=$2 out=$3 n=${4:-1}
i=0
while [ "$i" -lt "$n" ]; do
  "$rustc" --edition 2021 --crate-type lib --crate-name regex_syntax -O -C codegen-units=1 \
    --cap-lints allow --cfg 'feature="std"' --cfg 'feature="unicode"' \
    --cfg 'feature="unicode-age"' --cfg 'feature="unicode-bool"' --cfg 'feature="unicode-case"' \
    --cfg 'feature="unicode-gencat"' --cfg 'feature="unicode-perl"' \
    --cfg 'feature="unicode-script"' --cfg 'feature="unicode-segment"' \
    --out-dir "$out" "$source/src/lib.rs"
  i=$((i + 1))
done
