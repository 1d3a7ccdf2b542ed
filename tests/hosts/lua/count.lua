-- Run as LUA_INIT: counts every call of the program by a call hook of its own and writes the counts, a line a
-- function, to the file COUNT_FILE when the program calls os.exit. Lua functions are named by source and first line,
-- C functions by their place in the standard library. Nothing is called between the hook's start and the program, and
-- what a hook calls is itself not hooked: the counts are those of the program, and of debug.sethook's caller nothing.
local exit, getinfo, sethook, tostring, io, G = os.exit, debug.getinfo, debug.sethook, tostring, io, _G
local ipairs, pairs, type, file_methods, path = ipairs, pairs, type, nil, nil
local string_iterator = nil
local counts = {}

local function write_counts()
  local names = {}
  for _, lib in ipairs { "string", "table", "io", "os", "math", "coroutine", "debug", "utf8", "package" } do
    for k, f in pairs(G[lib]) do
      if type(f) == "function" then names[f] = lib .. "." .. k end
    end
  end
  for k, f in pairs(G.debug.getmetatable(io.stdout).__index) do names[f] = "FILE*:" .. k end
  for k, f in pairs(G) do
    if type(f) == "function" and not names[f] then names[f] = k end
  end
  names[exit] = "os.exit"
  local out = io.open(path or G.os.getenv("COUNT_FILE"), "w")
  local lines = {}
  for f, n in pairs(counts) do
    local info = getinfo(f, "S")
    local name = info.what == "C" and "C\t" .. (names[f] or "?") or info.source .. "\t" .. info.linedefined
    lines[name] = (lines[name] or 0) + n
  end
  for name, n in pairs(lines) do out:write(n, "\t", name, "\n") end
  out:close()
end

local function hook()
  local f = getinfo(2, "f").func
  local n = counts[f]
  counts[f] = n and n + 1 or 1
  if f == exit then write_counts() end
end

sethook(hook, "c")
