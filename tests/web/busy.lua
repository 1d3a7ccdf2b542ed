-- Works in small steps until the file named by its argument is there.
local stop = arg[1]

local function step(n)
    local sum = 0
    for i = 1, n do
        sum = sum + math.max(i, 3)
    end
    return sum
end

local function stopped()
    local file = io.open(stop)
    if file then
        file:close()
    end
    return file ~= nil
end

local turns = coroutine.wrap(function()
    while true do
        coroutine.yield(step(200))
    end
end)

while not stopped() do
    for _ = 1, 50 do
        turns()
        pcall(error, "expected")
    end
end
