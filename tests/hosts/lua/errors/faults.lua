-- what Lua code does wrong: the place is the line of the fault
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
local none
catch(function() return none.field end)
catch(function() none.field = 1 end)
catch(function()
  local x = 1
  return x + {}
end)
catch(function() none() end)
catch(function() return #5 end)
