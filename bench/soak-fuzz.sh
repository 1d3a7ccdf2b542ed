#!/bin/sh
# Every fuzzer for VV_FUZZ_SECONDS (VV_SOAK_SECONDS), in VV_FUZZ_BUILD or in a build of its own: they need clang's libFuzzer.
set -e
seconds=${VV_FUZZ_SECONDS:-${VV_SOAK_SECONDS:-60}}
if [ -e "${VV_FUZZ_BUILD:-}/Makefile" ]; then
    exec make -s -C "$VV_FUZZ_BUILD" fuzz-run FUZZ_SECONDS="$seconds"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"${top_srcdir:?}"/configure -q --enable-fuzzing CC=clang CFLAGS="-O1 -g"
make -s -j"$(nproc)" fuzz-run FUZZ_SECONDS="$seconds"
