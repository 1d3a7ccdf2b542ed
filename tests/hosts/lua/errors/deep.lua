-- the stack is full, of very many calls
local depth = 0
local function down() depth = depth + 1 return 1 + down() end
local ok, message = pcall(varve.call, varve.id():capture {error = true}, down)
assert(not ok and depth > 100000 and message:match "stack overflow")
