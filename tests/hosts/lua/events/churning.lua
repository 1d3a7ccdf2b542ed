-- Makes and drops functions, coroutines and chunks for as long as somebody attaches and detaches.
local pid = io.open("/proc/self/stat"):read("n")
os.execute(os.getenv("CHURN"):gsub("PID", pid))
local function stopped()
  local f = io.open(os.getenv("DONE"))
  return f and f:close()
end
local function body(n)
  for _ = 1, n % 4 do coroutine.yield(n) end
  if n % 5 == 0 then error("n") end
  return n
end
local kept, n = {}, 0
repeat
  for _ = 1, 500 do
    n = n + 1
    local co = coroutine.create(body)
    coroutine.resume(co, n)
    coroutine.resume(co)
    kept[n % 50] = co
    kept[-1 - n % 20] = load("local function f(x) return x end return f(" .. n % 300 .. ")")
    kept[-1 - n % 20]()
    pcall(kept[-1 - n % 20], n)
    pcall(error, n)
  end
until stopped()
