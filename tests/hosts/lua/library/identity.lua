-- The library `varve`: the same with profiling off, on, and with another profiler. Prints what is not so.
local checks = 0
local function check(what, holds)
  checks = checks + 1
  if not holds then print("not so: " .. what) end
end
local function fails(what, text, f, ...)
  local ok, message = pcall(f, ...)
  check(what .. " fails", not ok)
  check(what .. " says why: " .. tostring(message), not ok and tostring(message):find(text, 1, true))
end
local INVALID = "InvalidArgument"

-- LocalIds
local a, b = varve.id(), varve.id()
check("the library is loaded", require "varve" == varve)
check("an id is a userdata", type(a) == "userdata" and getmetatable(a).__name == "varve.LocalId")
check("its text", #tostring(a) == 32 and tostring(a):match("^baml_id_1_[%w_-]+$") and tostring(a) == tostring(a))
check("ids differ", a ~= b and tostring(a) ~= tostring(b))
local alias = a
check("capture is fluent", a:capture {inputs = true}:capture {output = false, error = nil} == alias)
check("capture of nothing", a:capture() == a and a:capture(nil) == a and a:capture {} == a)
for _, bad in ipairs {1, "yes", {}} do
  for _, role in ipairs {"inputs", "output", "error"} do
    fails(role .. " of a " .. type(bad), INVALID, a.capture, a, {[role] = bad})
  end
end
fails("an unknown role", "'input'", a.capture, a, {input = true})
fails("an unknown key", INVALID, a.capture, a, {true})
fails("no table", INVALID, a.capture, a, true)
fails("no id", INVALID, a.capture, {}, {inputs = true})
fails("no id at all", INVALID, a.capture)

-- Calls with an id
local function nothing() end
local function inner() return (varve.current()) end
local function id_and_more(...) return varve.current(), inner(), select("#", ...), ... end
local got = table.pack(varve.call(a, id_and_more, 1, nil, 3, nil))
check("the callee's id is the one passed", got[1] == tostring(a))
check("its own callees have none", got[2] == nil)
check("arguments pass, nil too", got.n == 7 and got[3] == 4)
check("results pass, nil too", got[4] == 1 and got[6] == 3 and got[7] == nil)
fails("a second call with it", INVALID, varve.call, a, nothing)
fails("a second call by an alias", INVALID, varve.call, alias, nothing)
fails("capture after it", INVALID, a.capture, a, {inputs = true})
fails("capture of nothing after it", INVALID, a.capture, a)
check("it still has its text", tostring(a):match "^baml_id_1_")
fails("a C function", INVALID, varve.call, b, print)
fails("a callable object of a C function", INVALID, varve.call, b, setmetatable({}, {__call = print}))
fails("no function", INVALID, varve.call, b)
fails("a table", INVALID, varve.call, b, {})
fails("no id, but text", INVALID, varve.call, tostring(b), nothing)
check("none of them consumed it", varve.call(b, inner) == tostring(b))
local c = varve.id()
local object = setmetatable({}, {__call = function(self, x) return varve.current(), self, x end})
local id, self, x = varve.call(c, object, 7)
check("a callable object", id == tostring(c) and self == object and x == 7)
local d, e = varve.id(), varve.id()
check("nested", varve.call(d, function()
  return varve.call(e, inner) == tostring(e) and varve.current() == tostring(d)
end))
check("a tail call out of the callee is a new call", varve.call(varve.id(), function() return inner() end) == nil)
local function count(n) if n == 0 then return varve.current() == nil end return count(n - 1) end
check("also of the same function", varve.call(varve.id(), count, 3))
fails("an error passes", "boom", varve.call, varve.id(), function() error("boom", 0) end)
local value = {}
check("an object", select(2, pcall(varve.call, varve.id(), function() error(value) end)) == value)
check("no id after it", inner() == nil and varve.current() == nil)

-- Coroutines
local f = varve.id()
local co = coroutine.wrap(function(...)
  return varve.call(f, function(...)
    local before = varve.current()
    local passed = coroutine.yield(...)
    return before == tostring(f) and varve.current() == before and passed
  end, ...)
end)
local y1, y2 = co("y", 2)
check("yield out of the callee", y1 == "y" and y2 == 2)
check("nobody else has its id meanwhile", varve.current() == nil and inner() == nil)
check("and back", co("p") == "p")
local g = varve.id()
check("a coroutine's first call", coroutine.wrap(varve.call)(g, inner) == tostring(g))
local h = varve.id()
check("not inherited by coroutines", varve.call(h, function() return coroutine.wrap(inner)() == nil end))
check("current without a caller", coroutine.wrap(varve.current)() == nil)

-- varve.set
local s1, s2 = varve.id(), varve.id()
local function set_and_get(id) varve.set(id) return (varve.current()) end
check("set in a call", set_and_get(s1) == tostring(s1))
check("by text", set_and_get(tostring(s2)) == tostring(s2))
check("it is the call's alone", inner() == nil and varve.current() == nil)
check("set does not consume", varve.call(s1, inner) == tostring(s1))
check("nor does it need one that is not", set_and_get(s1) == tostring(s1))
local s3 = varve.id()
check("set in a callee of varve.call", varve.call(s3, function()
  varve.set(s2)
  return varve.current() == tostring(s2) and inner() == nil
end))
varve.set(s2)
check("set in a chunk", varve.current() == tostring(s2) and inner() == nil)
varve.set(s1)
check("set again", varve.current() == tostring(s1))
local co2 = coroutine.wrap(function()
  varve.set(s2)
  coroutine.yield(varve.current())
  coroutine.yield(varve.current())
end)
check("set in a coroutine", co2() == tostring(s2) and varve.current() == tostring(s1) and co2() == tostring(s2))
local function deep(n) varve.set(s2) if n > 0 then deep(n - 1) end assert(varve.current() == tostring(s2)) end
deep(500)
check("set at every depth", varve.current() == tostring(s1))
local function tail_after_set() varve.set(s2) return inner() end
check("a tail call after set", tail_after_set() == nil)
local text = tostring(s1)
for _, bad in ipairs {"", "baml_id_1_", "baml_id_2_" .. text:sub(11), text .. "A", text .. "\0"} do
  fails("set of a bad text", INVALID, varve.set, bad)
end
fails("set of a number", INVALID, varve.set, 1)
fails("set of nil", INVALID, varve.set, nil)
fails("set without a caller", INVALID, coroutine.wrap(varve.set), s1)

-- LLM functions
check("llm gives the function itself", varve.llm(nothing) == nothing and varve.llm(print) == print)
fails("llm of a table", INVALID, varve.llm, {})
fails("llm of a callable table", INVALID, varve.llm, setmetatable({}, {__call = print}))
fails("llm of nothing", INVALID, varve.llm)
local answers = varve.llm(function(q) return q .. "!", varve.current() end)
local l = varve.id()
local answer, current = varve.call(l, answers, "so")
check("an LLM function with an id", answer == "so!" and current == tostring(l))
check("and without", answers "no" == "no!")

-- What can be done to an id by force
local forced = varve.id()
getmetatable(forced).__gc(forced)
getmetatable(forced).__gc(forced)
fails("a finalized id", INVALID, varve.call, forced, nothing)
fails("its text", INVALID, tostring, forced)
varve.call(varve.id(), function()
  local name, kept = debug.getlocal(2, 1)
  debug.setlocal(2, 1, 5)
  check("a frame that was tampered with", varve.current() == nil)
  debug.setlocal(2, 1, kept)
end)
collectgarbage()
collectgarbage()
print("checks: " .. checks)
