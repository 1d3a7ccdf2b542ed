-- an error in a finalizer is a warning, and nobody's
varve.call(varve.id():capture {error = true}, function()
  setmetatable({}, {__gc = function() error("in gc") end})
  collectgarbage()
end)
