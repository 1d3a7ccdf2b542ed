-- What is selected, and what is asked of it. arg: one, two
local function plain(x) return x end
local ask = varve.llm(function(q) return plain(q), 2 end)
plain(1)                                                              -- not selected
ask "q"
varve.call(varve.id(), plain, 2)                                      -- its metadata only
varve.call(varve.id():capture {inputs = true}, plain, 3)
varve.call(varve.id():capture {inputs = true, output = true}, plain, 4)
varve.call(varve.id():capture {inputs = false, output = false, error = false}, plain, 5)
varve.call(varve.id(), ask, "with an id")
varve.call(varve.id():capture {output = false}, ask, "without output")
varve.call(varve.id():capture {inputs = false, error = false}, ask, "output only")
varve.id():capture {inputs = true}                                    -- never passed: selects nothing
local function tail(x) return plain(x) end
varve.call(varve.id():capture {inputs = true, output = true}, tail, 6)
varve.llm(string.upper)
string.upper "abc"
local object = setmetatable({}, {__call = function(self, x) return x end})
varve.call(varve.id():capture {inputs = true}, object, 7)
varve.set(varve.id())                                                 -- not selected, and not by this
coroutine.wrap(ask) "in a coroutine"
coroutine.wrap(function()
  varve.call(varve.id():capture {output = true}, function() return coroutine.yield(1) end)
end)()
varve.call(varve.id():capture {output = true}, function() end)
return "done", 2
