#include "config.h"
#include "hosts/lua/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/lex.h"

/* The compiler refuses more than 200 levels of nesting; a level of it opens at most two of these. */
#define MAX_NEST 512
#define MAX_OWN 120     /* bytes of one function's own name */
#define MAX_PATH 1024   /* bytes of a whole path */
#define MAX_TARGETS 64  /* names on the left of one assignment; later ones go unnamed */

typedef enum { IN_FUNCTION, IN_BLOCK, IN_REPEAT, IN_PAREN, IN_BRACKET, IN_BRACE } nest_kind;

/* Where a statement or a table field stands. */
typedef enum { AT_START, AT_TARGETS, AT_VALUES, AT_KEY, AT_OTHER } nest_place;

/*
 * One open bracket or block. Texts live on the parser's byte stack from `base` on: for a table its own prefix, then the
 * finished targets (or the field's key), each ended by NUL, then the path being read. Leaving the level cuts the stack
 * back.
 */
typedef struct {
    nest_kind kind;
    nest_place place;
    bool is_local, path_ok, lone_literal;
    uint32_t function; /* IN_FUNCTION: its index */
    unsigned tokens;   /* IN_BRACKET: how many were seen inside */
    unsigned targets, value;
    size_t base, targets_at, path_at;
} nest;

typedef struct {
    vl_lex x;
    vl_token prev;
    char prev_punct;
    nest stack[MAX_NEST];
    size_t depth;
    char *text; /* the byte stack */
    size_t len, cap;
    vl_name *items;
    char (*own)[MAX_OWN]; /* beside items: the name without the encloser's path, "" = anonymous */
    size_t n, items_cap;
    bool failed;
} parser;

static nest *top(parser *p)
{
    return &p->stack[p->depth - 1];
}

static void put(parser *p, const char *s, size_t n)
{
    if (p->len + n + 1 > p->cap) {
        size_t cap = (p->len + n + 1) * 2;
        char *text = realloc(p->text, cap);
        if (!text) {
            p->failed = true;
            return;
        }
        p->text = text;
        p->cap = cap;
    }
    memcpy(p->text + p->len, s, n);
    p->len += n;
    p->text[p->len] = '\0';
}

static void enter(parser *p, nest_kind kind)
{
    if (p->depth == MAX_NEST) {
        p->failed = true;
        return;
    }
    p->stack[p->depth++] = (nest){.kind = kind, .base = p->len, .targets_at = p->len, .path_at = p->len};
}

static void leave(parser *p)
{
    p->len = top(p)->base;
    p->depth--;
    if (p->text)
        p->text[p->len] = '\0';
}

static bool is_block(nest_kind kind)
{
    return kind == IN_FUNCTION || kind == IN_BLOCK || kind == IN_REPEAT;
}

static void start_statement(parser *p)
{
    nest *t = top(p);
    p->len = t->path_at = t->targets_at;
    t->place = AT_START;
    t->targets = t->value = 0;
    t->is_local = t->path_ok = false;
}

static void start_path(parser *p)
{
    nest *t = top(p);
    p->len = t->path_at;
    put(p, p->x.text + p->x.start, p->x.end - p->x.start);
    t->path_ok = true;
}

/* Ends the path being read as one more target (an empty text where it has no name). */
static void finish_target(parser *p)
{
    nest *t = top(p);
    if (!t->path_ok)
        p->len = t->path_at;
    put(p, "", 1);
    t->path_at = p->len;
    t->path_ok = false;
    t->targets++;
}

static const char *target(const parser *p, const nest *t, unsigned i)
{
    if (i >= t->targets || i >= MAX_TARGETS)
        return "";
    const char *s = p->text + t->targets_at;
    for (; i; i--)
        s += strlen(s) + 1;
    return s;
}

static bool prev_is(const parser *p, char punct)
{
    return p->prev == VL_TOKEN_PUNCT && p->prev_punct == punct;
}

/* What a function or table that starts at this token is written into, in ret[MAX_OWN]; "" = nothing with a name. */
static void place_name(parser *p, char ret[MAX_OWN])
{
    const nest *t = top(p);
    const char *name = "", *prefix = "";
    bool direct = prev_is(p, '=') || p->prev == VL_TOKEN_OPERATOR;
    if (is_block(t->kind) && t->place == AT_VALUES && (direct || prev_is(p, ',')))
        name = target(p, t, t->value);
    if (t->kind == IN_BRACE && t->place == AT_VALUES && direct) {
        name = target(p, t, 0);
        prefix = p->text + t->base;
    }
    snprintf(ret, MAX_OWN, "%s%s%s", prefix, *prefix && *name && *name != '[' ? "." : "", name);
    if (!*name)
        ret[0] = '\0';
}

static bool grow_items(parser *p)
{
    size_t cap = p->items_cap ? p->items_cap * 2 : 16;
    vl_name *items = realloc(p->items, cap * sizeof *items);
    if (items)
        p->items = items;
    char (*own)[MAX_OWN] = realloc(p->own, cap * sizeof *own);
    if (own)
        p->own = own;
    if (items && own)
        p->items_cap = cap;
    else
        p->failed = true;
    return items && own;
}

static void open_function(parser *p, const char *own, size_t start, int line)
{
    if (p->n == p->items_cap && !grow_items(p))
        return;
    uint32_t parent = 0;
    for (size_t i = p->depth; i > 0; i--)
        if (p->stack[i - 1].kind == IN_FUNCTION) {
            parent = p->stack[i - 1].function;
            break;
        }
    snprintf(p->own[p->n], MAX_OWN, "%s", own);
    p->items[p->n] = (vl_name){.parent = parent, .start = (uint32_t)start, .line = line};
    if (p->n)
        p->items[parent].children++;
    enter(p, IN_FUNCTION);
    if (!p->failed)
        top(p)->function = (uint32_t)p->n++;
}

static void close_function(parser *p)
{
    vl_name *f = &p->items[top(p)->function];
    f->end = (uint32_t)p->x.end;
    f->last_line = p->x.line;
}

static void next(parser *p)
{
    p->prev = p->x.token;
    p->prev_punct = p->x.punct;
    vl_lex_next(&p->x);
}

/* At `function`: reads up to the parenthesis of its parameters. A name is a statement, none is an expression. */
static void read_function(parser *p)
{
    bool local = p->prev == VL_TOKEN_LOCAL, statement = false;
    size_t start = p->x.start, len = 0;
    int line = p->x.line;
    char own[MAX_OWN];
    place_name(p, own);
    next(p);
    if (p->x.token == VL_TOKEN_NAME) {
        statement = true;
        start_statement(p);
    }
    for (; p->x.token == VL_TOKEN_NAME || (statement && (p->x.punct == '.' || p->x.punct == ':')); next(p))
        for (size_t i = p->x.start; i < p->x.end && len + 1 < MAX_OWN; i++)
            own[len++] = p->x.text[i];
    if (statement)
        own[len] = '\0';
    if (p->x.punct != '(') {
        p->failed = true;
        return;
    }
    open_function(p, own, start, statement && !local ? line : p->x.line);
    enter(p, IN_PAREN);
}

/* Whether a name after this token begins a statement. */
static bool begins_statement(const parser *p)
{
    switch (p->prev) {
    case VL_TOKEN_OPERATOR:
    case VL_TOKEN_COMPARE:
    case VL_TOKEN_RETURN:
        return false;
    case VL_TOKEN_PUNCT:
        return p->prev_punct == ')' || p->prev_punct == ']' || p->prev_punct == '}' || p->prev_punct == ';';
    case VL_TOKEN_END:
    case VL_TOKEN_NAME:
    case VL_TOKEN_STRING:
    case VL_TOKEN_NUMBER:
    case VL_TOKEN_LABEL:
    case VL_TOKEN_FUNCTION:
    case VL_TOKEN_IF:
    case VL_TOKEN_DO:
    case VL_TOKEN_REPEAT:
    case VL_TOKEN_BLOCK_END:
    case VL_TOKEN_UNTIL:
    case VL_TOKEN_LOCAL:
    case VL_TOKEN_VALUE:
    case VL_TOKEN_WORD:
        break;
    }
    return true;
}

static void read_name(parser *p)
{
    nest *t = top(p);
    bool part = prev_is(p, '.') || prev_is(p, ':');
    if (part) {
        if (t->path_ok && t->place == AT_TARGETS) {
            put(p, &p->prev_punct, 1);
            put(p, p->x.text + p->x.start, p->x.end - p->x.start);
        }
    } else if (t->kind == IN_BRACE) {
        if (t->place == AT_START) {
            start_path(p);
            t->place = AT_KEY;
        }
    } else if (is_block(t->kind)) {
        if (begins_statement(p)) {
            start_statement(p);
            start_path(p);
            t->place = AT_TARGETS;
            t->is_local = p->prev == VL_TOKEN_LOCAL;
        } else if (t->place == AT_TARGETS && prev_is(p, ',')) {
            start_path(p);
        }
    }
}

/* A value token where a path was being read: `f "text"`, `f.x(…).y`: what follows has no simple name. */
static void spoil_path(parser *p)
{
    nest *t = top(p);
    if (is_block(t->kind) && t->place == AT_TARGETS && !t->is_local)
        t->path_ok = false;
    if (t->kind == IN_BRACE && (t->place == AT_START || t->place == AT_KEY))
        t->place = AT_OTHER;
}

static void read_equals(parser *p)
{
    nest *t = top(p);
    bool named = is_block(t->kind) ? t->place == AT_TARGETS : t->kind == IN_BRACE && t->place == AT_KEY;
    if (!named)
        return;
    finish_target(p);
    t->place = AT_VALUES;
}

static void start_field(parser *p)
{
    nest *t = top(p);
    p->len = t->path_at = t->targets_at;
    t->place = AT_START;
    t->targets = 0;
    t->path_ok = false;
}

static void read_comma(parser *p)
{
    nest *t = top(p);
    if (t->kind == IN_BRACE)
        start_field(p);
    else if (is_block(t->kind) && t->place == AT_TARGETS)
        finish_target(p);
    else if (is_block(t->kind) && t->place == AT_VALUES)
        t->value++;
}

static void open_brace(parser *p)
{
    char prefix[MAX_OWN];
    place_name(p, prefix);
    spoil_path(p);
    enter(p, IN_BRACE);
    if (p->failed)
        return;
    put(p, prefix, strlen(prefix));
    put(p, "", 1);
    top(p)->targets_at = top(p)->path_at = p->len;
}

/* `[` begins an index of the path being read, or a table field's key. */
static void open_bracket(parser *p)
{
    nest *t = top(p);
    if (t->kind == IN_BRACE && t->place == AT_START) {
        p->len = t->path_at;
        t->path_ok = true;
        t->place = AT_KEY;
    }
    enter(p, IN_BRACKET);
}

/* The key of a closed bracket becomes part of the path where it was one literal. */
static void close_bracket(parser *p, const nest *b, bool string, size_t start, size_t end)
{
    nest *t = top(p);
    bool reading = t->kind == IN_BRACE ? t->place == AT_KEY : is_block(t->kind) && t->place == AT_TARGETS;
    if (!reading || !t->path_ok)
        return;
    if (b->tokens != 1 || !b->lone_literal || end - start >= MAX_OWN) {
        t->path_ok = false;
        return;
    }
    if (!string)
        put(p, "[", 1);
    else if (p->len > t->path_at)
        put(p, ".", 1);
    put(p, p->x.text + start, end - start);
    if (!string)
        put(p, "]", 1);
}

static void read_close(parser *p, nest_kind kind, bool string, size_t start, size_t end)
{
    if (top(p)->kind != kind) {
        p->failed = true;
        return;
    }
    nest closed = *top(p);
    leave(p);
    if (kind == IN_BRACKET)
        close_bracket(p, &closed, string, start, end);
}

static void read_block_end(parser *p, bool until)
{
    nest_kind kind = top(p)->kind;
    if (p->depth == 1 || (until ? kind != IN_REPEAT : kind != IN_FUNCTION && kind != IN_BLOCK)) {
        p->failed = true;
        return;
    }
    if (kind == IN_FUNCTION)
        close_function(p);
    leave(p);
    if (until)
        start_statement(p);
}

/* The last literal seen, for brackets that hold just one. */
typedef struct {
    bool string;
    size_t start, end;
} literal;

static void read_punct(parser *p, const literal *l)
{
    switch (p->x.punct) {
    case '(': spoil_path(p); enter(p, IN_PAREN); break;
    case ')': read_close(p, IN_PAREN, false, 0, 0); break;
    case '[': open_bracket(p); break;
    case ']': read_close(p, IN_BRACKET, l->string, l->start, l->end); break;
    case '{': open_brace(p); break;
    case '}': read_close(p, IN_BRACE, false, 0, 0); break;
    case '=': read_equals(p); break;
    case ',': read_comma(p); break;
    case ';':
        if (top(p)->kind == IN_BRACE)
            start_field(p);
        else if (is_block(top(p)->kind))
            start_statement(p);
        break;
    case '.':
    case ':': break;
    default: spoil_path(p); break;
    }
}

static void count_in_bracket(parser *p, bool literal_token)
{
    nest *t = top(p);
    if (t->kind == IN_BRACKET && p->x.punct != ']') {
        t->lone_literal = !t->tokens && literal_token;
        t->tokens++;
    }
}

static void read_one(parser *p, literal *l)
{
    bool is_literal = p->x.token == VL_TOKEN_STRING || p->x.token == VL_TOKEN_NUMBER;
    count_in_bracket(p, is_literal);
    switch (p->x.token) {
    case VL_TOKEN_NAME: read_name(p); break;
    case VL_TOKEN_STRING:
    case VL_TOKEN_NUMBER:
        l->string = p->x.token == VL_TOKEN_STRING;
        l->start = l->string ? p->x.body_start : p->x.start;
        l->end = l->string ? p->x.body_end : p->x.end;
        spoil_path(p);
        break;
    case VL_TOKEN_PUNCT: read_punct(p, l); break;
    case VL_TOKEN_FUNCTION: read_function(p); break;
    case VL_TOKEN_IF:
    case VL_TOKEN_DO:
    case VL_TOKEN_REPEAT:
        if (is_block(top(p)->kind))
            start_statement(p);
        enter(p, p->x.token == VL_TOKEN_REPEAT ? IN_REPEAT : IN_BLOCK);
        break;
    case VL_TOKEN_BLOCK_END: read_block_end(p, false); break;
    case VL_TOKEN_UNTIL: read_block_end(p, true); break;
    case VL_TOKEN_LOCAL:
    case VL_TOKEN_RETURN:
    case VL_TOKEN_LABEL:
    case VL_TOKEN_WORD:
        if (is_block(top(p)->kind))
            start_statement(p);
        break;
    case VL_TOKEN_COMPARE:
    case VL_TOKEN_OPERATOR:
    case VL_TOKEN_VALUE: spoil_path(p); break;
    case VL_TOKEN_END: break;
    }
}

static bool parse(parser *p)
{
    literal l = {0};
    open_function(p, "", 0, 0);
    for (vl_lex_next(&p->x); !p->failed && p->x.token != VL_TOKEN_END; next(p))
        read_one(p, &l);
    if (p->failed || p->depth != 1)
        return false;
    p->items[0].end = (uint32_t)p->x.end;
    p->items[0].last_line = 0; /* as the compiler has it for a chunk */
    return true;
}

/* Counts how often each path was asked for, to number the duplicates. */
typedef struct {
    uint32_t *slots; /* index of the path's first owner + 1 */
    uint32_t *count; /* by first owner */
    size_t mask;
} path_table;

static uint32_t path_count(path_table *t, const vl_name *items, const char *base, uint32_t self, const size_t *base_len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t n = strlen(base);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)base[i]) * UINT64_C(0x100000001b3);
    size_t at = (size_t)(h >> 20) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        uint32_t first = t->slots[at] - 1;
        if (base_len[first] == n && !memcmp(items[first].path, base, n))
            return ++t->count[first];
    }
    t->slots[at] = self + 1;
    return t->count[self] = 1;
}

/* Builds the whole paths from the functions' own names. Offsets first, pointers once the text no longer moves. */
static bool build_paths(parser *p, path_table *t, size_t *base_len, char *text)
{
    size_t at = 0;
    text[at++] = '\0';
    p->items[0].path = p->items[0].last = text;
    for (uint32_t i = 1; i < p->n; i++) {
        vl_name *f = &p->items[i];
        const char *outer = p->items[f->parent].path;
        bool anonymous = !*p->own[i];
        char *path = text + at;
        int lead = snprintf(path, MAX_PATH - MAX_OWN - 16, "%s%s", outer, *outer ? "." : "");
        size_t len = (size_t)lead < MAX_PATH - MAX_OWN - 16 ? (size_t)lead : MAX_PATH - MAX_OWN - 17;
        f->path = path;
        f->last = path + len;
        len += (size_t)sprintf(path + len, "%s", anonymous ? "fn" : p->own[i]);
        base_len[i] = len;
        uint32_t k = path_count(t, p->items, path, i, base_len);
        if (anonymous || k > 1)
            len += (size_t)sprintf(path + len, "#%u", k);
        at += len + 1;
    }
    return true;
}

static size_t text_bound(const parser *p)
{
    size_t n = 1, *len = calloc(p->n, sizeof *len);
    if (!len)
        return 0;
    for (size_t i = 1; i < p->n; i++) {
        size_t outer = len[p->items[i].parent];
        len[i] = outer + 1 + strlen(p->own[i]) + 2 + 12;
        if (len[i] > MAX_PATH)
            len[i] = MAX_PATH;
        n += len[i] + 1;
    }
    free(len);
    return n;
}

static bool finish(parser *p, vl_names *ret_names)
{
    size_t slots = 16, bound = text_bound(p);
    while (slots < p->n * 2)
        slots *= 2;
    path_table t = {calloc(slots, sizeof *t.slots), calloc(p->n, sizeof *t.count), slots - 1};
    size_t *base_len = calloc(p->n, sizeof *base_len);
    char *text = bound ? malloc(bound + MAX_PATH) : NULL;
    bool ok = t.slots && t.count && base_len && text && build_paths(p, &t, base_len, text);
    free(t.slots);
    free(t.count);
    free(base_len);
    if (!ok) {
        free(text);
        return false;
    }
    *ret_names = (vl_names){p->items, p->n, text};
    p->items = NULL;
    return true;
}

bool vl_names_parse(const char *text, size_t n, vl_names *ret_names)
{
    parser *p = n <= UINT32_MAX ? malloc(sizeof *p) : NULL;
    if (!p)
        return false;
    memset(p, 0, offsetof(parser, stack));
    memset(&p->depth, 0, sizeof *p - offsetof(parser, depth));
    vl_lex_init(&p->x, text, n);
    bool ok = parse(p) && finish(p, ret_names);
    free(p->text);
    free(p->items);
    free(p->own);
    free(p);
    return ok;
}

bool vl_names_number(const uint32_t *children, const int *lines, size_t n, vl_names *ret_names)
{
    parser *p = malloc(sizeof *p);
    uint32_t *left = calloc(n + 1, sizeof *left);
    if (p) {
        memset(p, 0, offsetof(parser, stack));
        memset(&p->depth, 0, sizeof *p - offsetof(parser, depth));
    }
    bool ok = p && left;
    uint32_t at = 0; /* the function whose children come now */
    for (size_t i = 0; ok && i < n; i++) {
        ok = p->n < p->items_cap || grow_items(p);
        if (!ok)
            break;
        while (i && !left[at])
            at = p->items[at].parent;
        if (i)
            left[at]--;
        p->own[i][0] = '\0';
        p->items[i] = (vl_name){.parent = at, .line = lines[i], .children = children[i]};
        p->n = i + 1;
        left[i] = children[i];
        at = (uint32_t)i;
    }
    ok = ok && finish(p, ret_names);
    if (p) {
        free(p->items);
        free(p->own);
    }
    free(p);
    free(left);
    return ok;
}

void vl_names_done(vl_names *names)
{
    free(names->items);
    free(names->text);
    *names = (vl_names){0};
}
