#!/bin/sh
# Every fuzzer for VV_SOAK_SECONDS, in a build of its own (they need clang's libFuzzer).
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"${top_srcdir:?}"/configure -q --enable-fuzzing CC=clang CFLAGS="-O1 -g"
make -s -j2 fuzz-run FUZZ_SECONDS="${VV_SOAK_SECONDS:-60}"
