# Sourced, by sh too: lua is varve-lua itself. libtool puts a script around it, which takes longer than most programs run.
lua=$(cd "$top_builddir" && pwd)/varve-lua
if [ -x "${lua%/*}/.libs/varve-lua" ]; then
    lua=${lua%/*}/.libs/varve-lua
    export LD_LIBRARY_PATH="${lua%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
