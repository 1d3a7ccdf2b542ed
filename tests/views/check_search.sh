#!/bin/sh
# A search against a plain look at every text in Python, with an index and without: the fixtures, and seeded stores.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
fixtures=$top_srcdir/tests/fixtures
exec python3 "$top_srcdir/tests/views/check_search.py" "$top_builddir/varve" "${VV_SEED:-1}" "${VV_SEEDS:-10}" \
    "$fixtures"/demo-store.tar "$fixtures"/damaged-[1-7].tar
