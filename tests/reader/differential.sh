#!/bin/sh
# `varve dump` and an independent reader agree on seeded random stores, damaged ones among them.
# VV_DIFFERENTIAL_SEEDS sets how many (150), VV_FIRST_SEED where they begin (1).
set -eu

if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP python3 is not installed"
    exit 0
fi
: "${top_srcdir:?}" "${top_builddir:?}"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$top_srcdir/tests/tools/differential.py" "$top_builddir/varve" "${VV_FIRST_SEED:-1}" "${VV_DIFFERENTIAL_SEEDS:-150}"
