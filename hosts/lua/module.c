#include "config.h"
#include "hosts/lua/module.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE_MAX 4096

/* How many bytes of path the root takes, 0 where it isn't one. */
static size_t under(const char *path, const char *root, size_t n)
{
    return n && !strncmp(path, root, n) ? n : 0;
}

/* The best root among the templates of package.path, and how long the part after the `?` is. */
static void best_template(const char *path, const char *templates, size_t *root, size_t *tail)
{
    size_t path_len = strlen(path);
    for (const char *t = templates; *t;) {
        size_t n = strcspn(t, ";");
        const char *mark = memchr(t, '?', n);
        if (mark) {
            size_t lead = (size_t)(mark - t), rest = n - lead - 1;
            if (lead > *root && under(path, t, lead) && path_len > lead + rest &&
                !memcmp(path + path_len - rest, mark + 1, rest)) {
                *root = lead;
                *tail = rest;
            }
        }
        t += n + (t[n] == ';');
    }
}

/* Raw reads only: the script may have put anything there. Leaves the stack as it was; the text lives as long as the
 * table has it. */
static const char *package_path(lua_State *L)
{
    const char *path = NULL;
    if (!lua_checkstack(L, 6))
        return NULL;
    int top = lua_gettop(L);
    if (lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE) == LUA_TTABLE) {
        lua_pushliteral(L, "package");
        if (lua_rawget(L, -2) == LUA_TTABLE) {
            lua_pushliteral(L, "path");
            if (lua_rawget(L, -2) == LUA_TSTRING)
                path = lua_tostring(L, -1);
        }
    }
    lua_settop(L, top);
    return path;
}

char *vl_module_of_file(lua_State *L, const char *path, const char *script)
{
    size_t root = 0, tail = 0, len = strlen(path);
    const char *templates = package_path(L);
    if (templates)
        best_template(path, templates, &root, &tail);
    const char *slash = script ? strrchr(script, '/') : NULL;
    size_t dir = slash ? under(path, script, (size_t)(slash - script) + 1) : 0;
    if (dir >= root && dir) {
        root = dir;
        tail = 0;
    }
    if (!root && *path == '/')
        root = (size_t)(strrchr(path, '/') - path) + 1;
    if (!root && !strncmp(path, "./", 2))
        root = 2;
    if (!tail && len > root + 4 && !strcmp(path + len - 4, ".lua"))
        tail = 4;
    char *name = strndup(path + root, len - root - tail);
    for (char *c = name; c && *c; c++)
        if (*c == '/')
            *c = '.';
    return name;
}

int64_t vl_module_text_shift(const char *path, const char *text, size_t n)
{
    char head[FIRST_LINE_MAX];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return 0;
    ssize_t got = !fstat(fd, &st) && S_ISREG(st.st_mode) ? read(fd, head, sizeof head) : 0;
    close(fd);
    if (got < 3)
        return 0;
    int64_t bom = !memcmp(head, "\xEF\xBB\xBF", 3) ? 3 : 0;
    const char *newline = memchr(head, '\n', (size_t)got);
    if (n && *text == '\n' && bom < got && head[bom] == '#' && newline)
        return newline - head;
    return bom;
}
