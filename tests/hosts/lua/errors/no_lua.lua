-- the script itself is no Lua: the interpreter has the error
x = = 1
