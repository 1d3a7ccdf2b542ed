-- Lua uses the record of an activation again: an id that was set must not be seen by the next call there. (By the
-- public layout it is.)
local id = varve.id()
local function maybe(set) if set then varve.set(id) end return (varve.current()) end
for i = 1, 3 do print(i, maybe(i == 1) == tostring(id)) end
local function fail_first(i) if i == 1 then varve.set(id) error() end return varve.current() == nil end
for i = 1, 3 do print(i, pcall(fail_first, i)) end
local function up(n) if n == 0 then varve.set(id) else up(n - 1) end end
up(100)
local function none(n) return varve.current() == nil and (n == 0 or (none(n - 1))) end
print(none(120))
local function again(n) if n > 0 then varve.set(id) coroutine.wrap(again)(n - 1) end end
for i = 1, 20 do again(5) end
print(coroutine.wrap(none)(5))
