-- a module that is no Lua: the searcher catches the error of its loading, and throws it again with words of its own
varve.call(varve.id():capture {error = true}, function() require "no_lua" end)
