-- the same as in the main program, where pcall may yield
local function catch(f) return pcall(varve.call, varve.id():capture {error = true}, f) end
coroutine.wrap(function()
  for _, e in ipairs {"text", {}, 5} do
    catch(function()
      local _, caught = pcall(error, e)
      error(caught, 0)
    end)
  end
end)()
