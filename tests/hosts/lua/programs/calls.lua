local function leaf() end
local function loop(n)
  for i = 1, n do leaf() end
end
local function down(n)
  if n > 0 then return 1 + down(n - 1) end
  return 0
end
loop(10)
loop(5)
down(3)
