-- collections,exceptions,force
collectgarbage("stop")
pcall(error)
coroutine.resume(coroutine.create(error))
