-- Deep recursion, and more of it than Lua allows: in Lua, in C, in a coroutine, in a message handler.
local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end
assert(deep(100000) == 100000)
local function endless() return 1 + endless() end
assert(not pcall(endless))
assert(not coroutine.resume(coroutine.create(endless)))
local function nested() return string.gsub("x", "x", nested) end
assert(not pcall(nested))
local function chain() return coroutine.wrap(chain)() end
assert(not pcall(chain))
assert(not xpcall(error, function(m) error(m) end, "x"))
