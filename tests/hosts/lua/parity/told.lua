-- Every error a program can see, as it sees it.
local function tell(what, ...) print(what, ...) end
local function text(e) return tostring(e) end
local called = {}
local function by_id(f, ...)
  return varve.call(varve.id():capture {inputs = true, output = true, error = true}, f, ...)
end
local ask = varve.llm(function(f, ...) return f(...) end)
for _, through in ipairs {by_id, ask, function(f, ...) return f(...) end} do
  tell("text", pcall(through, function() error("boom") end))
  tell("level 2", pcall(through, function() error("boom", 2) end))
  tell("level 0", pcall(through, function() error("boom", 0) end))
  tell("table", select("#", pcall(through, function() error({}) end)))
  tell("nil", pcall(through, function() error() end))
  tell("number", pcall(through, function() error(5) end))
  tell("index", pcall(through, function() return called.a.b end))
  tell("arithmetic", pcall(through, function() return 1 + {} end))
  tell("compare", pcall(through, function() return {} < 1 end))
  tell("concat", pcall(through, function() return "a" .. {} end))
  tell("for", pcall(through, function() for i = 1, "x" do end end))
  tell("call", pcall(through, function() called.nothing() end))
  tell("assert", pcall(through, function() assert(false) end))
  tell("assert with text", pcall(through, function() assert(nil, "why") end))
  tell("argument", pcall(through, function() ("x"):rep({}) end))
  tell("again", pcall(through, function() local _, e = pcall(error, "x", 0) error(e, 0) end))
  tell("traceback", xpcall(through, debug.traceback, function() error("traced") end))
  tell("handler", xpcall(through, function(e) return "handled " .. text(e) end, function() error("h") end))
  tell("bad handler", xpcall(through, function(e) error(e) end, function() error("h") end))
  tell("in a coroutine", coroutine.resume(coroutine.create(function() through(function() error("co") end) end)))
  tell("wrapped", pcall(coroutine.wrap(function() through(function() error("co") end) end)))
  local co = coroutine.create(function() through(function() local x <close> = setmetatable({}, {
    __close = function(_, e) tell("closing", e) error("in close") end}) coroutine.yield(1) end) end)
  tell("yields", coroutine.resume(co))
  tell("closed", coroutine.close(co))
  tell("trace of it", debug.traceback(co))
  tell("load", load("x = = 1"))
  tell("loads with an error", pcall(load, function() error("reader") end))
  tell("names", pcall(through, string.rep))
  tell("stack", through(function() return debug.traceback("here") end))
end
setmetatable(called, {__gc = function() error("in gc") end})
called = nil
collectgarbage()
error("the end")
