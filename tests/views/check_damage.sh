#!/bin/sh
# Each kind of damage to a store, in every answer, and changes of the store under a server.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_damage.py" "$top_builddir/varve"
