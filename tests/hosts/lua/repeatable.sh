#!/bin/sh
# --repeatable: a program whose calls follow the order of hash tables makes the same calls in every run, and sees no
# sign of the option.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
cat >"$tmp/order.lua" <<'END'
local calls = 0
local function touch() calls = calls + 1 end
local t = {}
for i = 1, 200 do t[{}] = i; t["key" .. i] = i; t[function() end] = i end
local last = 0
for _, v in pairs(t) do
  if v > last then touch() end
  last = v
end
local list = {}
for k in pairs(t) do if type(k) == "string" then list[#list + 1] = k end end
table.sort(list, function(a, b) return #a < #b or #a == #b and a < b end)
for i = 1, math.random(50) do touch() end
local big = {}
for i = 1, 2000 do big[i] = ("x"):rep(i * 7 % 5000) end
for i = 1, 2000, 3 do big[i] = nil end
collectgarbage()
for k, v in pairs(setmetatable({}, { __mode = "k" })) do touch() end
print(calls, #arg, arg[-1] ~= "--repeatable", arg[1])
END
echo 1..3
bad=0
result() {
    [ "$1" = 0 ] && echo "ok $2" || { echo "not ok $2"; bad=1; }
}
record() { # NAME PADDING OPTION…
    name=$1 padding=$2
    shift 2
    PADDING=$padding VARVE_FAKE_TREE=$tmp/$name.tree "$top_builddir/varve-lua-tree" "$@" "$tmp/order.lua" one >"$tmp/$name.out" 2>"$tmp/$name.err"
}
if ! setarch -R true 2>/dev/null; then
    echo "ok 1 # SKIP the system does not allow fixed addresses"
    echo "ok 2 # SKIP"
    echo "ok 3 # SKIP"
    exit 0
fi
record a '' --repeatable && record b "$(printf %4000s | tr ' ' x)" --repeatable && record c 'a' --repeatable
grep -q "1	true	one$" "$tmp/a.out"
result $? "1 - the program doesn't see the option"
cmp "$tmp/a.out" "$tmp/b.out" && cmp "$tmp/a.out" "$tmp/c.out"
result $? "2 - equal output, whatever the environment"
cmp "$tmp/a.tree" "$tmp/b.tree" && cmp "$tmp/a.tree" "$tmp/c.tree"
result $? "3 - equal trees"
exit $bad
