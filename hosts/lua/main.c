/*
 * varve-lua: a Lua 5.4 interpreter that records every call. See docs/lua-host.md.
 */
#include "config.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/driver.h"
#include "hosts/lua/interpose.h"
#include "hosts/lua/recorder.h"
#include "hosts/lua/repeat.h"

typedef struct {
    int argc;
    char **argv;
} command_line;

static int protected_run(lua_State *L)
{
    const command_line *c = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushboolean(L, vl_driver_run(L, c->argc, c->argv));
    return 1;
}

/* --repeatable is ours alone: the program must not see it. */
static bool take_repeatable(int *argc, char **argv)
{
    if (*argc < 2 || strcmp(argv[1], "--repeatable") != 0)
        return false;
    if (!vl_repeat_exec(argv)) {
        fprintf(stderr, "%s: --repeatable: the system does not allow fixed addresses\n", argv[0]);
        exit(EXIT_FAILURE);
    }
    memmove(argv + 1, argv + 2, (size_t)(*argc - 1) * sizeof *argv);
    --*argc;
    return true;
}

int main(int argc, char **argv)
{
    bool repeatable = take_repeatable(&argc, argv);
    vl_interpose_creating = true;
    lua_State *L = repeatable ? vl_repeat_newstate() : luaL_newstate();
    if (!L) {
        fprintf(stderr, "%s: cannot create state: not enough memory\n", argc ? argv[0] : "lua");
        return EXIT_FAILURE;
    }
    command_line c = {argc, argv};
    lua_pushcfunction(L, protected_run);
    lua_pushlightuserdata(L, &c);
    int status = lua_pcall(L, 1, 1, 0);
    bool ok = status == LUA_OK && lua_toboolean(L, -1);
    vl_driver_report(L, status);
    lua_close(L);
    vl_recorder_close(!ok, ok ? VARVE_CALL_OK : VARVE_CALL_ERRORED);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
