-- a selected call catches what those below it throw: nothing of its own
varve.call(varve.id():capture {error = true}, function()
  pcall(error, "by C")
  pcall(function() error("below") end)
  pcall(varve.call, varve.id():capture {error = true}, function() error("own") end)
end)
