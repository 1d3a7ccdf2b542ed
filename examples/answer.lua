-- Which calls are recorded one by one: the run itself, LLM functions, and calls that get an id.
local ask = varve.llm(function(question)
  return "an answer to " .. question
end)

local function summarize(text, limit)
  print(varve.current(), #text)
  return text:sub(1, limit)
end

local answer = ask("why?")
local id = varve.id():capture {inputs = true, output = true}
print(tostring(id), varve.call(id, summarize, answer, 12))
