-- a `wrap` function throws on what its coroutine threw
local co = coroutine.wrap(function() error({1}) end)
co()
