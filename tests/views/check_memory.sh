#!/bin/sh
# Memory for few and for many segments, and of a server that follows. VV_COMMITS=86400 is a day of them.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_memory.py" "$top_builddir/varve" "$top_builddir/tests/tools/peak" \
    "${VV_SEGMENTS:-30}" "${VV_COMMITS:-12000}"
