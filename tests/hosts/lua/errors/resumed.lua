-- what `resume` gave is thrown: a value, a text with a place before it
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
local function fail(e) return coroutine.create(function() error(e, 0) end) end
catch(function() error(select(2, coroutine.resume(fail {2}))) end)
catch(function() error(select(2, coroutine.resume(fail "boom"))) end)
