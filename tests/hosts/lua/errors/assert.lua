-- `assert`: with its own text, with a text, with a value
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
catch(function() assert(false) end)
catch(function() assert(nil, "wrong") end)
catch(function() assert(1 > 2, {4}) end)
