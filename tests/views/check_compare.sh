#!/bin/sh
# Answers about several executions, and comparisons, against a recomputation in Python: the fixtures, and some
# seeded stores of several builds of one program.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
fixtures=$top_srcdir/tests/fixtures
python3 "$top_srcdir/tests/views/check_compare.py" "$top_builddir/varve" "${VV_SEED:-1}" "${VV_SEEDS:-20}" \
    "$fixtures"/demo-store.tar "$fixtures"/damaged-[1-7].tar
