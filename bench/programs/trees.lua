-- Builds and walks binary trees: calls beside allocation and collection.
local depth = tonumber(arg[1]) or 12

local function build(d)
  if d == 0 then return {} end
  return { build(d - 1), build(d - 1) }
end

local function count(t)
  if not t[1] then return 1 end
  return 1 + count(t[1]) + count(t[2])
end

local total = 0
for d = 4, depth, 2 do
  for _ = 1, 1 << (depth - d) do total = total + count(build(d)) end
end
print(total)
