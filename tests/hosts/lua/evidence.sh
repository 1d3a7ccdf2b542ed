#!/bin/sh
# What is selected, and the values that are captured: evidence/NAME.lua, run with the arguments `one two`, must give the
# evidence evidence/NAME.expected (see evidence.py), which was worked out by hand. By the public layout it is the same.
# Runtime ids: ids.lua prints those that its selected calls must have.
. "$top_srcdir/tests/hosts/lua/recorded.sh"
run() { # SCRIPT ARGUMENTS…
    rm -rf "$tmp/store"
    "$lua" "$@" >"$tmp/out" 2>"$tmp/err" && ! grep -q Sanitizer "$tmp/err" && evidence
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
