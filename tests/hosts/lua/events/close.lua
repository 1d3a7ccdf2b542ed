-- calls,exceptions
local function scope()
  local a <close> = setmetatable({}, { __close = function() end })
  local b <close> = setmetatable({}, { __close = function() end })
end
scope()
setmetatable({}, { __gc = function() pcall(error) error("not seen") end })
collectgarbage()
os.exit(true, true)
