-- errors of calls that are not selected, and end none: nothing. Nor where the role is off.
pcall(function() error("caught") end)
pcall(varve.call, varve.id(), function() error("not wanted") end)
local ask = varve.llm(function() error("not wanted") end)
pcall(varve.call, varve.id():capture {error = false}, ask)
