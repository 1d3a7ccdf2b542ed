# Sourced by the tests that need a browser: sees to node, chromium and playwright-core, or skips and says why.

skip()
{
    echo "1..0 # SKIP $1"
    exit 0
}

[ -z "${VV_QUICK:-}" ] || skip "a quick run: no browser"
command -v node >/dev/null 2>&1 || skip "node is not installed"
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -x "${CHROMIUM:-}" ] || skip "chromium is not installed"
export CHROMIUM
VV_NODE_DIR=${VV_NODE_DIR:-$top_builddir/web-tests}
export VV_NODE_DIR
# Not while another test is about to install it.
mkdir -p "$VV_NODE_DIR"
exec 9>"$VV_NODE_DIR/lock"
flock 9
if [ ! -d "$VV_NODE_DIR/node_modules/playwright-core" ]; then
    command -v npm >/dev/null 2>&1 || skip "npm is not installed, and playwright-core is not in $VV_NODE_DIR"
    cp "$top_srcdir/tests/web/package.json" "$VV_NODE_DIR/package.json"
    chmod u+w "$VV_NODE_DIR/package.json"
    (cd "$VV_NODE_DIR" && npm install --no-audit --no-fund --no-package-lock --ignore-scripts >npm.log 2>&1) ||
        skip "npm could not install playwright-core (see $VV_NODE_DIR/npm.log)"
fi
exec 9>&-
