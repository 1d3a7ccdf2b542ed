/*
 * A profiler that writes down what it is told, for tests. Its arguments: FILE,WORD,WORD…
 *
 *     domains modules functions unloads threads calls exceptions suspensions collections allocations
 *                 what to be told of
 *     arguments results
 *                 of calls; with `main` only
 *     main        the main profiler, not one that is notified only
 *     tally       at the end a line for each function that was called, and one for each kind of event, instead of one
 *                 an event
 *     check       no lines either: whether each thread and function of an event was told of or enumerated before
 *     sample      SIGPROF asks for the stack; see log_samples
 *     ask         asks everything that can be asked, where it may be
 *     force       makes a collection run at each exception that is caught
 *
 * Threads are called main, co1, co2 in the order in which they became known. Functions of this object that Lua can load
 * (package.loadlib): log_samples tells how many samples there are, log_holes what `check` found.
 */
#include "config.h"

#include <inttypes.h>
#include <lua.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <varve-profiler.h>

#define MAX_IDS 65536 /* power of two */
#define MAX_SAMPLES 4096
#define MAX_FRAMES 32

static const struct {
    const char *word;
    uint64_t bits;
} words[] = {
    {"domains", VARVE_MON_DOMAIN_LOADS},     {"modules", VARVE_MON_MODULE_LOADS},
    {"functions", VARVE_MON_FUNCTION_LOADS}, {"unloads", VARVE_MON_FUNCTION_UNLOADS},
    {"threads", VARVE_MON_THREADS},          {"calls", VARVE_MON_ENTER_LEAVE},
    {"exceptions", VARVE_MON_EXCEPTIONS},    {"suspensions", VARVE_MON_SUSPENSIONS},
    {"collections", VARVE_MON_COLLECTIONS},  {"allocations", VARVE_MON_ALLOCATIONS},
    {"arguments", VARVE_CALL_ARGUMENTS},     {"results", VARVE_CALL_RESULTS},
};

typedef enum { ENTER, LEAVE, THROW, UNWIND, CATCH, CREATE, START, END, SUSPEND, RESUME, KINDS } kind;
static const char *const kind_names[] = {"enter",  "leave", "throw", "unwind",  "catch",
                                         "create", "start", "end",   "suspend", "resume"};

typedef struct {
    uintptr_t id; /* 0: free */
    uint64_t number, ticks;
    bool live;
} entry;

typedef struct {
    varve_function_id function;
    uint32_t line;
    bool outermost, in_main;
} sample;

static struct {
    varve_profiler *self;
    const varve_info *info;
    FILE *out;
    uint64_t mask;
    bool tally, check, sample, ask, force;
    pthread_mutex_t lock; /* events come on the interpreter's thread, attach_complete on another */
    entry threads[MAX_IDS], functions[MAX_IDS];
    uint64_t coroutines, kinds[KINDS];
    bool complete; /* what lives has been enumerated */
    uint64_t holes;
    int64_t net, net_before, live_before; /* bytes */
    uint64_t allocated_objects;
    bool collecting;
    volatile unsigned codes[VARVE_E_NO_MEMORY + 1], samples, disagreeing;
    sample taken[MAX_SAMPLES];
    varve_function_id root;
} at = {.lock = PTHREAD_MUTEX_INITIALIZER};

static entry *look_up(entry *table, uintptr_t id)
{
    size_t i = (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 40) % MAX_IDS;
    while (table[i].id && table[i].id != id)
        i = (i + 1) % MAX_IDS;
    table[i].id = id;
    return &table[i];
}

static bool is_silent(void)
{
    return at.tally || at.check || at.sample;
}

static const char *function_name(varve_function_id id)
{
    varve_function_desc desc = {.size = sizeof desc};
    if (!id)
        return "-";
    return at.info->describe_function(at.self, id, VARVE_DONT_LOAD, &desc) == VARVE_OK ? desc.name : "?";
}

/* By its first mention. */
static void know_thread(varve_thread_id id)
{
    varve_thread_desc desc = {.size = sizeof desc};
    entry *e = look_up(at.threads, id);
    if (e->number)
        return;
    bool is_main = at.info->describe_thread(at.self, id, &desc) == VARVE_OK && desc.name && !strcmp(desc.name, "main");
    e->number = is_main ? UINT64_MAX : ++at.coroutines;
}

static const char *thread_name(varve_thread_id id)
{
    static char name[32];
    if (!id)
        return "-";
    know_thread(id);
    uint64_t number = look_up(at.threads, id)->number;
    snprintf(name, sizeof name, number == UINT64_MAX ? "main" : "co%" PRIu64, number);
    return name;
}

static const char *how_name(varve_ending how)
{
    static const char *const names[] = {"ok", "errored", "cancelled", "exited"};
    return names[how];
}

/* A thread or function that nobody told of. */
static void expect_known(varve_thread_id thread, varve_function_id function)
{
    const uint64_t told = VARVE_MON_THREADS | VARVE_MON_FUNCTION_LOADS;
    if ((at.mask & told) != told)
        return;
    pthread_mutex_lock(&at.lock);
    if (at.complete && thread && !look_up(at.threads, thread)->live)
        at.holes++;
    if (at.complete && function && !look_up(at.functions, function)->live)
        at.holes++;
    pthread_mutex_unlock(&at.lock);
}

/* A thread's time does not run backwards. */
static void expect_later(varve_thread_id thread, uint64_t ticks)
{
    pthread_mutex_lock(&at.lock);
    entry *e = look_up(at.threads, thread);
    if (ticks < e->ticks || !ticks)
        at.holes++;
    e->ticks = ticks;
    pthread_mutex_unlock(&at.lock);
}

static void count(kind k)
{
    at.kinds[k]++;
}

static void on_domain_loaded(void *me, varve_domain_id id)
{
    (void)me;
    varve_domain_desc desc = {.size = sizeof desc};
    varve_code code = at.info->describe_domain(at.self, id, &desc);
    const char *slash = desc.name ? strrchr(desc.name, '/') : NULL;
    if (!is_silent())
        fprintf(at.out, "domain+ %s %s\n", code == VARVE_OK ? slash ? slash + 1 : desc.name : "?",
                desc.revision && strlen(desc.revision) == 64 ? "with revision" : "without");
}

/* The lines of the samples are lines of their functions. */
static void check_samples(void)
{
    static uint32_t lines[4096];
    for (unsigned i = 0; i < at.samples && i < MAX_SAMPLES; i++) {
        const sample *s = &at.taken[i];
        size_t n = 0, k = 0;
        if (!s->line)
            continue;
        varve_code code = at.info->function_lines(at.self, s->function, VARVE_DONT_LOAD, lines, 4096, &n);
        while (code == VARVE_OK && k < n && lines[k] != s->line)
            k++;
        if (code != VARVE_OK || k == n)
            at.disagreeing++;
    }
}

static void on_domain_unloaded(void *me, varve_domain_id id, varve_ending how)
{
    (void)me;
    (void)id;
    if (at.sample)
        check_samples();
    if (!is_silent())
        fprintf(at.out, "domain- %s\n", how_name(how));
}

static void on_module_loaded(void *me, varve_module_id id, varve_domain_id domain)
{
    (void)me;
    varve_module_desc desc = {.size = sizeof desc};
    bool ok = at.info->describe_module(at.self, id, &desc) == VARVE_OK && desc.domain == domain;
    const char *slash = desc.path ? strrchr(desc.path, '/') : NULL;
    if (!is_silent())
        fprintf(at.out, "module+ %s %s\n", ok ? desc.name : "?", slash ? slash + 1 : desc.path ? desc.path : "-");
}

static void on_module_unloaded(void *me, varve_module_id id)
{
    (void)me;
    varve_module_desc desc = {.size = sizeof desc};
    at.info->describe_module(at.self, id, &desc);
    if (!is_silent())
        fprintf(at.out, "module- %s\n", desc.name ? desc.name : "?");
}

/* The function's lines, and its span. */
static void ask_lines(varve_function_id id, const varve_function_desc *desc)
{
    uint32_t lines[8];
    size_t n = 0, n0 = 0;
    varve_code code = at.info->function_lines(at.self, id, VARVE_DONT_LOAD, lines, 8, &n);
    if (code != at.info->function_lines(at.self, id, VARVE_MAY_LOAD, NULL, 0, &n0) || n != n0)
        at.holes++;
    fprintf(at.out, "  kind %u origin %u span %u..%u lines %s", desc->kind, desc->origin, desc->span_start,
            desc->span_end, code == VARVE_OK ? "" : varve_code_name(code));
    for (size_t i = 0; i < n && i < 8; i++)
        fprintf(at.out, "%s%u", i ? " " : "", lines[i]);
    fputc('\n', at.out);
}

static void on_function_loaded(void *me, varve_function_id id, varve_module_id module)
{
    (void)me;
    pthread_mutex_lock(&at.lock);
    look_up(at.functions, id)->live = true;
    pthread_mutex_unlock(&at.lock);
    varve_function_desc desc = {.size = sizeof desc};
    bool ok = at.info->describe_function(at.self, id, VARVE_MAY_LOAD, &desc) == VARVE_OK && desc.module == module;
    if (ok && !strcmp(desc.definition_key, "lua"))
        at.root = id;
    if (is_silent())
        return;
    fprintf(at.out, "function+ %s %s line %u\n", ok ? desc.definition_key : "?",
            ok && desc.display_name ? desc.display_name : "-", desc.line);
    if (at.ask)
        ask_lines(id, &desc);
}

static void on_function_unloaded(void *me, varve_function_id id)
{
    (void)me;
    if (!is_silent())
        fprintf(at.out, "function- %s\n", function_name(id));
    pthread_mutex_lock(&at.lock);
    look_up(at.functions, id)->live = false;
    pthread_mutex_unlock(&at.lock);
}

static void on_thread_created(void *me, varve_thread_id id, const varve_spawn *spawn)
{
    (void)me;
    count(CREATE);
    expect_known(spawn->parent, 0);
    pthread_mutex_lock(&at.lock);
    look_up(at.threads, id)->live = true;
    pthread_mutex_unlock(&at.lock);
    if (is_silent())
        return;
    varve_thread_desc desc = {.size = sizeof desc};
    at.info->describe_thread(at.self, id, &desc);
    fprintf(at.out, "thread+ %s", thread_name(id));
    fprintf(at.out, " by %s up %u line %u named %s\n", thread_name(spawn->parent), spawn->up,
            spawn->site ? spawn->site->line : 0, desc.name ? desc.name : "-");
}

static void on_thread_started(void *me, varve_thread_id id, uint64_t ticks)
{
    (void)me;
    expect_later(id, ticks);
    count(START);
    expect_known(id, 0);
    if (!is_silent())
        fprintf(at.out, "thread> %s\n", thread_name(id));
}

static void on_thread_destroyed(void *me, varve_thread_id id, varve_ending how, uint64_t ticks)
{
    (void)me;
    expect_later(id, ticks);
    count(END); /* perhaps of one that ended while this was attached: nobody told of it */
    if (!is_silent())
        fprintf(at.out, "thread- %s %s\n", thread_name(id), how_name(how));
    pthread_mutex_lock(&at.lock);
    look_up(at.threads, id)->live = false;
    look_up(at.threads, id)->number = look_up(at.threads, id)->ticks = 0;
    pthread_mutex_unlock(&at.lock);
}

static void print_value(const varve_value *v)
{
    switch (v->kind) {
    case VARVE_VALUE_NIL:
        fputs("nil", at.out);
        break;
    case VARVE_VALUE_BOOL:
        fputs(v->as.boolean ? "true" : "false", at.out);
        break;
    case VARVE_VALUE_INT:
        fprintf(at.out, "%" PRId64, v->as.integer);
        break;
    case VARVE_VALUE_FLOAT:
        fprintf(at.out, "%.3f", v->as.real);
        break;
    case VARVE_VALUE_TEXT:
        fprintf(at.out, "'%.*s'", (int)v->as.text.length, v->as.text.bytes);
        break;
    case VARVE_VALUE_OBJECT:
        fputs(v->as.object.id ? v->as.object.type : "?", at.out);
    }
}

static void print_values(varve_values_kind which)
{
    varve_value values[3];
    size_t n = 0;
    varve_code code = at.info->call_values(at.self, which, values, 3, &n);
    if (code != VARVE_OK) {
        fprintf(at.out, " %s", varve_code_name(code));
        return;
    }
    fputs(" (", at.out);
    for (size_t i = 0; i < n && i < 3; i++) {
        fputs(i ? ", " : "", at.out);
        print_value(&values[i]);
    }
    fputs(n > 3 ? ", …)" : ")", at.out);
}

/* The innermost call and the stack say the same, and the stack ends with the thread's first call. */
static void ask_stack(varve_thread_id thread, varve_function_id function)
{
    varve_frame frames[MAX_FRAMES], call = {0};
    varve_thread_id current = 0;
    size_t n = 0, n0 = 0;
    varve_code a = at.info->current_thread(at.self, &current), b = at.info->current_call(at.self, &call),
               c = at.info->stack_snapshot(at.self, thread, frames, MAX_FRAMES, &n),
               d = at.info->stack_snapshot(at.self, 0, NULL, 0, &n0);
    fprintf(at.out, "  stack");
    if (a || b || c || d || current != thread || call.function != function || n != n0)
        fprintf(at.out, " BAD %d %d %d %d %d %d %d", a, b, c, d, current == thread, call.function == function, n == n0);
    for (size_t i = 0; i < n && i < MAX_FRAMES; i++)
        fprintf(at.out, " %s:%u", function_name(frames[i].function), frames[i].line);
    fputc('\n', at.out);
}

static void on_call_entered(void *me, varve_thread_id thread, varve_function_id function, const varve_site_id *site,
                            uint64_t ticks)
{
    (void)me;
    expect_later(thread, ticks);
    count(ENTER);
    expect_known(thread, function);
    if (at.tally)
        look_up(at.functions, function)->number++;
    if (is_silent())
        return;
    fprintf(at.out, "enter %s %s", thread_name(thread), function_name(function));
    if (site)
        fprintf(at.out, " @%u", site->line);
    if (at.mask & VARVE_CALL_ARGUMENTS)
        print_values(VARVE_VALUES_ARGUMENTS);
    fputc('\n', at.out);
    if (at.ask)
        ask_stack(thread, function);
}

static void on_call_left(void *me, varve_thread_id thread, varve_function_id function, varve_ending how, uint64_t ticks)
{
    (void)me;
    expect_later(thread, ticks);
    count(LEAVE);
    expect_known(thread, function);
    if (is_silent())
        return;
    fprintf(at.out, "leave %s %s %s", thread_name(thread), function_name(function), how_name(how));
    if (at.mask & VARVE_CALL_RESULTS)
        print_values(VARVE_VALUES_RESULTS);
    fputc('\n', at.out);
}

static void on_exception_thrown(void *me, varve_thread_id thread, varve_object_id exception)
{
    (void)me;
    count(THROW);
    expect_known(thread, 0);
    if (is_silent())
        return;
    fprintf(at.out, "throw %s %s\n", thread_name(thread), exception ? "object" : "-");
    if (at.ask) {
        varve_frame call = {0};
        at.info->current_call(at.self, &call);
        ask_stack(thread, call.function);
    }
}

static void on_exception_caught(void *me, varve_thread_id thread, varve_function_id function)
{
    (void)me;
    count(CATCH);
    expect_known(thread, function);
    if (at.force && at.info->force_collection(at.self) != VARVE_OK)
        at.holes++;
    if (!is_silent())
        fprintf(at.out, "catch %s %s\n", thread_name(thread), function_name(function));
}

static void on_exception_unwound(void *me, varve_thread_id thread, varve_function_id function)
{
    (void)me;
    count(UNWIND);
    expect_known(thread, function);
    if (!is_silent())
        fprintf(at.out, "unwind %s %s\n", thread_name(thread), function_name(function));
}

static void on_thread_suspended(void *me, varve_thread_id thread, uint64_t ticks)
{
    (void)me;
    expect_later(thread, ticks);
    count(SUSPEND);
    expect_known(thread, 0);
    if (!is_silent())
        fprintf(at.out, "suspend %s\n", thread_name(thread));
}

static void on_thread_resumed(void *me, varve_thread_id thread, uint64_t ticks)
{
    (void)me;
    expect_later(thread, ticks);
    count(RESUME);
    expect_known(thread, 0);
    if (!is_silent())
        fprintf(at.out, "resume %s\n", thread_name(thread));
}

static void on_collection_started(void *me, uint32_t generation, bool forced)
{
    (void)me;
    if (at.collecting)
        at.holes++;
    at.collecting = true;
    if (at.ask && at.info->force_collection(at.self) != VARVE_E_CALL_SEQUENCE)
        at.holes++;
    if (!is_silent())
        fprintf(at.out, "gc+ %u%s\n", generation, forced ? " forced" : "");
}

/* Between two ends the live bytes have grown by what was allocated less what was freed. */
static void on_collection_ended(void *me, uint64_t live_bytes, uint64_t freed_bytes)
{
    (void)me;
    (void)freed_bytes;
    if (!at.collecting)
        at.holes++;
    at.collecting = false;
    bool sums = !at.live_before || (int64_t)live_bytes - at.live_before == at.net - at.net_before;
    at.live_before = (int64_t)live_bytes;
    at.net_before = at.net;
    if (at.mask & VARVE_MON_ALLOCATIONS && !sums)
        at.holes++;
    if (!is_silent())
        fprintf(at.out, "gc-\n");
}

static void on_object_allocated(void *me, varve_object_id object, uint64_t bytes, uint32_t type)
{
    (void)me;
    at.net += (int64_t)bytes;
    at.allocated_objects += object && type;
}

static void on_object_freed(void *me, varve_object_id object, uint64_t bytes)
{
    (void)me;
    (void)object;
    at.net -= (int64_t)bytes;
}

/* The order of what lives is nobody's: sorted. */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_sorted(const char *head, char **names, size_t n)
{
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++) {
        fprintf(at.out, "live %s %s\n", head, names[i]);
        free(names[i]);
    }
}

static const char *live_name(varve_live_kind what, uintptr_t id)
{
    varve_module_desc module = {.size = sizeof module};
    varve_domain_desc domain = {.size = sizeof domain};
    varve_thread_desc thread = {.size = sizeof thread};
    switch (what) {
    case VARVE_LIVE_FUNCTIONS:
        return function_name(id);
    case VARVE_LIVE_MODULES:
        return at.info->describe_module(at.self, id, &module) == VARVE_OK ? module.name : "?";
    case VARVE_LIVE_DOMAINS:
        return at.info->describe_domain(at.self, id, &domain) == VARVE_OK && domain.name ? "domain" : "?";
    case VARVE_LIVE_THREADS:
        return at.info->describe_thread(at.self, id, &thread) == VARVE_OK && thread.name ? thread.name : "?";
    }
    return "?";
}

static void enumerate(varve_live_kind what, const char *head)
{
    size_t n = 0, room = 0;
    uintptr_t *ids = NULL;
    do { /* it may grow meanwhile */
        room = n;
        free(ids);
        ids = calloc(room + 1, sizeof *ids);
        if (!ids || at.info->enumerate(at.self, what, ids, room, &n) != VARVE_OK)
            at.holes++;
    } while (n > room);
    char **names = calloc(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        if (what == VARVE_LIVE_THREADS)
            look_up(at.threads, ids[i])->live = true;
        if (what == VARVE_LIVE_FUNCTIONS)
            look_up(at.functions, ids[i])->live = true;
        if (!is_silent())
            names[i] = strdup(live_name(what, ids[i]));
    }
    if (!is_silent())
        print_sorted(head, names, n);
    free(names);
    free(ids);
}

static void on_attach_complete(void *me)
{
    (void)me;
    if (!is_silent())
        fputs("attached\n", at.out);
    pthread_mutex_lock(&at.lock);
    enumerate(VARVE_LIVE_DOMAINS, "domain");
    enumerate(VARVE_LIVE_MODULES, "module");
    enumerate(VARVE_LIVE_FUNCTIONS, "function");
    enumerate(VARVE_LIVE_THREADS, "thread");
    at.complete = true;
    pthread_mutex_unlock(&at.lock);
    fflush(at.out);
}

static void on_profile(int signal)
{
    (void)signal;
    varve_frame frames[MAX_FRAMES], call;
    varve_thread_id thread = 0;
    size_t n = 0;
    at.info->current_thread(at.self, &thread);
    varve_code code = at.info->stack_snapshot(at.self, 0, frames, MAX_FRAMES, &n);
    at.codes[code]++;
    if (code != VARVE_OK || !n || at.samples == MAX_SAMPLES)
        return;
    sample *s = &at.taken[at.samples];
    *s = (sample){frames[0].function, frames[0].line, n <= MAX_FRAMES, true};
    if (at.info->current_call(at.self, &call) == VARVE_OK && call.function != frames[0].function)
        at.disagreeing++;
    varve_frame other; /* the same question by the thread's name */
    size_t n2 = 0;
    if (at.info->stack_snapshot(at.self, thread, &other, 1, &n2) == VARVE_OK && n2 != n)
        at.disagreeing++;
    at.samples++;
}

static void sample_each_ms(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_profile : SIG_IGN, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, on ? 1000 : 0}, {0, on ? 1000 : 0}};
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void print_end(void)
{
    if (at.sample)
        fprintf(at.out, "samples %u disagreeing %u\n", at.samples, at.disagreeing);
    for (size_t i = 0; at.sample && i < sizeof at.codes / sizeof *at.codes; i++)
        if (at.codes[i])
            fprintf(at.out, "%s %u\n", varve_code_name((varve_code)i), at.codes[i]);
    for (size_t i = 0; at.tally && i < KINDS; i++)
        fprintf(at.out, "%s %" PRIu64 "\n", kind_names[i], at.kinds[i]);
    for (size_t i = 0; at.tally && i < MAX_IDS; i++) {
        varve_function_desc desc = {.size = sizeof desc};
        if (at.functions[i].number &&
            at.info->describe_function(at.self, at.functions[i].id, VARVE_DONT_LOAD, &desc) == VARVE_OK)
            fprintf(at.out, "calls %s %" PRIu64 "\n", desc.definition_key, at.functions[i].number);
    }
    if (at.mask & VARVE_MON_ALLOCATIONS)
        fprintf(at.out, "objects %s\n", at.allocated_objects ? "some" : "none");
    fprintf(at.out, "holes %" PRIu64 "\n", at.holes);
}

static void on_shutdown(void *me)
{
    (void)me;
    if (at.sample)
        sample_each_ms(false);
    if (!is_silent())
        fputs("shutdown\n", at.out);
    print_end();
    fclose(at.out);
}

static void on_detached(void *me)
{
    (void)me;
    if (at.sample)
        sample_each_ms(false);
    if (!is_silent())
        fputs("detached\n", at.out);
    fprintf(at.out, "holes %" PRIu64 "\n", at.holes);
    fclose(at.out);
}

static void on_initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind how, varve_code *ret)
{
    (void)me;
    at.self = self;
    at.info = info;
    at.complete = how == VARVE_AT_STARTUP;
    varve_host_desc host = {.size = sizeof host};
    *ret = info->describe_host(self, &host);
    if (*ret == VARVE_OK && (strcmp(host.name, "lua") != 0 || strcmp(host.version, "5.4") != 0))
        *ret = VARVE_E_REFUSED;
    if (*ret == VARVE_OK)
        *ret = info->set_event_mask(self, at.mask);
    uint64_t mask;
    if (*ret == VARVE_OK && (info->get_event_mask(self, &mask) != VARVE_OK || mask != at.mask))
        *ret = VARVE_E_REFUSED;
    if (*ret == VARVE_OK && at.sample)
        sample_each_ms(true);
}

VARVE_API int log_samples(lua_State *L);
int log_samples(lua_State *L)
{
    lua_pushinteger(L, at.samples);
    return 1;
}

VARVE_API int log_holes(lua_State *L);
int log_holes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)at.holes);
    return 1;
}

static bool set_word(const char *word, size_t n, varve_plugin *ret)
{
    const struct {
        const char *word;
        bool *flag;
    } flags[] = {{"tally", &at.tally},
                 {"check", &at.check},
                 {"sample", &at.sample},
                 {"ask", &at.ask},
                 {"force", &at.force}};
    if (n == 4 && !memcmp(word, "main", n))
        return !(ret->notify_only = false);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (n == strlen(flags[i].word) && !memcmp(word, flags[i].word, n))
            return *flags[i].flag = true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i].word) && !memcmp(word, words[i].word, n))
            return at.mask |= words[i].bits;
    return false;
}

static const varve_callbacks callbacks = {.size = sizeof callbacks,
                                          .version = VARVE_CONTRACT_VERSION,
                                          .initialize = on_initialize,
                                          .attach_complete = on_attach_complete,
                                          .shutdown = on_shutdown,
                                          .detached = on_detached,
                                          .domain_loaded = on_domain_loaded,
                                          .domain_unloaded = on_domain_unloaded,
                                          .module_loaded = on_module_loaded,
                                          .module_unloaded = on_module_unloaded,
                                          .function_loaded = on_function_loaded,
                                          .function_unloaded = on_function_unloaded,
                                          .thread_created = on_thread_created,
                                          .thread_started = on_thread_started,
                                          .thread_destroyed = on_thread_destroyed,
                                          .call_entered = on_call_entered,
                                          .call_left = on_call_left,
                                          .exception_thrown = on_exception_thrown,
                                          .exception_caught = on_exception_caught,
                                          .exception_unwound = on_exception_unwound,
                                          .thread_suspended = on_thread_suspended,
                                          .thread_resumed = on_thread_resumed,
                                          .collection_started = on_collection_started,
                                          .collection_ended = on_collection_ended,
                                          .object_allocated = on_object_allocated,
                                          .object_freed = on_object_freed};

varve_code varve_plugin_open(uint32_t version, const char *arguments, varve_plugin *ret)
{
    if (version / 1000 != VARVE_CONTRACT_VERSION / 1000)
        return VARVE_E_ARG;
    ret->callbacks = &callbacks;
    ret->notify_only = true;
    const char *comma = strchrnul(arguments, ',');
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)(comma - arguments), arguments);
    while (*comma) {
        const char *word = comma + 1;
        comma = strchrnul(word, ',');
        if (!set_word(word, (size_t)(comma - word), ret))
            return VARVE_E_ARG;
    }
    at.out = fopen(path, "a");
    return at.out ? VARVE_OK : VARVE_E_ARG;
}
