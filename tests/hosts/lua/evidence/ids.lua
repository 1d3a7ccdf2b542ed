-- Prints the runtime ids that the selected calls must have, in their order.
local function plain() end
local function sets(id) varve.set(id) end
local a, b, c, d, e = varve.id(), varve.id(), varve.id(), varve.id(), varve.id()
varve.call(a, plain) -- its own
varve.call(b, sets, c) -- another one meanwhile
local function nested() sets(a) end -- set in an unselected call: of no effect here
varve.call(d, nested)
local ask = varve.llm(function(id) varve.set(tostring(id)) end)
ask(e) -- an LLM function's call has none before
ask(d)
coroutine.wrap(function() varve.call(varve.id(), function() varve.set(a) coroutine.yield() end) end)()
for _, id in ipairs {a, c, d, e, d, a} do print(id) end
