#!/bin/sh
# A thousand executions taken together, and compared.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/views/check_merge.py" "$top_builddir/varve"
