-- an LLM function's error
local ask = varve.llm(function() error {status = 500} end)
pcall(ask)
