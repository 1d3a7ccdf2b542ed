-- the stack is full, of few calls with many arguments
local depth = 0
local function down(...) depth = depth + 1 return 1 + down(...) end
local ok, message = pcall(varve.call, varve.id():capture {error = true}, down, table.unpack({}, 1, 250))
assert(not ok and depth > 1000 and message:match "stack overflow")
