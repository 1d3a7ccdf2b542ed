-- a C function's own errors: a bad argument, luaL_error; and `error` that C calls
local function catch(f, ...) return pcall(varve.call, varve.id():capture {error = true}, f, ...) end
catch(function() string.rep() end)
catch(function() string.rep("xx", math.maxinteger) end)
catch(function() pcall(error, "not ended") coroutine.wrap(error)("by C") end)
catch(function() string.gsub("x", "x", error) end)
string.rep()
