#include "config.h"
#include "hosts/lua/driver.h"

#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts/lua/cnames.h"
#include "hosts/lua/interpose.h"
#include "hosts/lua/host.h"
#include "hosts/lua/select.h"
#include "hosts/lua/unwind.h"
#include "hosts/lua/varvelib.h"

#define LUA_INIT "LUA_INIT"
#define LUA_INIT_VERSIONED LUA_INIT LUA_VERSUFFIX

/* What the options before the script ask for. */
typedef struct {
    bool bad, interactive, version, execute, no_environment;
    int script; /* index of the first argument that is no option (argc: there is none), or of the bad option */
} options;

bool vl_driver_interactive;

static const char *program_name = "lua";
static lua_State *interruptible;

void vl_driver_message(const char *message)
{
    if (!vl_driver_interactive)
        fprintf(stderr, "%s: ", program_name);
    fprintf(stderr, "%s\n", message ? message : "(null)");
    fflush(stderr);
}

int vl_driver_report(lua_State *L, int status)
{
    if (status != LUA_OK) {
        vl_driver_message(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    return status;
}

/* Turns an error value into a text with a traceback, unless it is an object that has a text of its own. */
static int described(lua_State *L)
{
    const char *text = lua_tostring(L, 1);
    if (!text) {
        if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
            return 1;
        text = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    luaL_traceback(L, L, text, 1);
    return 1;
}

static int describe_error(lua_State *L)
{
    int n = described(L);
    vl_unwind_original(L, 1);
    return n;
}

static void stop_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "interrupted!");
}

static void set_interrupt(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* A signal handler can't stop Lua; a hook, at the next instruction, can. A second signal kills. */
static void on_interrupt(int signal)
{
    (void)signal;
    set_interrupt(SIG_DFL);
    lua_sethook(interruptible, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

int vl_driver_call(lua_State *L, int nargs, int nresults)
{
    int base = lua_gettop(L) - nargs;
    lua_pushcfunction(L, describe_error);
    lua_insert(L, base);
    interruptible = L;
    set_interrupt(on_interrupt);
    int status = lua_pcall(L, nargs, nresults, base);
    set_interrupt(SIG_DFL);
    lua_remove(L, base);
    return status;
}

static int run_loaded(lua_State *L, int status)
{
    return vl_driver_report(L, status == LUA_OK ? vl_driver_call(L, 0, 0) : status);
}

static int run_file(lua_State *L, const char *name)
{
    return run_loaded(L, luaL_loadfile(L, name));
}

static int run_text(lua_State *L, const char *text, const char *name)
{
    return run_loaded(L, luaL_loadbuffer(L, text, strlen(text), name));
}

/* -l MODULE or -l GLOBAL=MODULE. */
static int run_library(lua_State *L, char *what)
{
    char *equals = strchr(what, '=');
    if (equals)
        *equals = '\0';
    lua_getglobal(L, "require");
    lua_pushstring(L, equals ? equals + 1 : what);
    int status = vl_driver_call(L, 1, 1);
    if (status == LUA_OK)
        lua_setglobal(L, what);
    return vl_driver_report(L, status);
}

static int run_environment(lua_State *L)
{
    const char *name = "=" LUA_INIT_VERSIONED, *init = getenv(name + 1);
    if (!init) {
        name = "=" LUA_INIT;
        init = getenv(name + 1);
    }
    if (!init)
        return LUA_OK;
    return *init == '@' ? run_file(L, init + 1) : run_text(L, init, name);
}

static void usage(const char *bad)
{
    fprintf(stderr, "%s: ", program_name);
    if (bad[1] == 'e' || bad[1] == 'l')
        fprintf(stderr, "'%s' needs argument\n", bad);
    else
        fprintf(stderr, "unrecognized option '%s'\n", bad);
    fprintf(stderr,
            "usage: %s [options] [script [args]]\n"
            "Available options are:\n"
            "  -e stat   execute string 'stat'\n"
            "  -i        enter interactive mode after executing 'script'\n"
            "  -l mod    require library 'mod' into global 'mod'\n"
            "  -l g=mod  require library 'mod' into global 'g'\n"
            "  -v        show version information\n"
            "  -E        ignore environment variables\n"
            "  -W        turn warnings on\n"
            "  --        stop handling options\n"
            "  -         stop handling options and execute stdin\n",
            program_name);
    fflush(stderr);
}

/* One option; i moves over an argument of its own. False where it is none of ours. */
static bool read_option(options *o, char **argv, int *i)
{
    const char *arg = argv[*i];
    bool alone = !arg[2];
    switch (arg[1]) {
    case 'E': o->no_environment = true; return alone;
    case 'W': return alone;
    case 'v': o->version = true; return alone;
    case 'i': o->interactive = o->version = true; return alone;
    case 'e': o->execute = true; /* fall through */
    case 'l':
        if (alone) {
            ++*i;
            return argv[*i] && *argv[*i] != '-';
        }
        return true;
    default: return false;
    }
}

static options read_options(char **argv)
{
    options o = {.script = 1};
    int i = 1;
    for (; argv[0] && argv[i]; i++) {
        o.script = i;
        if (argv[i][0] != '-' || !argv[i][1])
            return o;
        if (argv[i][1] == '-') {
            o.bad = argv[i][2];
            o.script = o.bad ? i : i + 1;
            return o;
        }
        if (!read_option(&o, argv, &i)) {
            o.bad = true;
            return o;
        }
    }
    o.script = i;
    return o;
}

/* The options that do something, in their order. */
static bool run_options(lua_State *L, char **argv, int n)
{
    for (int i = 1; i < n; i++) {
        char kind = argv[i][1];
        if (kind == 'W')
            lua_warning(L, "@on", 0);
        if (kind != 'e' && kind != 'l')
            continue;
        char *argument = argv[i][2] ? argv[i] + 2 : argv[++i];
        int status = kind == 'e' ? run_text(L, argument, "=(command line)") : run_library(L, argument);
        if (status != LUA_OK)
            return false;
    }
    return true;
}

static void set_arg_table(lua_State *L, char **argv, int argc, int script)
{
    if (script == argc)
        script = 0; /* no script: the interpreter's name is arg[0] */
    lua_createtable(L, argc - script - 1 > 0 ? argc - script - 1 : 0, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

/* Pushes what `arg` holds from 1 on: the program may have changed it. */
static int push_arguments(lua_State *L)
{
    if (lua_getglobal(L, "arg") != LUA_TTABLE)
        luaL_error(L, "'arg' is not a table");
    int n = (int)luaL_len(L, -1);
    luaL_checkstack(L, n + 3, "too many arguments to script");
    for (int i = 1; i <= n; i++)
        lua_rawgeti(L, -i, i);
    lua_remove(L, -n - 1);
    return n;
}

static int run_script(lua_State *L, char **argv)
{
    const char *name = argv[0];
    if (!strcmp(name, "-") && strcmp(argv[-1], "--") != 0)
        name = NULL;
    int status = luaL_loadfile(L, name);
    if (status == LUA_OK)
        status = vl_driver_call(L, push_arguments(L), LUA_MULTRET);
    return vl_driver_report(L, status);
}

static void print_version(void)
{
    puts(LUA_COPYRIGHT);
    fflush(stdout);
}

/* The script's file, NULL where there is none. */
static const char *script_file(const options *o, int argc, char **argv)
{
    bool standard_input = o->script < argc && !strcmp(argv[o->script], "-") && strcmp(argv[o->script - 1], "--") != 0;
    return o->script < argc && !standard_input ? argv[o->script] : NULL;
}

static bool run_program(lua_State *L, const options *o, int argc, char **argv)
{
    if (!o->no_environment && run_environment(L) != LUA_OK)
        return false;
    if (!run_options(L, argv, o->script))
        return false;
    int before = lua_gettop(L);
    if (o->script < argc && run_script(L, argv + o->script) != LUA_OK)
        return false;
    int results = o->interactive ? 0 : lua_gettop(L) - before;
    if (o->interactive) {
        vl_repl(L);
    } else if (o->script == argc && !o->execute && !o->version) {
        if (isatty(0)) {
            print_version();
            vl_repl(L);
        } else {
            run_file(L, NULL);
        }
    }
    vl_select_root_output(L, before + 1, results);
    return true;
}

bool vl_driver_run(lua_State *L, int argc, char **argv)
{
    options o = read_options(argv);
    luaL_checkversion(L);
    if (argv[0] && *argv[0])
        program_name = argv[0];
    if (o.bad) {
        usage(argv[o.script]);
        return false;
    }
    if (o.version)
        print_version();
    if (o.no_environment) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    luaL_openlibs(L);
    luaL_requiref(L, "varve", vl_open_library, 1);
    lua_pop(L, 1);
    vl_interpose_creating = false; /* the math library has its seed too now */
    set_arg_table(L, argv, argc, o.script);
    lua_gc(L, LUA_GCGEN, 0, 0);
    vl_cnames_add(describe_error, "lua.message_handler");
    int first = o.script + 1 < argc ? o.script + 1 : argc;
    vl_host_open(L, script_file(&o, argc, argv), (const char *const *)argv + first, argc - first);
    return run_program(L, &o, argc, argv);
}
