#!/bin/sh
# What is selected, and the values that are captured: evidence/NAME.lua, run with the arguments `one two`, must give the
# evidence evidence/NAME.expected (see evidence.py), which was worked out by hand. By the public layout it is the same.
# Runtime ids: ids.lua prints those that its selected calls must have.
dir=$top_srcdir/tests/hosts/lua
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP needs python3"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
varve=$(cd "$top_builddir" && pwd)/varve lua=$(cd "$top_builddir" && pwd)/varve-lua
export BAML_PROFILE_DIR="$tmp/store"
n=0 bad=0
result() { # STATUS TEXT FILE…
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
run() { # SCRIPT ARGUMENTS…
    rm -rf "$tmp/store"
    "$lua" "$@" >"$tmp/out" 2>"$tmp/err" && ! grep -q Sanitizer "$tmp/err" &&
        "$varve" dump --store "$tmp/store" >"$tmp/dump" &&
        python3 "$dir/evidence.py" "$tmp/dump" "$tmp/store" >"$tmp/got"
}
cd "$dir/evidence" || exit 1
for expected in *.expected; do
    name=${expected%.expected}
    run "$name.lua" one two && diff "$expected" "$tmp/got" >"$tmp/diff"
    result $? "$name" "$tmp/diff" "$tmp/err"
done
# The tail call's place is not seen there, nor is the name of a function of the same line.
VARVE_LUA_LAYOUT=public run policy.lua one two && diff policy.expected "$tmp/got" >"$tmp/diff"
result $? "policy, by the public layout" "$tmp/diff" "$tmp/err"
run ids.lua
python3 "$dir/evidence.py" "$tmp/dump" "$tmp/store" ids >"$tmp/ids"
diff "$tmp/out" "$tmp/ids" >"$tmp/diff"
result $? "runtime ids" "$tmp/diff" "$tmp/got"
echo "1..$n"
exit $bad
