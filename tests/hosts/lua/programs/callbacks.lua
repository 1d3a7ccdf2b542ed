local M = {}
function M.upper(c) return c:upper() end
print((("abc"):gsub(".", M.upper)))
local t = { 1, 2 }
table.sort(t, function(a, b)
  return a < b
end)
local meta = {
  __index = function(_, k) return k end,
  ["__add"] = function(a, b) return 1 end,
  __call = function(self, x) return x end,
  __lt = function() return true end,
}
local o = setmetatable({}, meta)
local _ = o.field, o + 1, o < o
o(5)
local chunk = load("local function inner() return 1 end\nreturn inner() + inner()", "=given")
chunk()
for k, v in next, { 1, 2 } do M.k = v end
for i, v in ipairs { 1 } do M.k = v end
local iter = function(_, i) if i < 2 then return i + 1 end end
for i in iter, nil, 0 do
  M.k = i
end
