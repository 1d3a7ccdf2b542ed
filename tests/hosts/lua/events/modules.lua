-- domains,modules,functions,unloads
collectgarbage("stop")
local text = "local function inner() end return inner"
local chunk = load(text, "=first")
local inner = chunk()
chunk = nil
collectgarbage()
inner = load(text, "=first")()
inner = nil
collectgarbage()
load(text, "=first")
collectgarbage()
load("return = 1")
