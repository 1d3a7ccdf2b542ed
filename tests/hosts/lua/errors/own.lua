-- a selected call throws and catches: a capture, no link (`pcall` itself has nothing to call)
varve.llm(pcall)(nil)
