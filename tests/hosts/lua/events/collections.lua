-- collections,allocations,ask
collectgarbage("incremental")
collectgarbage("stop")
collectgarbage()
setmetatable({}, { __gc = function() collectgarbage() end })
collectgarbage()
collectgarbage("restart")
