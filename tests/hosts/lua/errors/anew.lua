-- the same text once more is another error, where it does not leave the call that caught it; an object is the same one
local object = {}
local function f(e) error(e, 0) end
local function catch(...) return pcall(varve.call, varve.id():capture {error = true}, f, ...) end
for i = 1, 2 do catch("boom") end
for i = 1, 2 do catch(object) end
