-- a text; `error` puts the place before it
local function f() error("boom") end
f()
