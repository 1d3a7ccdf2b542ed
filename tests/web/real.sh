#!/bin/sh
# The page in headless Chromium against `varve serve`, on programs that varve-lua records meanwhile.
set -u
. "$top_srcdir/tests/web/chromium.sh"
for program in varve varve-lua; do
    [ -x "$top_builddir/$program" ] || skip "$program is not built"
done
exec node "$top_srcdir/tests/web/real.mjs"
