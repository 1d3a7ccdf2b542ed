-- the same with a text, which gets a place of its own; a wrap function that is dead fails by itself
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
local co = coroutine.wrap(function() error("boom") end)
catch(function() co() end)
catch(function() co() end)
