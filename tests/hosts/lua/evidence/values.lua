-- What values look like
local function show(...) varve.call(varve.id():capture {inputs = true}, function(...) end, ...) end
show(nil, true, false, 1, -1, math.mininteger, 1.5, 1e300, "text", "ü€", "\xff\0", "")
show(0 / 0 ~= 0 / 0, 1 / 0, -1 / 0, 2^53, -0.0)
show({}, {1, 2, 3}, {1, nil, 3}, {n = 1}, {1, 2, x = 3}, {[0] = 0, 1}, {{}, {{}}})
-- keys: numbers, booleans, text; what has the same text gets brackets
show({[2] = "a", [1.5] = "b", [-1] = "c", [true] = "d", [false] = "e", b = "f", a = "g", [""] = "h", B = "i"})
show({[1] = "number", ["1"] = "text", ["[1]"] = "brackets", [true] = "b", ["true"] = "t"})
show({["\xff"] = 1, ["\\xff"] = 2, ["?"] = 3, [print] = 4, [{}] = 5, ["[other keys]"] = 6})
show({[2^53] = 1, [1e100] = 2, [0.1] = 3, [1 / 3] = 4})
-- classes, by the name in the metatable; nothing in it is called
local class = {__name = "app.Point", __index = function() error("asked") end, __pairs = error, __len = error}
show(setmetatable({x = 1, y = 2}, class), setmetatable({1, 2}, class), setmetatable({1, 2}, {__len = error}))
-- not copied
show(print, show, io.stdout, coroutine.create(print), varve.id(), string.gmatch("", ""))
-- cycles and what is shared
local shared, loop = {1}, {}
loop.self, loop.list = loop, {loop}
show({shared, shared, a = shared}, loop)
-- names of arguments
local function names(a, b, a, ...) end
varve.call(varve.id():capture {inputs = true}, names, 1, 2, 3, 4, nil)
varve.call(varve.id():capture {inputs = true}, names)
local object = {method = function(self, x) return self, x end}
varve.call(varve.id():capture {inputs = true, output = true}, object.method, {}, 1)
varve.call(varve.id():capture {inputs = true}, load(string.dump(function(a, b) end, true)), 1, 2)
varve.llm(string.format)
string.format("%s %d", "x", 1)
-- deep: 32 containers, the map of arguments and the list of ... among them
local deep = 0
for i = 1, 30 do deep = {deep} end
show(deep)
show({deep})
