-- Runs until SIGPROF has asked often enough: calls, deep stacks that grow, coroutines, errors, allocation, collections.
local samples = package.loadlib(os.getenv("LOG_PLUGIN"), "log_samples")
local want = tonumber(os.getenv("LOG_SAMPLES"))
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function deep(n) if n == 0 then return {} end local t = deep(n - 1) return t end
local function rest(...) return select("#", ...) + #{ ... } end
local function coroutines(n)
  local keep = {}
  for i = 1, n do
    local co = coroutine.wrap(function(...)
      coroutine.yield(rest(...))
      if i % 3 == 0 then error(keep) end
      return deep(20)
    end)
    co(i, i)
    pcall(co)
    keep[i % 7] = co
  end
end
local function loads(n)
  for i = 1, n do
    load("local function f(a) return a end return f(" .. i % 10 .. ")")()
  end
end
local function errors(n)
  for i = 1, n do
    pcall(function() local t = deep(i % 50) return t.x.y end)
    xpcall(error, debug.traceback, "text")
  end
end
repeat
  fib(12)
  deep(3000)
  coroutines(50)
  errors(50)
  loads(20)
  table.sort({ 5, 3, 4, 1, 2 }, function(a, b) return a < b end)
  string.gsub(("x"):rep(100), "x", function(c) return c .. c end)
until samples() >= want
os.exit(0)
