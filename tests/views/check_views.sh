#!/bin/sh
# The views against a recomputation in Python from the reference reader: the fixtures, what the example VM records, and
# some seeded stores.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
fixtures=$top_srcdir/tests/fixtures
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
env -u BAML_PROFILE BAML_PROFILE_DIR="$dir/shop/profiles-v1" "$top_builddir/examples/vm" "$top_srcdir/examples/shop.vm" \
    >/dev/null || exit 99
python3 "$top_srcdir/tests/views/check_views.py" "$top_builddir/varve" "${VV_SEED:-1}" "${VV_SEEDS:-20}" \
    "$fixtures"/demo-store.tar "$fixtures"/damaged-[1-7].tar "$dir/shop/profiles-v1"
