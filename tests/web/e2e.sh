#!/bin/sh
# The page in headless Chromium against a stand-in for the server.
set -u
. "$top_srcdir/tests/web/chromium.sh"
exec node "$top_srcdir/tests/web/e2e.mjs"
