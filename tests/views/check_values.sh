#!/bin/sh
# Captured values over HTTP against a reader of their bodies in Python: of a recorded program, the fixtures, and random ones.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_values.py" "$top_builddir" "$top_srcdir" "${VV_SEED:-1}"
