local function step(n) coroutine.yield(n) end
local function body(n)
  for i = 1, n do step(i) end
end
local co = coroutine.wrap(body)
co(3)
for i = 1, 3 do co() end
local outer = coroutine.create(function()
  local inner = coroutine.wrap(function()
    coroutine.yield(1)
    error("dead")
  end)
  inner()
  inner()
end)
coroutine.resume(outer)
coroutine.resume(outer)
local closed = coroutine.create(function()
  local x <close> = setmetatable({}, { __close = function() end })
  coroutine.yield()
end)
coroutine.resume(closed)
coroutine.close(closed)
coroutine.create(body)
local left = coroutine.wrap(body)
left(1)
local function second() return 1 end
local tail = coroutine.wrap(function() return second() end)
tail()
