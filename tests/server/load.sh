#!/bin/sh
# Long answers, and many clients.
[ -z "${VV_QUICK:-}" ] || { echo "1..0 # SKIP a quick run"; exit 0; }
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
depth=19 measure=1
if grep -qaE '__(asan|tsan)_init' "$top_builddir/varve"; then # of any compiler
    depth=14 measure=0
fi
python3 "$top_srcdir/tests/server/load_test.py" "$top_builddir/varve" "$top_builddir/varve-lua" "$dir" $depth $measure
