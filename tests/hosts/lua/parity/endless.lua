-- recursion without an end, caught and not caught
local function down() return 1 + down() end
print(pcall(down))
print(select(2, pcall(down)))
down()
