#!/bin/sh
# buildload.sh SOURCE OUT N: compiles three files of QuickJS with gcc, N times, by make -j4.
set -eu
source=$1 out=$2
round() {
  printf 'all: a.o b.o c.o\n'
  for pair in a:libregexp b:libunicode c:dtoa; do
    printf '%s.o:\n\tgcc -O1 -w -D_GNU_SOURCE -DQUICKJS_NG_BUILD -I%s -c -o %s/%s.o %s/%s.c\n' \
      "${pair%:*}" "$source" "$out" "${pair%:*}" "$source" "${pair#*:}"
  done
}
i=0
while [ "$i" -lt "$3" ]; do
  round | make -s -j4 -f - all
  i=$((i + 1))
done
