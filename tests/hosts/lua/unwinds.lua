-- Random programs of errors: whatever can throw, catch, yield and close, inside of each other. arg: seed, how many.
math.randomseed(tonumber(arg[1]))
local random, steps = math.random, 0
local any
local last = "none yet"
local function selected(f) return varve.call(varve.id():capture {error = true}, f) end
local ask = varve.llm(function(f) return f() end)
local function keep(ok, ...) if not ok then last = ... end end
local ways = {
  function() return selected(any) end,
  function() return ask(any) end,
  function() keep(pcall(any)) end,
  function() keep(pcall(selected, any)) end,
  function() keep(pcall(ask, any)) end,
  function() keep(xpcall(any, debug.traceback)) end,
  function() keep(xpcall(any, function(e) if random(4) == 1 then any() end return e end)) end,
  function() keep(coroutine.resume(coroutine.create(any))) end,
  function() return coroutine.wrap(any)() end,
  function() return coroutine.wrap(selected)(any) end,
  function()
    local co = coroutine.create(any)
    for _ = 1, random(4) do keep(coroutine.resume(co)) end
    if random(2) == 1 then keep(coroutine.close(co)) end
  end,
  function() table.sort({3, 1, 2}, function(a, b) any() return a < b end) end,
  function() return (("ab"):gsub(".", any)) end,
  function() return setmetatable({}, {__index = any}).x end,
  function() return setmetatable({}, {__add = any}) + 1 end,
  function() return setmetatable({}, {__lt = any}) < 1 end,
  function() for _ in any do break end end,
  function() local c <close> = setmetatable({}, {__close = any}) any() end,
  function() local c <close> = setmetatable({}, {__close = any}) return any() end,
  function() keep(load(function() any() return nil end)) end,
  function() keep(load "x = =") end,
  function() return any() end,
  function() any() any() end,
  function() if coroutine.isyieldable() then coroutine.yield() end end,
  function() return selected(function() any() if coroutine.isyieldable() then coroutine.yield() end any() end) end,
  function() if coroutine.isyieldable() then coroutine.yield() end return any() end,
}
local throws = {
  function() error {} end,
  function() error "text" end,
  function() error("text", 0) end,
  function() error(last, 0) end,
  function() error(last) end,
  function() error() end,
  function() assert(false) end,
  function() return nil + 1 end,
  function() return (nil).x end,
  function() string.rep() end,
  function() pcall() end,
  function() require "no.such.module" end,
  function() dofile "no such file" end,
}
function any()
  steps = steps - 1
  if steps < 0 or random(12) == 1 then
    if random(3) > 1 then throws[random(#throws)]() end
    return
  end
  return ways[random(#ways)]()
end
for _ = 1, tonumber(arg[2]) do
  steps = 300
  pcall(any)
  pcall(selected, any)
end
print "done"
