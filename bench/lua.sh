#!/bin/bash
# varve-lua against lua5.4 and against an interpreter with an empty hook: median wall time of interleaved rounds
# (VV_BENCH_ROUNDS, 15), its spread, and ratios. Every round runs each interpreter once, in turn. Also: profiling
# switched off.
rounds=${VV_BENCH_ROUNDS:-15}
dir=$top_srcdir/bench/programs
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH_5_4 BAML_PROFILE
export LUA_PATH="/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
# The programs themselves, not libtool's scripts around them.
varve_lua=$top_builddir/.libs/varve-lua
[ -x "$varve_lua" ] || varve_lua=$top_builddir/varve-lua
export LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

once() { # COMMAND…: milliseconds of wall time
    local from=$EPOCHREALTIME to
    "$@" >/dev/null 2>&1
    to=$EPOCHREALTIME
    echo $(((${to/./} - ${from/./}) / 1000))
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
spread() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%d..%d", v[1], v[NR] }'; }

compare() { # NAME ARGUMENTS…
    local name=$1 round
    shift
    rm -f "$tmp"/*.ms
    for ((round = 0; round < rounds; round++)); do
        once lua5.4 "$@" >>"$tmp/lua.ms"
        once "$top_builddir/bench/emptyhook" "$@" >>"$tmp/hook.ms"
        BAML_PROFILE=0 once "$varve_lua" "$@" >>"$tmp/off.ms"
        rm -rf "$tmp/store"
        BAML_PROFILE_DIR=$tmp/store once "$varve_lua" "$@" >>"$tmp/varve.ms"
    done
    local lua hook off varve
    lua=$(median "$tmp/lua.ms") hook=$(median "$tmp/hook.ms") off=$(median "$tmp/off.ms") varve=$(median "$tmp/varve.ms")
    echo "$name, ms of $rounds rounds: lua5.4 $lua ($(spread "$tmp/lua.ms")), empty hook $hook ($(spread "$tmp/hook.ms"))," \
        "off $off ($(spread "$tmp/off.ms")), varve-lua $varve ($(spread "$tmp/varve.ms"))"
    awk -v n="$name" -v l="$lua" -v h="$hook" -v o="$off" -v v="$varve" \
        'BEGIN { printf "%s: varve-lua %.2fx lua5.4, %.2fx an empty hook; off %.2fx lua5.4\n", n, v / l, v / h, o / l }'
}

# What each run pays once: start, and at the end the last commit with its fsyncs.
echo 'local nothing' >"$tmp/nothing.lua"
compare nothing "$tmp/nothing.lua"
compare n-queens "$dir/queens.lua" 10
compare binary-trees "$dir/trees.lua" 16
[ -f /usr/bin/luacheck ] && compare luacheck /usr/bin/luacheck /usr/share/lua/5.4/pl
exit 0
