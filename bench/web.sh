#!/bin/sh
# The page with 100,000 frames beside a bare canvas page: navigation to drawn, and the cost of a redraw.
set -u
. "$top_srcdir/tests/web/chromium.sh"
exec node "$top_srcdir/bench/web.mjs"
