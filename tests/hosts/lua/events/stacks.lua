-- main,calls,exceptions,ask
local function leaf()
  return 1
end
local function deep(n)
  if n > 0 then
    deep(n - 1)
  end
  leaf()
end
deep(1)
pcall(function()
  error("here")
end)
local co = coroutine.wrap(function()
  leaf()
end)
co()
