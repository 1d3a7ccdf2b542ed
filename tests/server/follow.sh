#!/bin/sh
# Following a store over HTTP, with clients that come, go, stall and come back.
[ -z "${VV_QUICK:-}" ] || { echo "1..0 # SKIP a quick run"; exit 0; }
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
unset BAML_PROFILE_DIR
python3 "$top_srcdir/tests/server/follow_client.py" "$top_builddir/varve" "$dir"
