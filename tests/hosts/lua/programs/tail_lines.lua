local function c() end
local function b() return c() end
local function a(n)
  if n > 0 then return a(n - 1) end
  return b()
end
a(2)
local function text(x) return tostring(x) end
text(1)
text(2)
local function pick(n, ...)
  if n == 1 then
    return c(
      pcall(error, "x"),
      n)
  elseif n == 2 then
    for i = 1, 2 do b() end
    return text(n)
  end
  pcall(function() if n then return error("y") end return c() end)
  return coroutine.wrap(function() coroutine.yield() end)()
end
pick(1, 2)
pick(2)
pick(3)
local function odd(n) local f = n % 2 == 1 and c or b; if n == 9 then return b() end
  return f() end
for i = 8, 9 do odd(i) end
