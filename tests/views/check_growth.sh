#!/bin/sh
# Stores that grow under a running server: its answers against those of a fresh process.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_growth.py" "$top_builddir/varve" "${VV_SEED:-1}" "${VV_GROWTH_SEEDS:-12}"
