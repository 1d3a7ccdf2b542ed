#!/bin/sh
# Random programs of errors (unwinds.lua): which calls an error will end is said at its throw. Every selected call that
# ends Errored must have a link to an error, and no other one; nothing is lost, and all equations hold.
dir=$top_srcdir/tests/hosts/lua
if ! command -v python3 >/dev/null || ! command -v jq >/dev/null; then
    echo "1..0 # SKIP needs python3 and jq"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
export BAML_PROFILE_DIR="$tmp/store"
echo "errored: many" >"$tmp/want"
n=0 bad=0
check() { # SEED LAYOUT
    n=$((n + 1))
    rm -rf "$tmp/store"
    VARVE_LUA_LAYOUT=$2 "$top_builddir/varve-lua" "$dir/unwinds.lua" "$1" 150 >"$tmp/out" 2>"$tmp/err" &&
        [ "$(cat "$tmp/out")" = "done" ] && "$top_builddir/varve" dump --store "$tmp/store" >"$tmp/dump" &&
        python3 "$dir/evidence.py" "$tmp/dump" "$tmp/store" links >"$tmp/got" && diff "$tmp/want" "$tmp/got" >"$tmp/diff" &&
        "$top_builddir/varve" show latest --json --store "$tmp/store" >"$tmp/show" &&
        [ "$(jq -r .evidence.verdict "$tmp/show")" = complete ]
    if [ $? = 0 ]; then
        echo "ok $n - seed $1, layout $2"
    else
        bad=1
        head -n 20 "$tmp/err" "$tmp/out" "$tmp/diff" "$tmp/got" | sed 's/^/# /'
        echo "not ok $n - seed $1, layout $2"
    fi
}
for seed in ${VV_SEEDS:-1 2 3}; do
    check "$seed" private
    check "$seed" public
done
echo "1..$n"
exit $bad
