local waiting = coroutine.wrap(function() coroutine.yield() end)
waiting()
local function leave()
  os.exit(3)
end
local runs = coroutine.wrap(function() leave() end)
coroutine.create(leave)
runs()
