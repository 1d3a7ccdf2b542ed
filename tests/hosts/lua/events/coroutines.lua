-- threads,suspensions,calls
local function body(a)
  coroutine.yield(a)
  return a
end
local co = coroutine.create(body)
local never = coroutine.create(body)
coroutine.resume(co)
coroutine.resume(co)
coroutine.resume(co)
local failing = coroutine.wrap(function() error({}) end)
pcall(failing)
local closed = coroutine.create(function()
  local c <close> = setmetatable({}, { __close = function() end })
  coroutine.yield()
end)
coroutine.resume(closed)
coroutine.close(closed)
do
  local dropped = coroutine.create(body)
  coroutine.resume(dropped)
end
collectgarbage()
local outer = coroutine.wrap(function()
  coroutine.wrap(body)(1)
end)
outer()
