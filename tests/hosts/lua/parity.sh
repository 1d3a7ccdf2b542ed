#!/bin/bash
# A program's output, error texts and status are what they are with profiling off: recorded, by the public layout, with a
# profiler, with no room on the disk, and where memory is denied. The programs are those of errors/ and evidence/, and
# parity/ has some that tell all they see of their errors.
dir=$top_srcdir/tests/hosts/lua
build=$(cd "$top_builddir" && pwd)
. "$top_srcdir/tests/tools/lua.sh"
shim=$build/tests/runtime/.libs/fault_shim.so plugin=$build/tests/hosts/lua/.libs/log_plugin.so
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE VARVE_PROFILER VARVE_STATUS
export BAML_PROFILE_DIR=$tmp/store BAML_PROFILE_PUBLISH_INTERVAL_MS=2
n=0 bad=0
sanitized=false
grep -q __asan_init "$lua" && sanitized=true
cd "$dir" || exit 1
all=$(ls errors/*.lua evidence/*.lua parity/*.lua | grep -vE '/(ids|memory|overflow|deep|endless)\.lua')
few=$(grep -E "/(told|warns|fan_out|wrap|handler|closing|native|closed|exit|hook|values)\.lua" <<<"$all")
scripts=$all

# What differs from run to run in any case: addresses, and which LocalId it is. And a hook takes a few slots of a stack
# that is full.
same_text() {
    sed -E 's/0x[0-9a-f]{6,}/ADDRESS/g; s/baml_id_1_[A-Za-z0-9_-]{22}/ID/g; s/skipping [0-9]+ levels/skipping N levels/'
}
run() { # NAME [VARIABLE=VALUE…]: all scripts, told to $tmp/NAME
    local name=$1 script
    shift
    for script in $scripts; do
        rm -rf "$tmp/store"
        echo "== $script"
        (cd "$(dirname "$script")" && exec env "$@" "$lua" "${options[@]}" "$(basename "$script")" one two) \
            >"$tmp/out" 2>"$tmp/err" </dev/null
        echo "status $?"
        same_text <"$tmp/out"
        echo "-- errors"
        same_text <"$tmp/err"
    done >"$tmp/$name"
}
result() { # NAME TEXT [AS]
    local as=${3:-off}
    n=$((n + 1))
    if cmp -s "$tmp/$as" "$tmp/$1"; then
        echo "ok $n - $2"
    else
        bad=1
        diff "$tmp/$as" "$tmp/$1" | head -30 | sed 's/^/# /'
        echo "not ok $n - $2"
    fi
}
# A session that is not done in time is left as it is, which is no leak.
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:${ASAN_OPTIONS:-}
options=()
run off BAML_PROFILE=0
run on
result on "recorded"
scripts=$few
run few BAML_PROFILE=0
run public VARVE_LUA_LAYOUT=public
result public "by the public layout" few
options=("--profiler=$plugin=$tmp/log,calls,exceptions,threads")
run plugin
result plugin "with a profiler beside the recorder" few
options=()
for at in 1 3; do
    [ -e "$shim" ] || break
    run full LD_PRELOAD="$shim" FAULT_CALL=write FAULT_ERRNO=28 FAULT_AT=$at FAULT_COUNT=1000000
    result full "no room on the disk, from write $at on" few
done
limited() { # MiB TEXT AS: of address space
    if $sanitized; then
        n=$((n + 1))
        echo "ok $n - $2 # SKIP a limit to memory is none under sanitizers"
    else
        (ulimit -v $(($1 * 1024)) && run denied)
        result denied "$2" "$3"
    fi
}
for limit in 24 28 32 40; do # too little to begin with, for a ring, for values
    limited $limit "with $limit MiB of memory" few
done
# Recursion until Lua's stack is full, which takes 130 MiB without a recording.
scripts=parity/endless.lua
run endless BAML_PROFILE=0
for limit in 220 260; do
    limited $limit "an endless recursion with $limit MiB of memory" endless
done
echo "1..$n"
exit $bad
