#!/bin/sh
# Requests byte for byte.
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xf "$top_srcdir/tests/fixtures/demo-store.tar" -C "$dir"
python3 "$top_srcdir/tests/server/requests_test.py" "$top_builddir/varve" "$dir"
