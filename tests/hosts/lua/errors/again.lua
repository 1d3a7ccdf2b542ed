-- what was caught is thrown again: by error(e, 0), by error(e) with another place before it, by assert
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
local function fail() error("boom", 0) end
catch(function()
  local _, e = pcall(fail)
  error(e, 0)
end)
catch(function()
  local _, e = pcall(fail)
  error(e)
end)
catch(function() assert(pcall(fail)) end)
catch(function()
  local _, e = pcall(error, {1})
  pcall(print)
  error(e)
end)
catch(function() local _, e = pcall(error, true) error(e) end)
