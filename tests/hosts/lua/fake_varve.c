/*
 * A stand-in for libvarve that keeps the calling-context tree in plain memory and prints it when the session closes, to
 * the file named by VARVE_FAKE_TREE: what the interpreter says, seen without ring, epoch and store. One OS thread.
 *
 *     main:f @12 ok=3 err=1        a context: function, line of its call site, how its calls ended
 *     ~ main:co @7 ok=1 await=2    begun by a thread of its own, spawned at that line; suspended twice
 *
 * With VARVE_FAKE_BRIEF set, a line a function instead: calls, key, file, start of the span. Children are in order of
 * name and line. The last lines are totals and the check that the self times add up to the root's inclusive time.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <varve.h>

#include "runtime/process.h"

#define MAX_FUNCTIONS 100000
#define MAX_SITES 100000

typedef struct node {
    uint32_t function, site;
    bool spawned;
    uint64_t ended[4], open, awaits;
    uint64_t inclusive, child, await;
    struct node *parent, *first, *next, *last_hit;
} node;

typedef struct {
    node *at;
    uint64_t begin, await;
    uint64_t awaits;
} call;

struct varve_thread {
    call *calls;
    size_t depth, cap;
    node *home;
    uint32_t site;
    uint64_t ticks, await_from;
    bool started, awaiting;
    struct varve_thread *next;
};
struct varve_session {
    int unused;
};
struct varve_engine {
    int unused;
};
struct varve_root {
    varve_root_status status;
    bool ended;
};

static char *function_names[MAX_FUNCTIONS], *function_keys[MAX_FUNCTIONS], *function_files[MAX_FUNCTIONS];
static uint32_t function_starts[MAX_FUNCTIONS];
static uint32_t functions, sites, site_lines[MAX_SITES];
static node top;
static struct varve_session the_session;
static struct varve_engine the_engine;
static struct varve_root the_root;
static uint64_t threads[4], errors;
static uint64_t live_threads;

static void fault(const char *what)
{
    if (!errors++)
        fprintf(stderr, "fake varve: %s\n", what);
}

uint64_t varve_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *tree_path(void)
{
    return getenv("VARVE_FAKE_TREE");
}

varve_session *varve_session_open(const varve_options *options)
{
    (void)options;
    return &the_session;
}

void varve_session_status(const varve_session *session, varve_status *ret_status)
{
    (void)session;
    *ret_status = (varve_status){.state = tree_path() ? VARVE_ACTIVE : VARVE_OFF_CONFIGURED, .reason = ""};
}

varve_engine *varve_engine_open(varve_session *session, const varve_engine_info *info)
{
    (void)session;
    (void)info;
    return &the_engine;
}

void varve_engine_close(varve_engine *engine)
{
    (void)engine;
}

uint32_t varve_function_add(varve_engine *engine, const varve_function_info *info)
{
    (void)engine;
    if (functions + 1 == MAX_FUNCTIONS)
        return 0;
    function_names[++functions] = strdup(info->fqn);
    function_keys[functions] = strdup(info->definition_key ? info->definition_key : "");
    function_files[functions] = strdup(info->source_file ? info->source_file : "");
    function_starts[functions] = info->span_start;
    return functions;
}

uint32_t varve_file_add(varve_engine *engine, const char *path)
{
    (void)engine;
    (void)path;
    return 1;
}

uint32_t varve_site_add(varve_engine *engine, uint32_t file, uint32_t start, uint32_t end, uint32_t line)
{
    (void)engine;
    (void)file;
    (void)start;
    (void)end;
    if (sites + 1 == MAX_SITES)
        return 0;
    site_lines[++sites] = line;
    return sites;
}

static varve_thread *thread_new(node *home, uint32_t site)
{
    varve_thread *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->home = home;
    t->site = site;
    live_threads++;
    return t;
}

varve_root *varve_root_begin(varve_engine *engine, const uint8_t *runtime_id, varve_thread **ret_thread)
{
    (void)engine;
    (void)runtime_id;
    *ret_thread = thread_new(&top, 0);
    (*ret_thread)->started = true;
    return &the_root;
}

void varve_root_end(varve_root *root, varve_root_status status)
{
    if (!root->ended)
        root->status = status;
    root->ended = true;
}

static void at(varve_thread *t, uint64_t ticks)
{
    if (ticks < t->ticks)
        fault("ticks run backwards");
    if (!t->started)
        fault("thread not started");
    t->ticks = ticks;
}

static node *context(node *parent, uint32_t function, uint32_t line, bool spawned)
{
    node *n = parent->last_hit;
    if (n && n->function == function && n->site == line && n->spawned == spawned)
        return n;
    for (n = parent->first; n; n = n->next)
        if (n->function == function && n->site == line && n->spawned == spawned)
            return parent->last_hit = n;
    n = calloc(1, sizeof *n);
    n->function = function;
    n->site = line;
    n->spawned = spawned;
    n->parent = parent;
    n->next = parent->first;
    return parent->last_hit = parent->first = n;
}

void varve_call_begin_at(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks)
{
    if (!t)
        return;
    at(t, ticks);
    if (!function)
        fault("no function");
    if (t->depth == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->calls = realloc(t->calls, t->cap * sizeof *t->calls);
    }
    bool first = !t->depth;
    node *parent = first ? t->home : t->calls[t->depth - 1].at;
    node *n = context(parent, function, site_lines[first ? t->site : site], first && t->home != &top);
    n->open++;
    t->calls[t->depth++] = (call){.at = n, .begin = ticks};
}

void varve_call_begin(varve_thread *t, uint32_t function, uint32_t site)
{
    varve_call_begin_at(t, function, site, varve_ticks());
}

/* Nothing is selected here, so nothing asks for a value. */
void varve_call_begin_as(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks, const varve_policy *policy)
{
    (void)policy;
    varve_call_begin_at(t, function, site, ticks);
}

unsigned varve_call_roles(const varve_thread *t)
{
    (void)t;
    return 0;
}

void varve_call_set_runtime_id(varve_thread *t, unsigned up, const uint8_t id[16])
{
    (void)id;
    if (t && t->depth <= up)
        fault("runtime id of no call");
}

varve_capture *varve_value_begin(varve_thread *t, varve_role role)
{
    (void)t;
    (void)role;
    return NULL;
}

varve_capture *varve_error_begin(varve_thread *t, const varve_error *error)
{
    if (t && (t->depth <= error->up || (error->ends != VARVE_ENDS_ALL && error->ends > t->depth)))
        fault("error of no call");
    return NULL;
}

void varve_capture_end(varve_capture *capture)
{
    (void)capture;
}

void varve_call_end_at(varve_thread *t, varve_call_status status, uint64_t ticks)
{
    if (!t)
        return;
    at(t, ticks);
    if (!t->depth) {
        fault("end without begin");
        return;
    }
    call *c = &t->calls[--t->depth];
    uint64_t took = ticks - c->begin;
    c->at->open--;
    c->at->ended[status]++;
    c->at->inclusive += took;
    c->at->await += c->await;
    c->at->awaits += c->awaits;
    if (t->depth)
        t->calls[t->depth - 1].at->child += took;
}

void varve_call_end(varve_thread *t, varve_call_status status)
{
    varve_call_end_at(t, status, varve_ticks());
}

void varve_await_begin(varve_thread *t, uint64_t ticks)
{
    if (!t)
        return;
    at(t, ticks);
    if (t->awaiting)
        fault("await within await");
    t->awaiting = true;
    t->await_from = ticks;
}

void varve_await_end(varve_thread *t, uint64_t ticks)
{
    if (!t)
        return;
    at(t, ticks);
    if (!t->awaiting)
        fault("await end without begin");
    t->awaiting = false;
    if (t->depth) {
        t->calls[t->depth - 1].await += ticks - t->await_from;
        t->calls[t->depth - 1].awaits++;
    }
}

varve_thread *varve_thread_spawn(varve_thread *parent, unsigned up, uint32_t site, const char *name, size_t n)
{
    (void)name;
    (void)n;
    if (!parent)
        return NULL;
    if (parent->depth <= up) {
        fault("spawn from no call");
        return NULL;
    }
    return thread_new(parent->calls[parent->depth - 1 - up].at, site);
}

void varve_thread_start(varve_thread *t, uint64_t ticks)
{
    if (!t)
        return;
    if (t->started && t->home != &top) /* the root's thread begins started */
        fault("started twice");
    t->started = true;
    at(t, ticks);
}

void varve_thread_end_at(varve_thread *t, varve_thread_status status, uint64_t ticks)
{
    if (!t)
        return;
    if (t->depth)
        fault("thread ends with open calls");
    if (t->started) {
        at(t, ticks);
        threads[status]++;
    } else {
        threads[3]++;
    }
    live_threads--;
    free(t->calls);
    free(t);
}

void varve_thread_end(varve_thread *t, varve_thread_status status)
{
    varve_thread_end_at(t, status, varve_ticks());
}

void varve_thread_bind(varve_thread *t)
{
    (void)t;
}

uint64_t varve_thread_depth(const varve_thread *t)
{
    return t ? t->depth : 0;
}

/* Pre-order without recursion: depth may be 180,000. */
static node *after(node *n, size_t *depth)
{
    if (n->first) {
        ++*depth;
        return n->first;
    }
    while (n != &top && !n->next) {
        n = n->parent;
        --*depth;
    }
    return n == &top ? NULL : n->next;
}

static int order(const node *a, const node *b)
{
    int by_name = strcmp(function_names[a->function], function_names[b->function]);
    if (by_name)
        return by_name;
    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    return (int)a->spawned - (int)b->spawned;
}

static void sort_children(node *parent)
{
    node *sorted = NULL;
    for (node *n = parent->first, *next; n; n = next) {
        node **place = &sorted;
        next = n->next;
        while (*place && order(*place, n) < 0)
            place = &(*place)->next;
        n->next = *place;
        *place = n;
    }
    parent->first = sorted;
}

static void print_node(FILE *f, const node *n, size_t depth)
{
    static const char *const words[] = {"ok", "err", "cancelled", "exited"};
    fprintf(f, "%*s%s%s", (int)depth, "", n->spawned ? "~ " : "", function_names[n->function]);
    if (n->site)
        fprintf(f, " @%u", n->site);
    for (int i = 0; i < 4; i++)
        if (n->ended[i])
            fprintf(f, " %s=%llu", words[i], (unsigned long long)n->ended[i]);
    if (n->open)
        fprintf(f, " open=%llu", (unsigned long long)n->open);
    if (n->awaits)
        fprintf(f, " await=%llu", (unsigned long long)n->awaits);
    fputc('\n', f);
}

static void print_functions(FILE *f, const uint64_t *calls)
{
    for (uint32_t i = 1; i <= functions; i++)
        fprintf(f, "calls\t%llu\t%s\t%s\t%u\n", (unsigned long long)calls[i], function_keys[i], function_files[i],
                function_starts[i]);
}

static void print_tree(FILE *f)
{
    static uint64_t calls[MAX_FUNCTIONS];
    uint64_t total = 0, self = 0, root = 0;
    size_t depth = 0;
    bool brief = getenv("VARVE_FAKE_BRIEF");
    for (node *n = &top; n; n = after(n, &depth)) {
        if (!brief)
            sort_children(n);
        if (n == &top)
            continue;
        uint64_t ended = n->ended[0] + n->ended[1] + n->ended[2] + n->ended[3];
        total += ended;
        calls[n->function] += ended;
        self += n->inclusive - n->child - n->await;
        if (n->child + n->await > n->inclusive)
            fault("more child and await than inclusive");
        if (n->parent == &top)
            root += n->inclusive;
        if (!brief)
            print_node(f, n, (depth - 1) * 2);
    }
    if (brief)
        print_functions(f, calls);
    fprintf(f, "total %llu\n", (unsigned long long)total);
    fprintf(f, "threads completed=%llu cancelled=%llu errored=%llu unstarted=%llu live=%llu\n",
            (unsigned long long)threads[0], (unsigned long long)threads[1], (unsigned long long)threads[2],
            (unsigned long long)threads[3], (unsigned long long)live_threads);
    fprintf(f, "root %s\n", the_root.status == VARVE_SUCCEEDED ? "succeeded" : "failed");
    if (self == root)
        fprintf(f, "self = inclusive\n");
    else
        fprintf(f, "self - inclusive = %lld\n", (long long)(self - root));
}

void varve_session_close(varve_session *session)
{
    (void)session;
    FILE *f = tree_path() ? fopen(tree_path(), "w") : NULL;
    if (!f)
        return;
    if (the_root.ended)
        print_tree(f);
    fprintf(f, "faults %llu\n", (unsigned long long)errors);
    fclose(f);
}

/* The recorder counts what it had no memory for; here it has. */
void vv_count(vv_process_count what, uint64_t n)
{
    (void)what;
    errors += n;
}
