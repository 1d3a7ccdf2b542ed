local function c() end
local function b() return c() end
local function a(n)
  return n > 0 and b() or b()
end
local function count(n) if n > 0 then return count(n - 1) end end
count(2)
b()
a(1)
local function text(x) return tostring(x) end
text(1)
text(2)
