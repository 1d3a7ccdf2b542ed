-- `error` with a value made for it; nobody catches it
local function f() error({code = 1}) end
f()
