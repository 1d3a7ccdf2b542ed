# What the tests of recorded evidence share; sourced, by sh too. $dir is this directory, $tmp one of the test's own with
# the store, $varve and $lua are the programs.
dir=$top_srcdir/tests/hosts/lua
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP needs python3"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
varve=$(cd "$top_builddir" && pwd)/varve
. "$top_srcdir/tests/tools/lua.sh"
export BAML_PROFILE_DIR="$tmp/store"
n=0 bad=0
result() { # STATUS TEXT FILE…: what the files hold is shown of a failure
    n=$((n + 1)) status=$1 text=$2
    shift 2
    if [ "$status" = 0 ]; then
        echo "ok $n - $text"
    else
        bad=1
        sed 's/^/# /' "$@"
        echo "not ok $n - $text"
    fi
}
evidence() { # ARGUMENTS OF evidence.py…: of what the store holds, to $tmp/got
    "$varve" dump --store "$tmp/store" >"$tmp/dump" &&
        python3 "$dir/evidence.py" "$tmp/dump" "$tmp/store" "$@" >"$tmp/got"
}
