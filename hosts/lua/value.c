#include "config.h"
#include "hosts/lua/value.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/identity.h"
#include "hosts/lua/utf8.h"

#define MAX_DEPTH 32           /* containers that are open at once: varve.h's own bound */
#define MAX_ITEMS (4 << 20)    /* of a list */
#define MAX_KEYS (128 << 10)   /* of a map: they stand on Lua's stack */
#define SPARE_SLOTS 8
#define MAX_PARAMETERS 256

static const char name_key; /* the registry has the text "__name" here: making one may raise */

void vl_value_open(lua_State *L)
{
    lua_pushliteral(L, "__name");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &name_key);
}

typedef enum { KEY_NUMBER, KEY_BOOLEAN, KEY_STRING } key_kind;

/* A key, and where it stands on the stack. Its text is made when it is put. */
typedef struct {
    key_kind kind;
    bool is_float, is_utf8;
    int slot;
    union {
        lua_Integer i; /* booleans too */
        lua_Number n;
        struct {
            const char *text;
            size_t n;
        } s;
    } as;
} key;

/* A table whose begin was put, and not its end. */
typedef struct {
    const void *table;
    int slot; /* of the table; its keys are above */
    bool is_list, is_object;
    lua_Integer at, n;
    key *keys; /* sorted: numbers, booleans, strings */
    size_t strings; /* the first string */
    size_t others; /* entries whose keys have no text */
} open_table;

typedef struct {
    varve_capture *c;
    lua_State *L;
    size_t depth;
    open_table open[MAX_DEPTH];
} walk;

void vl_value_put_string(varve_capture *c, const char *s, size_t n)
{
    if (vl_utf8_is(s, n))
        varve_put_text(c, s, n);
    else
        varve_put_bytes(c, s, n);
}

/* The name that the value's metatable has; NULL: none. The value is at the top. */
static const char *type_name(lua_State *L)
{
    const char *name = NULL;
    if (!lua_getmetatable(L, -1))
        return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &name_key);
    if (lua_rawget(L, -2) == LUA_TSTRING)
        name = lua_tostring(L, -1); /* the metatable keeps it */
    lua_pop(L, 2);
    return name;
}

static void put_function(varve_capture *c, lua_State *L)
{
    char message[256];
    const char *name = vl_identify_name(L);
    snprintf(message, sizeof message, "function%s%s", name ? " " : "", name ? name : "");
    varve_put_omitted(c, VARVE_OMITTED_UNSUPPORTED, message);
}

static void put_host_owned(varve_capture *c, lua_State *L)
{
    char message[256];
    const char *name = lua_isuserdata(L, -1) && !lua_islightuserdata(L, -1) ? type_name(L) : NULL;
    if (!name)
        name = lua_islightuserdata(L, -1) ? "light userdata" : lua_typename(L, lua_type(L, -1));
    snprintf(message, sizeof message, "%s", name);
    varve_put_omitted(c, VARVE_OMITTED_HOST_OWNED, message);
}

static void put_number(varve_capture *c, lua_State *L)
{
    if (lua_isinteger(L, -1))
        varve_put_int(c, lua_tointeger(L, -1));
    else
        varve_put_float(c, lua_tonumber(L, -1));
}

/* Anything but a table. */
static void put_plain(varve_capture *c, lua_State *L)
{
    size_t n;
    const char *s;
    switch (lua_type(L, -1)) {
    case LUA_TNIL: varve_put_null(c); break;
    case LUA_TBOOLEAN: varve_put_bool(c, lua_toboolean(L, -1)); break;
    case LUA_TNUMBER: put_number(c, L); break;
    case LUA_TSTRING:
        s = lua_tolstring(L, -1, &n);
        vl_value_put_string(c, s, n);
        break;
    case LUA_TFUNCTION: put_function(c, L); break;
    default: put_host_owned(c, L); break;
    }
}

/* Keys from 1 to n and no others: *ret_n. The table is at the top. */
static bool is_list(lua_State *L, lua_Integer *ret_n)
{
    lua_Unsigned n = lua_rawlen(L, -1), count = 0;
    int t = lua_gettop(L);
    *ret_n = (lua_Integer)n;
    if (n > MAX_ITEMS)
        return true;
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2) || (lua_Unsigned)lua_tointeger(L, -2) - 1 >= n) {
            lua_settop(L, t);
            return false;
        }
        count++;
    }
    return count == n;
}

/* The key at this slot; false where it has no text. */
static bool read_key(lua_State *L, int slot, key *ret)
{
    *ret = (key){.slot = slot};
    switch (lua_type(L, slot)) {
    case LUA_TNUMBER:
        ret->kind = KEY_NUMBER;
        ret->is_float = !lua_isinteger(L, slot);
        if (ret->is_float)
            ret->as.n = lua_tonumber(L, slot);
        else
            ret->as.i = lua_tointeger(L, slot);
        return true;
    case LUA_TBOOLEAN:
        ret->kind = KEY_BOOLEAN;
        ret->as.i = lua_toboolean(L, slot);
        return true;
    case LUA_TSTRING:
        ret->kind = KEY_STRING;
        ret->as.s.text = lua_tolstring(L, slot, &ret->as.s.n);
        ret->is_utf8 = vl_utf8_is(ret->as.s.text, ret->as.s.n);
        return true;
    default: return false;
    }
}

static int compare_texts(const char *a, size_t a_n, const char *b, size_t b_n)
{
    int order = memcmp(a, b, a_n < b_n ? a_n : b_n);
    return order ? order : (a_n > b_n) - (a_n < b_n);
}

static int compare_keys(const void *va, const void *vb)
{
    const key *a = va, *b = vb;
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    if (a->kind == KEY_STRING)
        return compare_texts(a->as.s.text, a->as.s.n, b->as.s.text, b->as.s.n);
    if (!a->is_float && !b->is_float)
        return (a->as.i > b->as.i) - (a->as.i < b->as.i);
    long double x = a->is_float ? (long double)a->as.n : (long double)a->as.i;
    long double y = b->is_float ? (long double)b->as.n : (long double)b->as.i;
    return (x > y) - (x < y);
}

/* Pushes the keys of the table at the top of the stack, and notes them. False where there is no room. */
static bool collect_keys(lua_State *L, open_table *o)
{
    size_t cap = 0, n = 0;
    for (lua_pushnil(L); lua_next(L, o->slot);) {
        lua_pop(L, 1);
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            key *keys = cap <= MAX_KEYS && lua_checkstack(L, (int)(cap - n) + SPARE_SLOTS)
                            ? realloc(o->keys, cap * sizeof *keys) : NULL;
            if (!keys)
                return false;
            o->keys = keys;
        }
        int slot = lua_gettop(L);
        if (read_key(L, slot, &o->keys[n]))
            n++;
        else
            o->others++;
        if (o->others > MAX_KEYS || !lua_checkstack(L, SPARE_SLOTS))
            return false;
        lua_pushvalue(L, slot);
    }
    o->n = (lua_Integer)n;
    return true;
}

static void note_strings(open_table *o)
{
    size_t n = (size_t)o->n;
    if (n)
        qsort(o->keys, n, sizeof *o->keys, compare_keys);
    while (o->strings < n && o->keys[o->strings].kind != KEY_STRING)
        o->strings++;
}

static void leave_out(walk *w, varve_omission why, const char *message)
{
    varve_put_omitted(w->c, why, message);
    lua_pop(w->L, 1);
}

static void begin_list(walk *w, open_table *o)
{
    varve_list_begin(w->c);
    o->is_list = true;
    w->depth++;
}

static void begin_map(walk *w, open_table *o, const char *class_name)
{
    if (!collect_keys(w->L, o)) {
        free(o->keys);
        lua_settop(w->L, o->slot);
        leave_out(w, VARVE_OMITTED_UNSUPPORTED, "table of too many keys");
        return;
    }
    note_strings(o);
    o->is_object = class_name;
    if (class_name)
        varve_object_begin(w->c, class_name);
    else
        varve_map_begin(w->c);
    w->depth++;
}

static bool is_open(const walk *w, const void *table)
{
    for (size_t i = 0; i < w->depth; i++)
        if (w->open[i].table == table)
            return true;
    return false;
}

/* Takes the table from the top of the stack, or makes it the innermost that is open. */
static void begin_table(walk *w)
{
    lua_State *L = w->L;
    const void *table = lua_topointer(L, -1);
    lua_Integer n;
    if (is_open(w, table)) {
        leave_out(w, VARVE_OMITTED_CYCLE, "table that contains itself");
    } else if (w->depth == MAX_DEPTH) {
        leave_out(w, VARVE_OMITTED_UNSUPPORTED, "table nested too deeply");
    } else if (!lua_checkstack(L, SPARE_SLOTS)) {
        leave_out(w, VARVE_OMITTED_UNSUPPORTED, "table for which the stack has no room");
    } else {
        open_table *o = &w->open[w->depth];
        const char *class_name = type_name(L);
        *o = (open_table){.table = table, .slot = lua_gettop(L)};
        if (class_name || !is_list(L, &n))
            begin_map(w, o, class_name);
        else if (n > MAX_ITEMS)
            leave_out(w, VARVE_OMITTED_UNSUPPORTED, "table of too many items");
        else {
            o->n = n;
            begin_list(w, o);
        }
    }
}

/* Whether a string of the map has this text. */
static bool has_text(const open_table *o, const char *text, size_t n)
{
    size_t from = o->strings, to = (size_t)o->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const key *k = &o->keys[middle];
        int order = compare_texts(k->as.s.text, k->as.s.n, text, n);
        if (!order)
            return true;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

/* A text that isn't a string of the map itself: in brackets, as often as it takes to be none of those. text has room
 * for them: before it MAX_BRACKETS bytes, after it as many. */
enum { MAX_BRACKETS = 32 };
static void put_key_text(walk *w, const open_table *o, char *text, size_t n)
{
    for (int i = 0; i < MAX_BRACKETS && has_text(o, text, n); i++) {
        *--text = '[';
        text[n + 1] = ']';
        n += 2;
    }
    varve_map_key(w->c, text, n);
}

static size_t write_number(const key *k, char *into, size_t room)
{
    if (!k->is_float)
        return (size_t)snprintf(into, room, "%lld", (long long)k->as.i);
    int n = snprintf(into, room, "%.14g", (double)k->as.n);
    if (strtod(into, NULL) != (double)k->as.n)
        n = snprintf(into, room, "%.17g", (double)k->as.n);
    return (size_t)n;
}

/* Bytes that are no UTF-8, as Lua writes them in a string: \xff. The backslash too, so that no two are the same. */
static void put_bytes_key(walk *w, const open_table *o, const key *k)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(k->as.s.n * 4 + 2 * MAX_BRACKETS);
    if (!text) {
        varve_capture_fail(w->c);
        return;
    }
    size_t n = 0;
    char *at = text + MAX_BRACKETS;
    for (size_t i = 0; i < k->as.s.n; i++) {
        unsigned char b = (unsigned char)k->as.s.text[i];
        if (b >= 0x20 && b < 0x7f && b != '\\') {
            at[n++] = (char)b;
        } else {
            at[n++] = '\\';
            at[n++] = 'x';
            at[n++] = digits[b >> 4];
            at[n++] = digits[b & 15];
        }
    }
    put_key_text(w, o, at, n);
    free(text);
}

static void put_key(walk *w, const open_table *o, const key *k)
{
    char text[64 + 2 * MAX_BRACKETS], *at = text + MAX_BRACKETS;
    switch (k->kind) {
    case KEY_NUMBER: put_key_text(w, o, at, write_number(k, at, 64)); break;
    case KEY_BOOLEAN: put_key_text(w, o, at, (size_t)snprintf(at, 64, "%s", k->as.i ? "true" : "false")); break;
    case KEY_STRING:
        if (k->is_utf8)
            varve_map_key(w->c, k->as.s.text, k->as.s.n);
        else
            put_bytes_key(w, o, k);
        break;
    }
}

static void put_others(walk *w, const open_table *o)
{
    char text[64 + 2 * MAX_BRACKETS], *at = text + MAX_BRACKETS, message[96];
    put_key_text(w, o, at, (size_t)snprintf(at, 64, "[other keys]"));
    snprintf(message, sizeof message, "%zu %s of keys that are no text, number or boolean", o->others,
             o->others == 1 ? "value" : "values");
    varve_put_omitted(w->c, VARVE_OMITTED_UNSUPPORTED, message);
}

static void end_table(walk *w, open_table *o)
{
    if (o->others)
        put_others(w, o);
    if (o->is_list)
        varve_list_end(w->c);
    else if (o->is_object)
        varve_object_end(w->c);
    else
        varve_map_end(w->c);
    free(o->keys);
    lua_settop(w->L, o->slot - 1);
    w->depth--;
}

/* Pushes the next value of the table; its key has been put. */
static void push_next(walk *w, open_table *o)
{
    if (o->is_list) {
        lua_rawgeti(w->L, o->slot, ++o->at);
    } else {
        const key *k = &o->keys[o->at++];
        put_key(w, o, k);
        lua_pushvalue(w->L, k->slot);
        lua_rawget(w->L, o->slot);
    }
}

static void put_top(walk *w)
{
    if (lua_istable(w->L, -1)) {
        begin_table(w);
    } else {
        put_plain(w->c, w->L);
        lua_pop(w->L, 1);
    }
}

static void give_up(walk *w)
{
    while (w->depth)
        free(w->open[--w->depth].keys);
}

void vl_value_put(varve_capture *c, lua_State *L)
{
    walk w;
    w.c = c;
    w.L = L;
    w.depth = 0;
    int top = lua_gettop(L), type = lua_type(L, -1);
    if (type < LUA_TTABLE) {
        put_plain(c, L);
        return;
    }
    if (!lua_checkstack(L, SPARE_SLOTS)) {
        varve_put_omitted(c, VARVE_OMITTED_UNSUPPORTED, lua_typename(L, type));
        return;
    }
    lua_pushvalue(L, -1);
    put_top(&w);
    while (w.depth && !varve_capture_is_lost(c)) {
        open_table *o = &w.open[w.depth - 1];
        if (o->at < o->n) {
            push_next(&w, o);
            put_top(&w);
        } else {
            end_table(&w, o);
        }
    }
    give_up(&w);
    lua_settop(L, top);
}

/* Slot n of the call. */
static const char *put_local(varve_capture *c, lua_State *L, lua_Debug *ar, int n)
{
    const char *name = lua_getlocal(L, ar, n);
    if (name) {
        vl_value_put(c, L);
        lua_pop(L, 1);
    }
    return name;
}

static bool has_local(lua_State *L, lua_Debug *ar, int n, const char **ret_name)
{
    const char *name = lua_getlocal(L, ar, n);
    if (name)
        lua_pop(L, 1);
    *ret_name = name;
    return name;
}

/* The n-th parameter's name, from 1; a name that an earlier one has gets a number. */
static void put_parameter_name(varve_capture *c, const char *const *names, int n)
{
    char text[300];
    int same = 1;
    for (int i = 1; i < n; i++)
        same += !strcmp(names[i], names[n]);
    if (*names[n] == '(') /* the names were stripped; or it is a C function's */
        snprintf(text, sizeof text, "%d", n);
    else if (same > 1)
        snprintf(text, sizeof text, "%.250s#%d", names[n], same);
    else
        snprintf(text, sizeof text, "%.299s", names[n]);
    varve_map_key(c, text, strlen(text));
}

static void put_varargs(varve_capture *c, lua_State *L, lua_Debug *ar)
{
    varve_map_key(c, "...", 3);
    varve_list_begin(c);
    for (int n = -1; !varve_capture_is_lost(c) && put_local(c, L, ar, n); n--)
        ;
    varve_list_end(c);
}

static void put_native_arguments(varve_capture *c, lua_State *L, lua_Debug *ar)
{
    char text[16];
    const char *name;
    for (int n = 1; !varve_capture_is_lost(c) && has_local(L, ar, n, &name); n++) {
        varve_map_key(c, text, (size_t)snprintf(text, sizeof text, "%d", n));
        put_local(c, L, ar, n);
    }
}

void vl_value_put_arguments(varve_capture *c, lua_State *L, lua_Debug *ar)
{
    const char *names[MAX_PARAMETERS];
    lua_Debug a = {.i_ci = ar->i_ci};
    lua_getinfo(L, "Su", &a);
    varve_map_begin(c);
    if (*a.what == 'C')
        put_native_arguments(c, L, ar);
    for (int n = 1; n <= a.nparams && *a.what != 'C' && has_local(L, ar, n, &names[n]); n++) {
        put_parameter_name(c, names, n);
        put_local(c, L, ar, n);
    }
    if (a.isvararg && *a.what != 'C')
        put_varargs(c, L, ar);
    varve_map_end(c);
}

void vl_value_put_results(varve_capture *c, lua_State *L, lua_Debug *ar)
{
    lua_Debug a = {.i_ci = ar->i_ci};
    lua_getinfo(L, "r", &a);
    if (!a.ntransfer)
        varve_put_null(c);
    if (a.ntransfer > 1)
        varve_list_begin(c);
    for (int n = 0; n < a.ntransfer && !varve_capture_is_lost(c); n++)
        put_local(c, L, ar, a.ftransfer + n);
    if (a.ntransfer > 1)
        varve_list_end(c);
}

void vl_value_put_slots(varve_capture *c, lua_State *L, int first, int n)
{
    if (!n || !lua_checkstack(L, 1))
        varve_put_null(c);
    if (n > 1)
        varve_list_begin(c);
    for (int i = 0; i < n && !varve_capture_is_lost(c); i++) {
        lua_pushvalue(L, first + i);
        vl_value_put(c, L);
        lua_pop(L, 1);
    }
    if (n > 1)
        varve_list_end(c);
}
