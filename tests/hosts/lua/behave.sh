#!/bin/bash
# The interpreter behaves as lua5.4: each command runs under both, as the same program name; standard output, standard
# error and status must be equal. `lua` is the interpreter under test.
reference=$(command -v lua5.4)
if [ -z "$reference" ]; then
    echo "1..0 # SKIP needs lua5.4"
    exit 0
fi
tested=$(cd "$top_builddir" && pwd)/varve-lua-tree
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 LUA_CPATH BAML_PROFILE
export TERM=dumb INPUTRC=/dev/null
mkdir "$tmp/work" && cd "$tmp/work" || exit 1

cat >args.lua <<'END'
print(#arg, ...)
for i = -6, 6 do if arg[i] then print(i, (arg[i]:gsub("^.*/varve%-lua%-tree$", "lua"))) end end
END
cat >mod.lua <<'END'
return { name = ..., call = function() return "called" end }
END
cat >fails.lua <<'END'
#!/usr/bin/env lua
local function inner() error("deep") end
local function outer() inner() end
outer()
END
printf 'local x = = 1\n' >syntax.lua
printf '\xEF\xBB\xBF# comment\nprint(debug.getinfo(1).currentline)\n' >bom.lua
cat >hooks.lua <<'END'
-- What a script's own hook sees, told in full: events, lines and names, in the main thread and in coroutines.
local log = {}
local function note(event, line)
  local info = debug.getinfo(2, "nSlt")
  log[#log + 1] = table.concat({ event, tostring(line), tostring(info.name), info.what, info.short_src, info.currentline,
    tostring(info.istailcall) }, " ")
end
local function leaf(n) return n end
local function tail(n) return leaf(n) end
local function work()
  local t = {}
  for i = 1, 3 do
    t[i] = tail(i)
  end
  table.sort(t, function(a, b) return a > b end)
  pcall(error, "x")
  local co = coroutine.wrap(function() coroutine.yield(leaf(1)) return 2 end)
  co() co()
  return #t
end
for _, mask in ipairs { "c", "r", "l", "cr", "crl", "" } do
  for _, count in ipairs { 0, 1, 7 } do
    log = {}
    debug.sethook(note, mask, count)
    print(debug.gethook() == note, select(2, debug.gethook()), select(3, debug.gethook()))
    work()
    debug.sethook()
    print(mask, count, #log, debug.gethook())
    print(table.concat(log, "\n"))
  end
end
local co = coroutine.create(function() print(debug.gethook()) work() coroutine.yield() work() end)
debug.sethook(co, note, "crl", 5)
log = {}
print(select(2, debug.gethook(co)), (debug.gethook()))
coroutine.resume(co)
coroutine.resume(co)
print(#log)
print(table.concat(log, "\n"))
debug.sethook(note, "c")
local inherits = coroutine.create(function() return debug.gethook() end)
print(select(2, coroutine.resume(inherits)), select(3, debug.gethook(inherits)))
debug.sethook()
print(pcall(function()
  debug.sethook(function() error("from the hook") end, "l")
  local a = 1
  return a
end))
print(debug.gethook())
debug.sethook(function() debug.sethook() error("once") end, "", 1)
print("not reached")
END
cat >stack.lua <<'END'
local function where(...) print(debug.traceback("here", 1)) return ... end
local function tail() return where() end
tail()
local co = coroutine.create(function() local x = 1 where() coroutine.yield() error({}) end)
coroutine.resume(co)
print(debug.traceback(co))
print(debug.traceback(co, "msg", 1))
print(coroutine.resume(co))
print(debug.traceback(co))
for level = 0, 5 do
  local i = debug.getinfo(level, "nSlut")
  print(level, i and i.name, i and i.what, i and i.currentline, i and i.nups, i and i.istailcall)
end
table.sort({ 3, 2, 1 }, function(a, b) if a == 1 then print(debug.traceback()) end return a < b end)
print(select("#", debug.getlocal(1, 1)), debug.getlocal(1, 1))
END
cat >coroutines.lua <<'END'
print(coroutine.resume(coroutine.create(function() error("plain") end)))
print(coroutine.resume(coroutine.create(function() error({}) end)) )
print(pcall(coroutine.wrap(function() error("wrapped") end)))
print(pcall(coroutine.wrap(function() local x <close> = setmetatable({}, { __close = function(_, e) print("closing", e) end }) error("w") end)))
local co = coroutine.create(function() local x <close> = setmetatable({}, { __close = function() print("closed") end }) coroutine.yield(1) end)
print(coroutine.resume(co))
print(coroutine.close(co), coroutine.status(co), coroutine.resume(co))
local bad = coroutine.create(function() local x <close> = setmetatable({}, { __close = function() error("in close") end }) coroutine.yield(1) end)
coroutine.resume(bad)
print(coroutine.close(bad))
print(coroutine.resume(coroutine.running()))
local self
self = coroutine.create(function() return coroutine.resume(self) end)
print(coroutine.resume(self))
print(coroutine.resume(self))
local function nest(n) if n == 0 then return "bottom" end return coroutine.wrap(nest)(n - 1) end
print(nest(50))
print(pcall(nest, 250))
print(select(2, pcall(string.rep)))
for w in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do print(w) end
print(pcall(coroutine.wrap(function() pcall(coroutine.yield, 1) error("after") end)))
local p = coroutine.wrap(function() print(pcall(function() coroutine.yield(1) error("caught inside") end)) return "end" end)
print(p(), p())
END
cat >overflow.lua <<'END'
local depth = 0
local function down() depth = depth + 1 return 1 + down() end
local ok, message = pcall(down)
print(ok, message, depth > 100000)
local function c(s) return (s:gsub(".", c)) end
local ok, message = pcall(c, "x")
print(ok, message)
local m = setmetatable({}, {})
getmetatable(m).__index = function(t, k) return t[k + 1] end
print(pcall(function() return m[1] end))
print(xpcall(down, function() local function again() return 1 + again() end return again() end))
print(select("#", pcall(string.rep, "x", -1)))
END

n=0 bad=0
run() { # BINARY COMMAND OUT: the command in a directory as the other's, with `lua` as the binary
    (
        bin=$1 LUA_OUT=$3
        lua() { (ulimit -t 10; exec -a lua "$bin" "$@"); }
        eval "$2" >"$3.out" 2>"$3.err" </dev/null
        echo $? >"$3.status"
    ) 2>/dev/null
    # Addresses differ from run to run, and a hook takes a few stack slots of its own near the limit.
    sed -i -E 's/0x[0-9a-f]{6,}/ADDRESS/; s/skipping [0-9]+ levels/skipping N levels/' "$3.out" "$3.err"
}
t() { # NAME COMMAND
    n=$((n + 1))
    run "$reference" "$2" "$tmp/want"
    VARVE_FAKE_BRIEF=1 VARVE_FAKE_TREE=$tmp/tree run "$tested" "$2" "$tmp/got"
    if cmp -s "$tmp/want.out" "$tmp/got.out" && cmp -s "$tmp/want.err" "$tmp/got.err" && cmp -s "$tmp/want.status" "$tmp/got.status"; then
        echo "ok $n - $1"
    else
        bad=$((bad + 1))
        for part in out err status; do diff -a "$tmp/want.$part" "$tmp/got.$part" | head -20 | sed 's/^/# /'; done
        echo "not ok $n - $1"
    fi
}

t "no option that exists" 'lua -x'
t "option without argument" 'lua -e'
t "option -l without argument" 'lua -l'
t "option -e before an option" 'lua -e -v'
t "long option" 'lua --version'
t "long text after -v" 'lua -vx'
t "version" 'lua -v'
t "version and statement" 'lua -v -e "print(1)"'
t "statement" 'lua -e "print(1, nil, true, 2^53)"'
t "statement without space" 'lua -e"print(arg[0], arg[-1], #arg)"'
t "two statements" 'lua -e "x = 1" -e "print(x)"'
t "statement fails" 'lua -e "error(\"boom\")"'
t "statement with a syntax error" 'lua -e "x ="'
t "later statements are not run" 'lua -e "error()" -e "print(2)"'
t "error without value" 'lua -e "error()"'
t "error with a number" 'lua -e "error(42)"'
t "error with a table" 'lua -e "error({})"'
t "error with a text of its own" 'lua -e "error(setmetatable({}, {__tostring = function() return \"me\" end}))"'
t "error with a bad text of its own" 'lua -e "error(setmetatable({}, {__tostring = function() return 1 end}))"'
t "error with a level" 'lua -e "local function f() error(\"up\", 2) end f()"'
t "error with nil and a function" 'lua -e "error(print)"'
t "runtime error" 'lua -e "local t = nil; t.x = 1"'
t "call of a nil global" 'lua -e "nosuch()"'
t "arithmetic on a field" 'lua -e "local t = {} ; return t.a.b + 1"'
t "script with arguments" 'lua args.lua a "b c" -x'
t "options before the script in arg" 'lua -e "local x" -W args.lua 1'
t "two dashes" 'lua -- args.lua -v'
t "script from standard input" 'echo "print(...)" | lua - a b'
t "standard input without a script" 'echo "print(arg[0], #arg)" | lua'
t "standard input fails" 'printf "local x\nerror(\"in\")\n" | lua -'
t "standard input with a syntax error" 'echo "x = = 1" | lua'
t "script that fails" 'lua fails.lua'
t "script with a syntax error" 'lua syntax.lua'
t "script with a mark and a comment" 'lua bom.lua'
t "no such script" 'lua nosuch.lua'
t "a directory as script" 'lua .'
t "arg is no table" 'lua -e "arg = 1" args.lua'
t "arg changed" 'lua -e "arg[1] = \"changed\"" args.lua x y'
t "library" 'lua -l mod -e "print(mod.name, mod.call())"'
t "library under another name" 'lua -l m=mod -e "print(m.name)"'
t "no such library" 'lua -l nosuch -e "print(1)"'
t "LUA_INIT" 'LUA_INIT="print(\"init\", arg[0])" lua -e "print(2)"'
t "LUA_INIT of a version" 'LUA_INIT="print(1)" LUA_INIT_5_4="print(54)" lua -e "print(2)"'
t "LUA_INIT from a file" 'LUA_INIT=@args.lua lua -e "print(2)"'
t "LUA_INIT fails" 'LUA_INIT="error(\"i\")" lua -e "print(2)"'
t "LUA_INIT without a file" 'LUA_INIT=@nosuch lua -e "print(2)"'
t "no environment" 'LUA_INIT="print(1)" LUA_PATH=x lua -E -e "print(package.path)"'
t "LUA_PATH" 'LUA_PATH="./?.lua;;" lua -e "print(package.path, require(\"mod\").name, select(2, require(\"mod\")))"'
t "warnings off" 'lua -e "warn(\"quiet\")"'
t "warnings on" 'lua -W -e "warn(\"lo\", \"ud\") warn(\"@off\") warn(\"no\")"'
t "error in a finalizer" 'lua -W -e "setmetatable({}, {__gc = function() error(\"gc\") end}) collectgarbage()"'
t "finalizer at the end" 'lua -e "x = setmetatable({}, {__gc = function() print(\"bye\") end})"'
t "exit with true" 'lua -e "os.exit(true)"'
t "exit with false" 'lua -e "os.exit(false)"'
t "exit with a number" 'lua -e "os.exit(3)"'
t "exit that closes" 'lua -e "x = setmetatable({}, {__gc = function() print(\"bye\") end}) local c <close> = setmetatable({}, {__close = function() print(\"close\") end}) os.exit(4, true)"'
t "exit from a coroutine" 'lua -e "coroutine.wrap(function() os.exit(5) end)()"'
t "exit from a coroutine that closes" 'lua -e "coroutine.wrap(function() os.exit(6, true) end)()"'
t "end without a newline" 'lua -e "io.write(\"no newline\")"'
t "interactive" 'printf "print(1)\n1 + 1\n=3\nx = \n5\nx\nerror(\"i\")\nnil\n)\n" | lua -i'
t "interactive after a script" 'echo "print(name)" | lua -i -e "name = \"n\"" mod.lua'
t "interactive with a prompt" 'printf "_PROMPT = \"? \"\n1\nfor i = 1, 2 do\nprint(i) end\nprint = nil\n2\n" | lua -i'
t "interactive without an end" 'printf "f(" | lua -i'
t "interactive with an error value" 'printf "error({})\nerror(nil)\n" | lua -i'
t "io.read" 'printf "one\n2 three\nrest\n" | lua -e "print(io.read()) print(io.read(\"n\", \"l\")) print(io.read(\"a\"))"'
t "io.lines" 'printf "a\nb\n" | lua -e "for l in io.lines() do print(l) end"'
t "popen" 'lua -e "print(io.popen(\"echo hi\"):read(\"a\")) print(os.execute(\"exit 3\"))"'
t "traceback and levels" 'lua stack.lua'
t "coroutines" 'lua coroutines.lua'
t "hooks of the script" 'lua hooks.lua'
t "overflows" 'lua overflow.lua'
t "uncaught overflow" 'lua -e "local function f() return 1 + f() end f()"'
t "load with names" 'lua -e "print(load(\"error(1)\", \"=n\")) print(pcall(load(\"error(\\\"m\\\")\", \"@file\"))) print(load(\"x x\")) print(load(function() error(\"r\") end))"'
t "precompiled chunk" 'lua -e "local f = load(string.dump(load(\"local function g(a) return a end return g(...), debug.getinfo(1).short_src\"), true)) print(f(1))"'
t "memory in use grows no more" 'lua -e "for i = 1, 200000 do local co = coroutine.wrap(function() coroutine.yield() end) co() end print(collectgarbage(\"count\") < 50000)"'
t "killed" 'lua -e "os.execute(\"kill -TERM \" .. io.open(\"/proc/self/stat\"):read(\"n\")) while true do end"'
t "interrupted" '2>&1 lua -e "io.popen(\"kill -INT \" .. io.open(\"/proc/self/stat\"):read(\"n\")):close() while true do end" | head -n 1'
t "interrupted and caught" 'lua -e "print(pcall(function() io.popen(\"kill -INT \" .. io.open(\"/proc/self/stat\"):read(\"n\")):close() while true do end end)) print(debug.gethook())"'
echo "1..$n"
[ "$bad" = 0 ]
