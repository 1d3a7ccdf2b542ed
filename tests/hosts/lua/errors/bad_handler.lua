-- a message handler that fails itself
xpcall(varve.call, function(e) error(e) end, varve.id():capture {error = true}, function() error("boom", 0) end)
