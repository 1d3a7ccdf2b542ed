-- error(nil), error(); a nil is never one that was caught
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
catch(function() error() end)
catch(function() local _, e = pcall(error) error(e) end)
error(nil)
