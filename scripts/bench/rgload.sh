#!/bin/sh
# rgload.sh RG TEXT N: ripgrep on one thread with many different matchers and printers, N times.
rg=$1 text=$2 n=${3:-1}
i=0
while [ "$i" -lt "$n" ]; do
  "$rg" -j1 --no-config -c -i '\b(js|lre)_[a-z]+_?(to|from|get|set)\w*\s*\(' "$text" >/dev/null
  "$rg" -j1 --no-config --json '[A-Z]\w+\s*=\s*\d+[a-f]?;' "$text" >/dev/null
  "$rg" -j1 --no-config -n -o --column '(\w+)\((\w+),\s*(\w+)\)' -r '$3:$2:$1' "$text" >/dev/null
  "$rg" -j1 --no-config -c -w -e return -e const -e static -e struct -e 'if' "$text" >/dev/null
  "$rg" -j1 --no-config -U -c '\{\s*\n\s*return\s+[^;]+;\s*\n\s*\}' "$text" >/dev/null
  "$rg" -j1 --no-config -v -c '^\s*(//|\*|/\*)' "$text" >/dev/null
  "$rg" -j1 --no-config -n --heading --color always -i 'unicode.{0,20}(class|case|range)' "$text" >/dev/null
  "$rg" -j1 --no-config -c '\p{Greek}|\p{Lu}{3,}\d|\w{25,}' "$text" >/dev/null
  i=$((i + 1))
done
