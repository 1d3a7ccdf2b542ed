-- os.exit is no error
varve.call(varve.id():capture {error = true}, function() os.exit(3) end)
