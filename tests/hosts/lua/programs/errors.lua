local function throw() error("x") end
local function middle() throw() end
pcall(middle)
pcall(function()
  pcall(middle)
  local t = nil
  t.x = 1
end)
xpcall(middle, function(m) return #m end)
for i = 1, 3 do
  pcall(string.rep)
end
local ok = pcall(pcall)
middle()
