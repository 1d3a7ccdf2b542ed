-- The stack is full, below a selected call.
local function down() return 1 + down() end
print(pcall(varve.call, varve.id():capture {error = true}, down))
varve.llm(down)()
