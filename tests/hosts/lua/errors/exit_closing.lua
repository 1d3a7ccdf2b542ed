-- nor is what it closes: its errors are nobody's
local c <close> = setmetatable({}, {__close = function() error("unheard") end})
os.exit(0, true)
