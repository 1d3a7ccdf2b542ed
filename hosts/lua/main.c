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
#include "hosts/lua/host.h"
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

/* What is ours alone stands first, and the program must not see it. */
typedef struct {
    bool repeatable;
    const char **profilers;
    size_t profiler_count;
} own_options;

static void usage(const char *name, const char *what)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(EXIT_FAILURE);
}

static own_options take_own_options(int *argc, char **argv)
{
    static const char profiler[] = "--profiler";
    own_options o = {.profilers = calloc((size_t)*argc + 1, sizeof *o.profilers)};
    int i = 1;
    for (; o.profilers && i < *argc; i++) {
        size_t n = sizeof profiler - 1;
        if (!strcmp(argv[i], "--repeatable"))
            o.repeatable = true;
        else if (!strncmp(argv[i], profiler, n) && argv[i][n] == '=')
            o.profilers[o.profiler_count++] = argv[i] + n + 1;
        else if (!strcmp(argv[i], profiler) && i + 1 < *argc)
            o.profilers[o.profiler_count++] = argv[++i];
        else if (!strcmp(argv[i], profiler))
            usage(argv[0], "--profiler needs FILE.so or FILE.so=ARGUMENTS");
        else
            break;
    }
    if (o.repeatable && !vl_repeat_exec(argv))
        usage(argv[0], "--repeatable: the system does not allow fixed addresses");
    if (i > 1)
        memmove(argv + 1, argv + i, (size_t)(*argc - i + 1) * sizeof *argv);
    *argc -= i - 1;
    return o;
}

int main(int argc, char **argv)
{
    own_options own = take_own_options(&argc, argv);
    vl_host_profilers(own.profilers, own.profiler_count);
    vl_interpose_creating = true;
    lua_State *L = own.repeatable ? vl_repeat_newstate() : luaL_newstate();
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
    vl_host_close(!ok, ok ? VARVE_ENDED_OK : VARVE_ENDED_ERRORED);
    free(own.profilers);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
