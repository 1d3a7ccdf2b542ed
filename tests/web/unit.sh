#!/bin/sh
# The page's pure parts, and the syntax of every module.
set -u
if ! command -v node >/dev/null 2>&1; then
    echo "1..0 # SKIP node is not installed"
    exit 0
fi
exec node "$top_srcdir/tests/web/unit.mjs"
