-- Collections that nobody asked for, in both modes.
local function litter(n)
  local kept = {}
  for i = 1, n do
    kept[i % 100] = { i, tostring(i), function() return i end }
  end
  return kept
end
collectgarbage("generational")
litter(200000)
collectgarbage("incremental")
litter(200000)
