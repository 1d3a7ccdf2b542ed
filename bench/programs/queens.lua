-- All solutions of n queens, by recursion: many short calls.
local n = tonumber(arg[1]) or 8
local solutions = 0

local function free(board, row, column)
  for r = 1, row - 1 do
    local c = board[r]
    if c == column or c - r == column - row or c + r == column + row then return false end
  end
  return true
end

local function place(board, row)
  if row > n then
    solutions = solutions + 1
    return
  end
  for column = 1, n do
    if free(board, row, column) then
      board[row] = column
      place(board, row + 1)
    end
  end
end

for _ = 1, 4 do place({}, 1) end
print(solutions)
