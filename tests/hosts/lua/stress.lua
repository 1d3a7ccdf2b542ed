-- Loads, calls and drops thousands of small chunks while the collector runs hard, from coroutines and through errors,
-- so that new functions get the addresses of dead ones. Prints how often each was called: `key count`.
local seed = tonumber(arg[1])
math.randomseed(seed)
local counts = {}
function hit(key) counts[key] = (counts[key] or 0) + 1 end

local function text(i)
  return ([[
    hit("gen%d")
    local function f() hit("gen%d:f") end
    local t = { g = function(n) hit("gen%d:t.g") if n > 0 then f() end end }
    return f, t.g, function(x) hit("gen%d:fn#1") if x then error(x) end return f() end
  ]]):format(i, i, i, i)
end

collectgarbage("generational")
local kept = {}
for i = 1, 3000 do
  local k = math.random(400)
  local f, g, h = load(text(k), "=gen" .. k)()
  kept[math.random(20)] = { f, g, h }
  local pick = kept[math.random(20)]
  if pick then
    pick[1]()
    pick[2](math.random(0, 1))
    pcall(pick[3], math.random() < 0.5 and "x" or nil)
    local co = coroutine.wrap(function(p) p[2](1) coroutine.yield() p[1]() error("end") end)
    co(pick)
    if math.random() < 0.5 then pcall(co) end
  end
  if i % 100 == 0 then collectgarbage(i % 200 == 0 and "incremental" or "generational") end
  if i % 37 == 0 then collectgarbage() end
end
for key, n in pairs(counts) do print(key, n) end
