/*
 * A small virtual machine that is recorded: what a language's runtime says, and where. docs/embedding.md explains it.
 *
 *     cc -O2 -pthread -o vm vm.c $(pkg-config --cflags --libs varve)
 *     ./vm shop.vm && varve show latest
 *
 * A program is functions, `fn NAME ARGUMENTS` (or `llm`, where it is an LLM function), each with its instructions
 * below, one a line: see OPS. `main` is called; `setup`, where there is one, before it, by the VM for itself. Each
 * thread is one of the system's. Memory is given back at the end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <varve.h>

enum { STACK = 4096, CALLS = 1000, HANDLERS = 100, CODE = 100 };

typedef enum { NIL, INT, TEXT, LIST, ID, FUTURE } value_kind;
typedef struct value {
    value_kind kind;
    union {
        int64_t n;
        const char *text;
        struct list *list;
        varve_local_id *id;
        struct future *future;
    };
} value;
typedef struct list {
    unsigned n;
    value items[];
} list;

/* What follows an instruction's name: a number, a label, the rest of the line; or a function and how many arguments. */
typedef enum { NOTHING, NUMBER, LABEL, REST, CALLEE } operand;
#define OPS(X) \
    X(ADD, "add", NOTHING) X(AWAIT, "await", NOTHING) X(CALL, "call", CALLEE) X(CAPTURE, "capture", REST) \
    X(CAUGHT, "caught", NOTHING) X(NEW_ID, "id", NOTHING) X(NUMBER_N, "int", NUMBER) X(MAKE_LIST, "list", NUMBER) \
    X(LOAD, "load", NUMBER) X(LOG, "log", REST) X(POP, "pop", NOTHING) X(POSITIVE, "positive", LABEL) \
    X(RETHROW, "rethrow", NOTHING) X(RETURN, "return", NOTHING) X(SET_ID, "set-id", REST) X(SPAWN, "spawn", CALLEE) \
    X(PUSH_TEXT, "text", REST) X(THROW, "throw", NOTHING) X(TRY, "try", LABEL) X(WITH, "with", CALLEE)
#define OP(op, name, operand) op,
typedef enum { OPS(OP) } op;
typedef struct {
    op op;
    int64_t n;        /* a number, or where to go on */
    const char *word; /* a function's name, a text, a label */
    uint32_t site;
} instruction;

typedef struct thread thread;

typedef struct function {
    const char *name;
    bool (*native)(thread *t, const value *arguments, unsigned n, value *ret);
    bool llm;
    unsigned arity, length;
    instruction *code;
    uint32_t number;              /* varve's */
    atomic_ulong calls, failures; /* the VM's own count */
    struct function *next;
} function;

typedef struct {
    function *f;
    unsigned pc, base; /* of its arguments on the stack */
    bool has_id;
    uint8_t id[16];
} call;

/* Of a `try`: where to go on, and what is left then. */
typedef struct {
    unsigned depth, pc, height;
} handler;

struct thread {
    varve_thread *profile; /* NULL: not recorded */
    value stack[STACK];
    call calls[CALLS];
    handler handlers[HANDLERS];
    unsigned height, depth, catching;
    value result; /* or the error that nobody caught */
    bool failed;
};

/* A thread that was spawned. */
typedef struct future {
    thread thread;
    function *entry;
    pthread_t os_thread;
    bool done;
    struct future *next;
} future;

/* In front of all memory. */
typedef struct block {
    struct block *next;
    varve_local_id *id; /* one that is given back with it */
} block;

static struct {
    varve_session *session;
    varve_engine *engine;
    varve_logger logger;
    function *functions;
    const char *source;
    pthread_mutex_t lock; /* of what follows, and of what becomes of futures */
    pthread_cond_t changed;
    future *futures; /* not joined */
    block *blocks;
} vm = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The VM's own count, beside that of each function. */
static struct {
    atomic_ulong awaits, throws, catches, spawns;
} counted;

static void die(const char *what, uint32_t line)
{
    fprintf(stderr, "vm: line %u: %s\n", line, what);
    exit(2);
}

static void *make(size_t n)
{
    block *b = calloc(1, sizeof *b + n);
    if (!b)
        die("no memory", 0);
    pthread_mutex_lock(&vm.lock);
    b->next = vm.blocks;
    vm.blocks = b;
    pthread_mutex_unlock(&vm.lock);
    return b + 1;
}

static value text(const char *s)
{
    return (value){.kind = TEXT, .text = s};
}

/* ---- what is said to varve ---- */

/* The clock is read for a thread that is recorded. */
static uint64_t now(const thread *t)
{
    return t->profile ? varve_ticks() : 0;
}

/* A value of the language as a value of the store. What has no form there is left out by name. */
static void put(varve_capture *c, value v)
{
    switch (v.kind) {
    case NIL:
        varve_put_null(c);
        break;
    case INT:
        varve_put_int(c, v.n);
        break;
    case TEXT:
        varve_put_text(c, v.text, strlen(v.text));
        break;
    case LIST:
        varve_list_begin(c);
        for (unsigned i = 0; i < v.list->n && !varve_capture_is_lost(c); i++)
            put(c, v.list->items[i]);
        varve_list_end(c);
        break;
    case ID:
    case FUTURE:
        varve_put_omitted(c, VARVE_OMITTED_HOST_OWNED, v.kind == ID ? "an id" : "a future");
        break;
    }
}

/* c NULL: nobody wants the value, or there is no memory for it. */
static void capture(varve_capture *c, value v)
{
    if (!c)
        return;
    put(c, v);
    varve_capture_end(c);
}

static void capture_arguments(varve_capture *c, const value *arguments, unsigned n)
{
    if (!c)
        return;
    varve_list_begin(c);
    for (unsigned i = 0; i < n; i++)
        put(c, arguments[i]);
    varve_list_end(c);
    varve_capture_end(c);
}

/* A call's begin, with what selects it, and its arguments: the n values on top of the stack. */
static void begin_call(thread *t, function *f, unsigned n, uint32_t site, const varve_policy *policy)
{
    call *c = &t->calls[t->depth++];
    *c = (call){.f = f, .base = t->height - n, .has_id = policy->manual};
    memcpy(c->id, policy->runtime_id, sizeof c->id);
    atomic_fetch_add(&f->calls, 1);
    varve_call_begin_as(t->profile, f->number, site, now(t), policy);
    capture_arguments(varve_value_begin(t->profile, VARVE_INPUT), t->stack + c->base, n);
}

static void end_call(thread *t, varve_call_status status)
{
    call *c = &t->calls[--t->depth];
    atomic_fetch_add(&c->f->failures, status == VARVE_CALL_ERRORED);
    varve_call_end(t->profile, status);
    t->height = c->base;
}

static void return_value(thread *t, value v)
{
    while (t->catching && t->handlers[t->catching - 1].depth == t->depth)
        t->catching--;
    capture(varve_value_begin(t->profile, VARVE_OUTPUT), v);
    end_call(t, VARVE_CALL_OK);
    t->result = v;
    if (t->depth)
        t->stack[t->height++] = v;
}

/* An error sets out: it is told while all calls are open that it will end, and then it ends them. */
static void throw_value(thread *t, value error, varve_error_kind kind, varve_error_source source)
{
    const handler *h = t->catching ? &t->handlers[t->catching - 1] : NULL;
    const call *c = t->depth ? &t->calls[t->depth - 1] : NULL;
    const varve_error e = {
        .kind = kind,
        .source = source,
        .ends = h ? t->depth - h->depth : VARVE_ENDS_ALL,
        .site = c && c->pc ? c->f->code[c->pc - 1].site : 0, /* none in a native function */
    };
    atomic_fetch_add(&counted.throws, 1);
    capture(varve_error_begin(t->profile, &e), error);
    while (t->depth > (h ? h->depth : 0))
        end_call(t, VARVE_CALL_ERRORED);
    t->result = error;
    t->failed = !h;
    if (!h)
        return;
    atomic_fetch_add(&counted.catches, 1);
    t->calls[t->depth - 1].pc = h->pc;
    t->height = h->height;
    t->stack[t->height++] = error;
    t->catching--;
}

/* The VM finds something wrong in the program. */
static void throw_text(thread *t, const char *what)
{
    throw_value(t, text(what), VARVE_FRESH, VARVE_FROM_BYTECODE);
}

static value pop(thread *t)
{
    const call *c = &t->calls[t->depth - 1];
    return t->height > c->base + c->f->arity ? t->stack[--t->height] : (value){.kind = NIL};
}

static void push(thread *t, value v)
{
    if (t->height == STACK)
        throw_text(t, "StackOverflow");
    else
        t->stack[t->height++] = v;
}

/* NULL: it was thrown that there is none, or that the program has not pushed its arguments. */
static function *find(thread *t, const char *name, unsigned n)
{
    function *f = vm.functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    const char *wrong = !f ? "NoSuchFunction"
                        : f->arity != n || t->height - t->calls[t->depth - 1].base < n ? "WrongArguments"
                        : t->depth == CALLS ? "StackOverflow" : NULL;
    if (wrong)
        throw_text(t, wrong);
    return wrong ? NULL : f;
}

static void call_function(thread *t, function *f, uint32_t site, const varve_policy *policy)
{
    begin_call(t, f, f->arity, site, policy);
    value result = {.kind = NIL};
    if (f->native && f->native(t, t->stack + t->height - f->arity, f->arity, &result))
        return_value(t, result);
}

/* ---- instructions ---- */

static void run(thread *t);

/* with F N: a call with the LocalId that lies on its arguments. It is used up before the call begins, recorded or
 * not. */
static void call_with_id(thread *t, const instruction *i)
{
    value id = pop(t);
    function *f = find(t, i->word, (unsigned)i->n);
    if (!f)
        return;
    varve_policy policy = {.llm = f->llm};
    if (id.kind != ID || f->native || !varve_local_id_consume(id.id, &policy))
        throw_text(t, "InvalidArgument");
    else
        call_function(t, f, i->site, &policy);
}

/* What a thread of the system does. Its first call is its entry. */
static void *run_thread(void *argument)
{
    future *f = argument;
    thread *t = &f->thread;
    varve_thread_start(t->profile, now(t));
    call_function(t, f->entry, 0, &(varve_policy){.llm = f->entry->llm});
    run(t);
    varve_thread_end(t->profile, t->failed ? VARVE_THREAD_ERRORED : VARVE_THREAD_COMPLETED);
    pthread_mutex_lock(&vm.lock);
    f->done = true;
    pthread_cond_broadcast(&vm.changed);
    pthread_mutex_unlock(&vm.lock);
    return NULL;
}

/* spawn F N: a future. A thread that nobody awaits may outlive its parent, and even the root. */
static void spawn(thread *t, const instruction *i)
{
    function *entry = find(t, i->word, (unsigned)i->n);
    if (!entry)
        return;
    future *f = make(sizeof *f);
    f->entry = entry;
    f->thread.height = entry->arity;
    t->height -= entry->arity;
    memcpy(f->thread.stack, t->stack + t->height, entry->arity * sizeof *t->stack);
    f->thread.profile = varve_thread_spawn(t->profile, 0, i->site, entry->name, strlen(entry->name));
    pthread_mutex_lock(&vm.lock);
    bool ok = pthread_create(&f->os_thread, NULL, run_thread, f) == 0;
    f->next = vm.futures;
    vm.futures = ok ? f : vm.futures;
    pthread_mutex_unlock(&vm.lock);
    atomic_fetch_add(&counted.spawns, ok);
    push(t, (value){.kind = FUTURE, .future = f});
    if (!ok) {
        varve_thread_end(f->thread.profile, VARVE_THREAD_CANCELLED); /* never started, but it must be ended */
        throw_text(t, "NoThread");
    }
}

/* Between the two the call is suspended: that time is not its own. An error in the future was thrown before. */
static void await(thread *t, value v)
{
    if (v.kind != FUTURE) {
        throw_text(t, "TypeError");
        return;
    }
    atomic_fetch_add(&counted.awaits, 1);
    varve_await_begin(t->profile, now(t));
    pthread_mutex_lock(&vm.lock);
    while (!v.future->done)
        pthread_cond_wait(&vm.changed, &vm.lock);
    pthread_mutex_unlock(&vm.lock);
    varve_await_end(t->profile, now(t));
    if (v.future->thread.failed)
        throw_value(t, v.future->thread.result, VARVE_RETHROW, VARVE_FROM_FUTURE);
    else
        push(t, v.future->thread.result);
}

static void new_id(thread *t)
{
    varve_local_id *id = varve_local_id_new();
    if (id) {
        ((block *)make(0) - 1)->id = id;
        push(t, (value){.kind = ID, .id = id});
    } else {
        throw_text(t, "HostUnavailable");
    }
}

static varve_switch switch_of(char c)
{
    return c == '+' ? VARVE_SWITCH_ON : c == '-' ? VARVE_SWITCH_OFF : VARVE_SWITCH_KEEP;
}

/* capture +-.: input, output and error of the LocalId on top: on, off, as it is. */
static void capture_id(thread *t, value v, const char *how)
{
    if (v.kind == ID && strlen(how) == 3 &&
        varve_local_id_capture(v.id, switch_of(how[0]), switch_of(how[1]), switch_of(how[2])))
        push(t, v);
    else
        throw_text(t, "InvalidArgument");
}

/* set-id TEXT: of this call, for whoever looks for it. It selects nothing. */
static void set_id(thread *t, const char *word)
{
    uint8_t id[16];
    if (varve_runtime_id_parse(word, strlen(word), id))
        varve_call_set_runtime_id(t->profile, 0, id);
    else
        throw_text(t, "InvalidArgument");
}

/* By the host's own logger, recorded or not. */
static void log_text(const call *c, const char *message)
{
    varve_log(&vm.logger, &(varve_log_event){.level = VARVE_LOG_INFO, .name = c->f->name, .message = message,
                                             .n = strlen(message), .runtime_id = c->has_id ? c->id : NULL});
}

static void make_list(thread *t, unsigned n)
{
    list *l = make(sizeof *l + n * sizeof *l->items);
    for (l->n = n; n > 0; n--)
        l->items[n - 1] = pop(t);
    push(t, (value){.kind = LIST, .list = l});
}

static void add(thread *t)
{
    value b = pop(t), a = pop(t);
    if (a.kind == INT && b.kind == INT)
        push(t, (value){.kind = INT, .n = (int64_t)((uint64_t)a.n + (uint64_t)b.n)});
    else
        throw_text(t, "TypeError");
}

static void step(thread *t, call *c, const instruction *i)
{
    value v;
    function *f;
    switch (i->op) {
    case ADD:
        add(t);
        break;
    case AWAIT:
        await(t, pop(t));
        break;
    case CALL:
        if ((f = find(t, i->word, (unsigned)i->n)) != NULL)
            call_function(t, f, i->site, &(varve_policy){.llm = f->llm});
        break;
    case CAPTURE:
        capture_id(t, pop(t), i->word);
        break;
    case CAUGHT:
        t->catching -= t->catching && t->handlers[t->catching - 1].depth == t->depth;
        break;
    case NEW_ID:
        new_id(t);
        break;
    case NUMBER_N:
        push(t, (value){.kind = INT, .n = i->n});
        break;
    case MAKE_LIST:
        make_list(t, (uint8_t)i->n);
        break;
    case LOAD: /* the arguments, then what was pushed */
        push(t, i->n >= 0 && i->n < t->height - c->base ? t->stack[c->base + i->n] : (value){.kind = NIL});
        break;
    case LOG:
        log_text(c, i->word);
        break;
    case POP:
        pop(t);
        break;
    case POSITIVE: /* goes on at the label if the number on top is at least 1 */
        v = pop(t);
        c->pc = v.kind == INT && v.n > 0 ? (unsigned)i->n : c->pc;
        break;
    case RETHROW: /* an error that was caught */
    case THROW:
        throw_value(t, pop(t), i->op == THROW ? VARVE_FRESH : VARVE_RETHROW, VARVE_FROM_BYTECODE);
        break;
    case RETURN:
        return_value(t, pop(t));
        break;
    case SET_ID:
        set_id(t, i->word);
        break;
    case SPAWN:
        spawn(t, i);
        break;
    case PUSH_TEXT:
        push(t, text(i->word));
        break;
    case TRY: /* what is thrown from here to `caught` goes on at the label, with the error on top */
        if (t->catching == HANDLERS)
            throw_text(t, "StackOverflow");
        else
            t->handlers[t->catching++] = (handler){t->depth, (unsigned)i->n, t->height};
        break;
    case WITH:
        call_with_id(t, i);
        break;
    }
}

static void run(thread *t)
{
    while (t->depth) {
        call *c = &t->calls[t->depth - 1];
        if (c->pc < c->f->length)
            step(t, c, &c->f->code[c->pc++]);
        else
            return_value(t, pop(t));
    }
}

/* ---- native functions: calls as others; what they throw is thrown while they are open ---- */

/* Stands for what asks a server: the engine waits, and fails where there is nothing to ask. */
static bool ask(thread *t, const value *arguments, unsigned n, value *ret)
{
    (void)n;
    atomic_fetch_add(&counted.awaits, 1);
    varve_await_begin(t->profile, now(t));
    varve_await_end(t->profile, now(t));
    *ret = text("an answer");
    if (arguments[0].kind == TEXT && *arguments[0].text)
        return true;
    throw_value(t, text("NothingToAsk"), VARVE_FRESH, VARVE_FROM_ENGINE);
    return false;
}

static bool length(thread *t, const value *arguments, unsigned n, value *ret)
{
    (void)n;
    *ret = (value){.kind = INT, .n = arguments[0].kind == LIST ? arguments[0].list->n : 0};
    if (arguments[0].kind != LIST)
        throw_value(t, text("NoList"), VARVE_FRESH, VARVE_FROM_NATIVE);
    return arguments[0].kind == LIST;
}

/* Hands on an error that it was given. */
static bool fail_with(thread *t, const value *arguments, unsigned n, value *ret)
{
    (void)n, (void)ret;
    throw_value(t, arguments[0], VARVE_RETHROW, VARVE_FROM_NATIVE);
    return false;
}

/* ---- the program's text ---- */

static const char *copy(const char *s)
{
    return strcpy(make(strlen(s) + 1), s);
}

static function *add_function(const char *name, unsigned arity, const varve_function_info *info)
{
    function *f = make(sizeof *f);
    f->name = copy(name);
    f->arity = arity;
    f->next = vm.functions;
    f->number = varve_function_add(vm.engine, info);
    vm.functions = f;
    return f;
}

static void add_native(const char *name, varve_function_kind kind,
                       bool (*native)(thread *t, const value *arguments, unsigned n, value *ret))
{
    const varve_function_info info = {.fqn = name, .kind = kind, .origin = VARVE_FN_BUILTIN};
    add_function(name, 1, &info)->native = native;
}

/* fn NAME ARGUMENTS, or llm NAME ARGUMENTS. */
static function *add_coded(const char *word, const char *rest, uint32_t line)
{
    char name[64];
    unsigned arity;
    if (sscanf(rest, "%63s %u", name, &arity) != 2 || arity > 16)
        die("no function", line);
    const varve_function_info info = {.fqn = name, .definition_key = name, .source_file = vm.source, .line = line};
    function *f = add_function(name, arity, &info);
    f->code = make(CODE * sizeof *f->code);
    f->llm = strcmp(word, "llm") == 0;
    return f;
}

#define ROW(op, name, operand) {name, operand},
static const struct {
    const char *name;
    operand operand;
} ops[] = {OPS(ROW)};

/* Its call site gets its handle here, once. Labels stay words until the function is complete. */
static void add_instruction(function *f, const char *word, const char *rest, uint32_t line)
{
    unsigned k = 0, count = 0;
    while (k < sizeof ops / sizeof *ops && strcmp(ops[k].name, word) != 0)
        k++;
    if (!f || k == sizeof ops / sizeof *ops || f->length == CODE)
        die("no function, no instruction, or one too many", line);
    char name[64];
    bool callee = ops[k].operand == CALLEE && sscanf(rest, "%63s %u", name, &count) == 2;
    uint32_t site = varve_site_add(vm.engine, varve_file_add(vm.engine, vm.source), 0, 0, line);
    f->code[f->length++] = (instruction){.op = (op)k, .n = callee ? count : strtoll(rest, NULL, 10),
                                         .word = copy(callee ? name : rest), .site = site};
}

typedef struct {
    const char *name;
    unsigned at;
} label;

static void find_labels(const function *f, const label *labels, unsigned n, uint32_t line)
{
    for (unsigned i = 0; f && i < f->length; i++) {
        unsigned k = 0;
        while (k < n && strcmp(labels[k].name, f->code[i].word) != 0)
            k++;
        if (ops[f->code[i].op].operand != LABEL)
            continue;
        if (k == n)
            die("a label is missing in the function above", line);
        f->code[i].n = labels[k].at;
    }
}

static void load(FILE *in)
{
    char text[256], word[64];
    function *f = NULL;
    label labels[CODE];
    unsigned n = 0;
    uint32_t line = 0;
    for (int at = 0; fgets(text, sizeof text, in); at = 0) {
        line++;
        text[strcspn(text, "\n")] = 0;
        if (sscanf(text, " %63s %n", word, &at) < 1 || *word == '#')
            continue;
        size_t length = strlen(word);
        if (strcmp(word, "fn") == 0 || strcmp(word, "llm") == 0) {
            find_labels(f, labels, n, line);
            f = add_coded(word, text + at, line);
            n = 0;
        } else if (word[length - 1] == ':' && f && n < CODE) {
            word[length - 1] = 0;
            labels[n++] = (label){.name = copy(word), .at = f->length};
        } else {
            add_instruction(f, word, text + at, line);
        }
    }
    find_labels(f, labels, n, line);
}

/* ---- the process ---- */

/* One run of a function, as an execution of its own, or as nothing where it is the VM's own business. */
static bool execute(const char *name, bool suppressed)
{
    function *f = vm.functions;
    while (f && (strcmp(f->name, name) != 0 || f->arity))
        f = f->next;
    if (!f)
        return suppressed;
    thread *t = make(sizeof *t);
    varve_root *root = suppressed ? varve_root_suppress(vm.engine, &t->profile)
                                  : varve_root_begin(vm.engine, NULL, &t->profile);
    call_function(t, f, 0, &(varve_policy){.llm = f->llm});
    run(t);
    if (t->failed)
        fprintf(stderr, "vm: %s: %s\n", name, t->result.kind == TEXT ? t->result.text : "an error");
    varve_thread_end(t->profile, t->failed ? VARVE_THREAD_ERRORED : VARVE_THREAD_COMPLETED);
    varve_root_end(root, t->failed ? VARVE_FAILED : VARVE_SUCCEEDED);
    return !t->failed;
}

/* Threads first, those too that they spawn meanwhile; the engine; the session. */
static void shut_down(void)
{
    for (;;) {
        pthread_mutex_lock(&vm.lock);
        future *f = vm.futures;
        vm.futures = f ? f->next : NULL;
        pthread_mutex_unlock(&vm.lock);
        if (!f)
            break;
        pthread_join(f->os_thread, NULL);
    }
    varve_engine_close(vm.engine);
    varve_session_close(vm.session);
}

static void print_event(void *ctx, const varve_log_event *e)
{
    char id[33] = "-";
    if (e->runtime_id)
        varve_runtime_id_text(e->runtime_id, id);
    fprintf(ctx, "%s %s: %.*s\n", e->name, id, (int)e->n, e->message);
}

/* VM_COUNT=1 prints what the VM itself has counted, for the tests. */
static void print_counts(void)
{
    for (const function *f = vm.functions; f; f = f->next)
        printf("%s %lu %lu\n", f->name, atomic_load(&f->calls), atomic_load(&f->failures));
    printf("awaits %lu\nthrows %lu\ncatches %lu\nspawns %lu\n", atomic_load(&counted.awaits),
           atomic_load(&counted.throws), atomic_load(&counted.catches), atomic_load(&counted.spawns));
}

int main(int argc, char **argv)
{
    vm.source = argc == 2 ? argv[1] : "";
    FILE *in = fopen(vm.source, "re");
    if (!in)
        die("usage: vm PROGRAM", 0);
    vm.logger = (varve_logger){.least = VARVE_LOG_INFO, .sink = getenv("VM_LOG") ? print_event : NULL, .ctx = stderr};
    const char *memory = getenv("VM_MEMORY"); /* bytes of the profiler; for the tests, too */
    vm.session = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options), .host_version = "vm 1",
                                                     .memory_bytes = memory ? strtoull(memory, NULL, 10) : 0});
    vm.engine = varve_engine_open(vm.session, &(varve_engine_info){.source_label = vm.source,
                                                                   .roles = VARVE_ALL_ROLES});
    add_native("ask", VARVE_FN_SYSOP, ask);
    add_native("length", VARVE_FN_NATIVE, length);
    add_native("fail-with", VARVE_FN_NATIVE, fail_with);
    load(in);
    fclose(in);
    execute("setup", true);
    bool ok = execute("main", false);
    shut_down();
    if (getenv("VM_COUNT"))
        print_counts();
    for (block *b = vm.blocks, *next; b; b = next) {
        next = b->next;
        varve_local_id_unref(b->id);
        free(b);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
