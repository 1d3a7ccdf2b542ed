#!/bin/sh
# Answers while programs record.
[ -z "${VV_QUICK:-}" ] || { echo "1..0 # SKIP a quick run"; exit 0; }
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
XDG_CACHE_HOME=$dir/cache
export XDG_CACHE_HOME
python3 "$top_srcdir/tests/server/snapshot_test.py" "$top_builddir/varve" "$top_builddir/varve-lua" \
    "$dir/store/profiles-v1" "${VV_ANSWERS:-10000}"
