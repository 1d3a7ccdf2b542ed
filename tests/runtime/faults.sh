#!/bin/sh
# varve-lua on a disk that fails or is full, beside a process that is stopped at the store's lock, and killed: the
# program's own output and status stay what they are without profiling, and what is in the store is whole.
set -u
shim=$top_builddir/tests/runtime/.libs/fault_shim.so
varve=$top_builddir/varve
. "$top_srcdir/tests/tools/lua.sh"
program=$top_srcdir/tests/runtime/faults.lua
if [ ! -e "$shim" ] || [ ! -x "$lua" ]; then
    echo "1..0 # SKIP needs shared libraries and varve-lua"
    exit 0
fi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset BAML_PROFILE LUA_INIT LUA_INIT_5_4 VARVE_STATUS
BAML_PROFILE_PUBLISH_INTERVAL_MS=2
BAML_PROFILE_DIR=$dir/s/profiles-v1
ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-}
FAULT_MARK=$dir/mark
export BAML_PROFILE_PUBLISH_INTERVAL_MS BAML_PROFILE_DIR ASAN_OPTIONS FAULT_MARK
n=0
failed=0
result() { # status description
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

BAML_PROFILE=0 "$lua" "$program" >"$dir/want" 2>"$dir/want.err"
echo $? >>"$dir/want"

# What the store says is whole: no damage, nothing that names what is not there.
check_store() {
    [ -d "$BAML_PROFILE_DIR/streams" ] || return 0
    "$varve" dump "$BAML_PROFILE_DIR" >"$dir/dump" 2>"$dir/err" || { sed 's/^/# /' "$dir/err"; return 1; }
    ! grep -E -o 'CorruptDataSegment|MissingDataSegment|IndexCorrupt|MissingParent|MissingStart|Unresolved[A-Za-z]*|"error"' \
        "$dir/dump" | sed 's/^/# /' | grep .
}

run() { # runs the program under the faults of the environment, and compares
    rm -rf "$dir/s" "$dir/mark"
    mkdir "$dir/s"
    LD_PRELOAD=$shim "$lua" "$program" >"$dir/got" 2>"$dir/got.err"
    echo $? >>"$dir/got"
    [ "${FAULT_AT:-99}" -gt 8 ] || [ -e "$dir/mark" ] || { echo "# no fault came"; return 1; }
    cmp -s "$dir/want" "$dir/got" && cmp -s "$dir/want.err" "$dir/got.err" && check_store
}

run
result $? "without a fault"
for call in open write fsync rename; do
    for os in 5 28; do
        bad=0
        for at in 1 2 3 4 5 6 7 8 9 10 11 12 14 17 20 24; do
            FAULT_CALL=$call FAULT_ERRNO=$os FAULT_AT=$at run || { echo "# $call fails with $os at $at"; bad=1; }
        done
        for at in 1 3 5 8 13; do
            FAULT_CALL=$call FAULT_ERRNO=$os FAULT_AT=$at FAULT_COUNT=1000000 run ||
                { echo "# $call fails with $os from $at on"; bad=1; }
        done
        result $bad "$call fails with errno $os, once and for good"
    done
done

# Somebody holds the lock and is stopped.
rm -rf "$dir/s"
mkdir "$dir/s"
"$lua" "$program" >/dev/null 2>&1
if command -v flock >/dev/null; then
    flock "$BAML_PROFILE_DIR/publish.lock" sh -c 'echo $$ >"$1"; kill -STOP $$' sh "$dir/held" &
    holder=$!
    while [ ! -s "$dir/held" ]; do sleep 0.01; done
    mode=0
    timeout 30 "$lua" "$program" >"$dir/got" 2>"$dir/got.err"
    echo $? >>"$dir/got"
    cmp -s "$dir/want" "$dir/got" && cmp -s "$dir/want.err" "$dir/got.err" || mode=1
    kill -CONT "$(cat "$dir/held")"
    wait $holder
    check_store || mode=1
    result $mode "beside a process that is stopped at the lock"
fi

# Killed on the way: what it wrote itself is a beginning of what it would have written.
bad=0
for ms in 005 010 015 020 025 030 040; do
    rm -rf "$dir/s"
    mkdir "$dir/s"
    "$lua" "$program" >"$dir/got" 2>/dev/null &
    pid=$!
    sleep 0.$ms
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    head -c "$(wc -c <"$dir/got")" "$dir/want" | cmp -s - "$dir/got" || bad=1
    check_store || bad=1
done
result $bad "killed at seven moments"
echo "1..$n"
exit $failed
