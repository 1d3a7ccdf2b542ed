#!/bin/sh
# The library `varve` of Lua programs is the same with profiling on, off and with another profiler, by the private and
# by the public layout.
dir=$top_srcdir/tests/hosts/lua/library
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE VARVE_PROFILER
plugin=$(cd "$top_builddir" && pwd)/tests/hosts/lua/.libs/log_plugin.so
n=0 bad=0
check() { # NAME WANTED COMMAND…
    n=$((n + 1)) name=$1 want=$2
    shift 2
    "$@" >"$tmp/out" 2>&1
    status=$?
    if [ $status = 0 ] && cmp -s "$want" "$tmp/out"; then
        echo "ok $n - $name"
    else
        bad=$((bad + 1))
        diff "$want" "$tmp/out" | head -20 | sed 's/^/# /'
        echo "not ok $n - $name: status $status"
    fi
}
lua=$top_builddir/varve-lua
export BAML_PROFILE_DIR="$tmp/store"
echo "checks: 113" >"$tmp/want"
check "on" "$tmp/want" "$lua" "$dir/identity.lua"
check "off" "$tmp/want" env BAML_PROFILE=0 "$lua" "$dir/identity.lua"
check "with a profiler" "$tmp/want" "$lua" "--profiler=$plugin=$tmp/log,calls,exceptions,threads" "$dir/identity.lua"
check "with a profiler alone" "$tmp/want" env BAML_PROFILE=0 "$lua" "--profiler=$plugin=$tmp/log,main,calls,arguments,results,exceptions,threads" "$dir/identity.lua"
check "by the public layout" "$tmp/want" env VARVE_LUA_LAYOUT=public "$lua" "$dir/identity.lua"
check "off, by the public layout" "$tmp/want" env VARVE_LUA_LAYOUT=public BAML_PROFILE=0 "$lua" "$dir/identity.lua"
check "activations" "$dir/activations.expected" "$lua" "$dir/activations.lua"
check "activations, off" "$dir/activations.expected" env BAML_PROFILE=0 "$lua" "$dir/activations.lua"
echo "1..$n"
[ "$bad" = 0 ]
