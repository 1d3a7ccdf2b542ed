-- text that is no Lua: `load` catches its error, and `dofile` throws it again
varve.call(varve.id():capture {error = true}, function()
  load "x = = 1"
  dofile "no_lua.lua"
end)
