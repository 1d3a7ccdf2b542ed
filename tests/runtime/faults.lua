-- A program with some calls, coroutines, errors and output, that runs for a little while.
local function down(n)
    if n == 0 then return 0 end
    local r = down(n - 1)
    return r + 1
end
local co = coroutine.wrap(function()
    for i = 1, 60 do
        coroutine.yield(down(i % 7))
    end
end)
local until_clock = os.clock() + 0.03
for i = 1, 60 do
    io.write(co(), " ", down(i % 5), " ")
    repeat local busy = 0 for k = 1, 200 do busy = busy + down(1) end until os.clock() > until_clock * i / 60
end
print(pcall(error, "an error"))
io.stderr:write("to stderr\n")
os.exit(7)
