#include "config.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/driver.h"

#define LINE_MAX_BYTES 512 /* of a line without readline, as lua5.4's own buffer has it */

/* GNU readline where the machine has it: lua5.4 of Debian uses it, on terminals and on pipes. It isn't linked, as
 * nothing else needs it. */
static struct {
    bool tried;
    char *(*read)(const char *prompt);
    void (*add_history)(const char *line);
} editor;

static void load_editor(void)
{
    if (editor.tried)
        return;
    editor.tried = true;
    void *library = dlopen("libreadline.so.8", RTLD_NOW | RTLD_LOCAL);
    void *read = library ? dlsym(library, "readline") : NULL;
    void *add = library ? dlsym(library, "add_history") : NULL;
    const char **name = library ? dlsym(library, "rl_readline_name") : NULL;
    if (!read || !add)
        return;
    memcpy(&editor.read, &read, sizeof editor.read);
    memcpy(&editor.add_history, &add, sizeof editor.add_history);
    if (name)
        *name = "lua";
}

/* A line without its newline, in heap memory; NULL at the end of the input. */
static char *read_line(const char *prompt)
{
    if (editor.read)
        return editor.read(prompt);
    fputs(prompt, stdout);
    fflush(stdout);
    char *line = malloc(LINE_MAX_BYTES);
    if (line && fgets(line, LINE_MAX_BYTES, stdin))
        return line;
    free(line);
    return NULL;
}

static void save_line(const char *line)
{
    if (editor.add_history)
        editor.add_history(line);
}

/* Pushes the prompt's text: _PROMPT or _PROMPT2 of the script, where set. */
static const char *push_prompt(lua_State *L, bool first)
{
    if (lua_getglobal(L, first ? "_PROMPT" : "_PROMPT2") == LUA_TNIL) {
        lua_pop(L, 1);
        return lua_pushstring(L, first ? "> " : ">> ");
    }
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    return lua_tostring(L, -1);
}

/* Reads a line and pushes it. `=x` at the start of a statement is `return x`. */
static bool push_line(lua_State *L, bool first)
{
    char *line = read_line(push_prompt(L, first));
    lua_pop(L, 1);
    if (!line)
        return false;
    line[strcspn(line, "\n")] = '\0';
    if (first && *line == '=')
        lua_pushfstring(L, "return %s", line + 1);
    else
        lua_pushstring(L, line);
    free(line);
    return true;
}

/* Whether the text could go on. Drops the message then. */
static bool is_incomplete(lua_State *L, int status)
{
    static const char mark[] = "<eof>";
    if (status != LUA_ERRSYNTAX)
        return false;
    size_t n;
    const char *message = lua_tolstring(L, -1, &n);
    if (n < sizeof mark - 1 || strcmp(message + n - (sizeof mark - 1), mark) != 0)
        return false;
    lua_pop(L, 1);
    return true;
}

/* The line as an expression. On success the function stands over the line. */
static int load_expression(lua_State *L)
{
    const char *line = lua_tostring(L, -1), *text = lua_pushfstring(L, "return %s;", line);
    int status = luaL_loadbuffer(L, text, strlen(text), "=stdin");
    if (status == LUA_OK) {
        lua_remove(L, -2);
        if (*line)
            save_line(line);
    } else {
        lua_pop(L, 2);
    }
    return status;
}

/* The line as statements, with further lines while it is incomplete. */
static int load_statements(lua_State *L)
{
    for (;;) {
        size_t n;
        const char *text = lua_tolstring(L, 1, &n);
        int status = luaL_loadbuffer(L, text, n, "=stdin");
        if (!is_incomplete(L, status) || !push_line(L, false)) {
            save_line(text);
            return status;
        }
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
        lua_concat(L, 3);
    }
}

/* Leaves a function or a message as the only value. False at the end of the input. */
static bool load_input(lua_State *L, int *ret_status)
{
    lua_settop(L, 0);
    if (!push_line(L, true))
        return false;
    *ret_status = load_expression(L);
    if (*ret_status != LUA_OK)
        *ret_status = load_statements(L);
    lua_remove(L, 1);
    return true;
}

static void print_results(lua_State *L)
{
    int n = lua_gettop(L);
    if (!n)
        return;
    luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    if (lua_pcall(L, n, 0, 0) != LUA_OK)
        vl_driver_message(lua_pushfstring(L, "error calling 'print' (%s)", lua_tostring(L, -1)));
}

void vl_repl(lua_State *L)
{
    int status;
    load_editor();
    vl_driver_interactive = true;
    while (load_input(L, &status)) {
        if (status == LUA_OK)
            status = vl_driver_call(L, 0, LUA_MULTRET);
        if (status == LUA_OK)
            print_results(L);
        else
            vl_driver_report(L, status);
    }
    lua_settop(L, 0);
    putchar('\n');
    fflush(stdout);
    vl_driver_interactive = false;
}
