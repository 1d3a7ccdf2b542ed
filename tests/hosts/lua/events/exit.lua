-- domains,threads,calls
local function quit() os.exit(3) end
local co = coroutine.wrap(function()
  quit()
end)
local function outer() co() end
outer()
