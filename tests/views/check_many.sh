#!/bin/sh
# Lists of very many calls, errors and threads.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_many.py" "$top_builddir/varve"
