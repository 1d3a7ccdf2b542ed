-- Ends by an object without a text.
warn("@on")
setmetatable({}, {__gc = function() error("in gc") end})
collectgarbage()
varve.llm(function() error(setmetatable({}, {__tostring = function() return "an object" end})) end)()
