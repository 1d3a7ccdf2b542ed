#!/bin/sh
# Segment files over HTTP against the files themselves: rows of planes, bytes, tags, ranges; of stores and of archives.
[ -z "${VV_QUICK:-}" ] || { echo "1..0 # SKIP a quick run"; exit 0; }
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/server/check_segments.py" "$top_builddir" "$top_srcdir" "${VV_SEED:-1}"
