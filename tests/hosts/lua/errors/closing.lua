-- an error in a __close function: while another unwinds, that one has ended the call already; else its own does
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
local function closing(e) return setmetatable({}, {__close = function() error(e, 0) end}) end
catch(function()
  local c <close> = closing "first"
  error("body", 0)
end)
catch(function()
  local c <close> = closing "at its end"
end)
