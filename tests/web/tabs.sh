#!/bin/sh
# Many tabs of the page in headless Chromium: one of them follows the store, all of them show it.
set -u
. "$top_srcdir/tests/web/chromium.sh"
for program in varve varve-lua; do
    [ -x "$top_builddir/$program" ] || skip "$program is not built"
done
exec node "$top_srcdir/tests/web/tabs.mjs"
