-- main,calls,arguments,results
local function add(a, b) return a + b end
local function rest(a, ...) return select("#", ...), ... end
local function tail(n)
  return add(n, 1)
end
local t = setmetatable({}, { __index = function(self, key) return #key end })
add(1, 2.5)
rest(true, nil, "x", t)
tail(3)
local n = t.four
table.sort({ 2, 1 }, function(a, b) return a < b end)
