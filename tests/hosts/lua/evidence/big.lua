-- Values too large for one are lost, and said to be; tables beyond what is walked are left out
local function show(...) varve.call(varve.id():capture {inputs = true}, function(...) end, ...) end
local keys, list = {}, {}
for i = 1, 200000 do keys["k" .. i] = i end
for i = 1, 10 do list[i] = keys end
show(keys)
show(("x"):rep(64 << 20))
-- shared subtables that would be 2^40 of them
local shared = {}
for i = 1, 25 do shared = {shared, shared} end
show(shared)
