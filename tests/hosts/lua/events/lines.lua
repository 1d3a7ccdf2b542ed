-- modules,functions,ask
local function one() return 1 end

local function some(...)
  if ... then
    -- nothing

    return one(
      ...
    )
  end
end
some(1)
some(2)
