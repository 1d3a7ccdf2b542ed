#!/bin/sh
# luacheck over the sources of penlight: the same output as under lua5.4, and for each function as many calls as a
# hook of the program itself counted in the same process.
dir=$top_srcdir/tests/hosts/lua
checked=${VV_LUACHECK:-/usr/share/lua/5.4/pl} # or less of it
if ! [ -f /usr/bin/luacheck ] || ! [ -e $checked ] || ! command -v lua5.4 >/dev/null || ! command -v jq >/dev/null; then
    echo "1..0 # SKIP needs jq, lua5.4, lua-check and lua-penlight"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH_5_4 BAML_PROFILE
LUA_PATH="/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
export LUA_PATH
echo 1..6
bad=0
result() {
    [ "$1" = 0 ] && echo "ok $2" || { echo "not ok $2"; bad=1; }
}

lua5.4 /usr/bin/luacheck $checked >"$tmp/want" 2>&1
want=$?
COUNT_FILE=$tmp/counts LUA_INIT=@$dir/count.lua VARVE_FAKE_BRIEF=1 VARVE_FAKE_TREE=$tmp/tree \
    "$top_builddir/varve-lua-tree" /usr/bin/luacheck $checked >"$tmp/got" 2>&1
got=$?
[ "$want" = "$got" ] && cmp "$tmp/want" "$tmp/got"
result $? "1 - output and exit status are those of lua5.4"
lua5.4 "$dir/compare.lua" "$tmp/counts" "$tmp/tree"
result $? "2 - every function has the calls that the program's own hook counted"
[ "$(tail -n 1 "$tmp/tree")" = "faults 0" ] && grep -q '^self = inclusive$' "$tmp/tree"
result $? "3 - the self times add up to the root's inclusive time"

# The same through ring, epoch and store.
BAML_PROFILE_DIR=$tmp/store COUNT_FILE=$tmp/counts LUA_INIT=@$dir/count.lua \
    "$top_builddir/varve-lua" /usr/bin/luacheck $checked >"$tmp/got" 2>&1
[ "$want" = "$?" ] && cmp "$tmp/want" "$tmp/got"
result $? "4 - output and exit status with the store"
"$top_builddir/varve" top --json -n 1000 --store "$tmp/store" >"$tmp/top" &&
    jq -r '.items[] | ["calls", .calls, .definition_key, .file // "", (.span // [0])[0]] | @tsv' "$tmp/top" >"$tmp/rows" &&
    lua5.4 "$dir/compare.lua" "$tmp/counts" "$tmp/rows"
result $? "5 - every function in the store has the calls that the program's own hook counted"
[ "$(jq -r .evidence.verdict "$tmp/top")" = complete ]
result $? "6 - the evidence is complete"
exit $bad
