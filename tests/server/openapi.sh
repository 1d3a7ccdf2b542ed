#!/bin/sh
# Every answer against the OpenAPI document.
[ -z "${VV_QUICK:-}" ] || { echo "1..0 # SKIP a quick run"; exit 0; }
for tool in python3 zstd; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
python3 -c 'import jsonschema' 2>/dev/null || { echo "1..0 # SKIP no python3-jsonschema"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
python3 "$top_srcdir/tests/server/openapi_test.py" "$top_builddir/varve" "$top_srcdir/tests/fixtures" "$dir"
