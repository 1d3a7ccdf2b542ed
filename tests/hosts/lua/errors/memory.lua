-- no memory: run with a limit to it
local t = {}
pcall(varve.call, varve.id():capture {error = true}, function() for i = 1, 1 << 40 do t[i] = i end end)
