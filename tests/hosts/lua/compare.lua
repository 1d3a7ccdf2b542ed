-- lua5.4 compare.lua COUNTS TREE: holds the counts of count.lua against the interpreter's own (brief form). Prints
-- the differences and how much was compared; exit status 1 where they differ.
local counts_path, tree_path = ...
local want, got, want_total, got_total = {}, {}, 0, 0

for line in io.lines(counts_path) do
  local n, a, b = line:match("^(%d+)\t(.*)\t([^\t]*)$")
  local key = a == "C" and "c:" .. b or a:gsub("^@", "") .. ":" .. b
  want[key] = (want[key] or 0) + tonumber(n)
  want_total = want_total + tonumber(n)
end

local texts = {}
local function line_of(path, offset)
  local text = texts[path]
  if not text then
    local f = assert(io.open(path, "rb"))
    text = f:read("a")
    f:close()
    texts[path] = text
  end
  if offset == 0 then return 0 end
  local _, breaks = text:sub(1, offset):gsub("\n", "")
  return breaks + 1
end

-- Calls of the recording that the counter can't have seen: the root, the counter's own chunk, and its call of
-- debug.sethook.
local unseen = { ["c:debug.sethook"] = 1 }
local standard = { string = 1, table = 1, io = 1, os = 1, math = 1, coroutine = 1, debug = 1, utf8 = 1, package = 1 }
for line in io.lines(tree_path) do
  local n, key, file, start = line:match("^calls\t(%d+)\t([^\t]*)\t([^\t]*)\t(%d+)$")
  if n then
    n = tonumber(n)
    if key == "lua" or key == "LUA_INIT" or file:find("count.lua", 1, true) then
      n = n - 1
      assert(n == 0, "called once: " .. key)
    else
      if key:find("^c:") then
        local lib = key:match("^c:(%w+)%.")
        if not (standard[lib] or key:find("^c:[%w_]+$") or key:find("^c:FILE%*:%w+$"))
          or key:find(":iterator") or key:find("searchers[", 1, true) or key:find("^c:luaopen_") then
          key = "c:?"
        end
      else
        key = file .. ":" .. line_of(file, tonumber(start))
      end
      n = n - (unseen[key] or 0)
      got[key] = (got[key] or 0) + n
    end
    got_total = got_total + n
  end
end

local bad, compared = 0, 0
for key, n in pairs(want) do
  compared = compared + 1
  if got[key] ~= n then
    bad = bad + 1
    print("# " .. key .. " counted " .. n .. " recorded " .. tostring(got[key]))
  end
end
for key, n in pairs(got) do
  if not want[key] and n ~= 0 then
    bad = bad + 1
    print("# " .. key .. " counted 0 recorded " .. n)
  end
end
print(("# %d functions, %d calls counted, %d recorded, %d differ"):format(compared, want_total, got_total, bad))
os.exit(bad == 0 and want_total == got_total and 0 or 1)
