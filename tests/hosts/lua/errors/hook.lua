-- an error that leaves a hook of the program: thrown where the program was
varve.call(varve.id():capture {error = true}, function()
  debug.sethook(function() debug.sethook() error("by the hook", 0) end, "l")
  local x = 1
end)
