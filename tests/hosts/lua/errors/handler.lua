-- message handlers: the value is what the handler gave
local function call(f) varve.call(varve.id():capture {error = true}, f) end
xpcall(call, function(e) return {handled = e} end, function() error("boom", 0) end)
xpcall(call, debug.traceback, function() error({}) end)
