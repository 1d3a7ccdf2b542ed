#!/bin/sh
# No function is ever taken for another: thousands of chunks are loaded and collected, and each function's recorded
# calls must be those it counted itself. Once for each way to identify functions.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
seed=${VV_SEED:-1}
echo "# VV_SEED=$seed"
echo 1..2
bad=0 n=0
for layout in private public; do
    n=$((n + 1))
    VARVE_LUA_LAYOUT=$layout VARVE_FAKE_BRIEF=1 VARVE_FAKE_TREE=$tmp/tree \
        "$top_builddir/varve-lua-tree" "$top_srcdir/tests/hosts/lua/stress.lua" "$seed" >"$tmp/out" 2>"$tmp/err"
    sort "$tmp/out" >"$tmp/want"
    # Equal texts are one chunk, so a key has one row.
    awk -F '\t' '$1 == "calls" && $3 ~ /^gen/ { print $3 "\t" $2 }' "$tmp/tree" | sort >"$tmp/got"
    if [ -s "$tmp/want" ] && diff "$tmp/want" "$tmp/got" >"$tmp/diff" && [ "$(tail -n 1 "$tmp/tree")" = "faults 0" ] &&
        grep -q '^self = inclusive$' "$tmp/tree"; then
        echo "ok $n - layout $layout"
    else
        head -n 20 "$tmp/diff" "$tmp/err" | sed 's/^/# /'
        echo "not ok $n - layout $layout"
        bad=1
    fi
done
exit $bad
