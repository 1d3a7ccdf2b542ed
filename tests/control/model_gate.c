/*
 * The gate's ordering in every interleaving of two users and one who takes away, on machines with store buffers: x86's,
 * where a store waits while later loads go ahead (TSO), and a weaker one, where stores to different places overtake
 * each other too unless they are releases (PSO). One memory operation is a step, and a buffered store that reaches
 * memory is one. The real variants hold; without a fence, and with each mistake that could be made instead, what was
 * taken away is used.
 */
#include "config.h"

#include "tests/runtime/model.h"

enum { USERS = 2, TAKER = USERS, CPUS = USERS + 1, BUFFER = 5, PROGRAM = 32, HANDLER = PROGRAM / 2 };

/* Memory. STATE: 0 = active. IFACE: the number of the object that is to be used. */
typedef enum { STATE, COUNT_0, COUNT_1, SHARED, OBJECT, LISTED, LOCK, IFACE, PLACES } place;

typedef enum {
    END,
    LOAD,    /* r[reg] = place */
    STORE,   /* place = value */
    ADD,     /* place = r[reg] + value */
    RMW,     /* place += value at once, the buffer being empty */
    FENCE,   /* goes on when the buffer is empty */
    BARRIER, /* goes on when the buffer of CPU `value` is empty: membarrier's part there */
    AWAIT,   /* goes on when place is 0 */
    UNLESS,  /* jumps to value where r[reg] is 0 */
    IF,      /* jumps to value where r[reg] is not 0 */
    USE,     /* reads object r[reg] */
    PUT,     /* writes object r[reg], by the buffer */
    FREE,    /* object `value` is no more, at once */
    TAKE,    /* place = 1, where it is 0 and the buffer is empty */
} code;

typedef struct {
    uint8_t code, place, reg, value;
    bool release;
} op;

/* A buffered store in a byte. */
enum { B_VALUE = 0x0f, B_PLACE_SHIFT = 4, B_RELEASE = 0x80 };

typedef struct {
    uint8_t pc, handler_pc, in_handler, handled, n;
    uint8_t r[3], handler_r[3];
    uint8_t buffer[BUFFER];
} cpu;

typedef struct {
    uint8_t memory[PLACES];
    uint8_t freed; /* a bit an object */
    uint8_t used_freed;
    cpu cpus[CPUS];
} machine;
_Static_assert(sizeof(machine) <= MODEL_BYTES, "a state");
_Static_assert(PLACES <= 8, "a place is three bits");

enum { /* of a user */
    U_FENCED = 1 << 0,
    U_SHARED = 1 << 1,   /* has no record */
    U_NESTS = 1 << 2,
    U_SIGNALLED = 1 << 3,
    U_REGISTERS = 1 << 4, /* its record is put on the list first */
    U_TWICE = 1 << 5,
    U_LOOKS_BEFORE = 1 << 6,
    U_NEVER_LOOKS = 1 << 7,
    U_LEAVES_EARLY = 1 << 8,
    U_LEAVES_RELAXED = 1 << 9,
    U_LEAVES_ALL = 1 << 10, /* stores 0 where it should take one off */
    U_READS_IFACE_BEFORE = 1 << 11,
};
enum { /* of who takes away */
    T_FENCED = 1 << 0,
    T_BARRIER = 1 << 1,
    T_LISTS = 1 << 2, /* looks at the list, under its lock, for user 0 */
    T_ATTACHES = 1 << 3, /* and another object is there afterwards */
    T_FLUSHES_FIRST = 1 << 4,
    T_MISSES_A_CPU = 1 << 5,
    T_MISSES_SHARED = 1 << 6,
    T_LISTS_FIRST = 1 << 7,
    T_ATTACHES_RELAXED = 1 << 8,
    T_FREES_AT_ONCE = 1 << 9,
};

typedef struct {
    const char *name;
    unsigned user[USERS], taker;
    bool pso, wrong;
} scenario;

#define BOTH(flags) {(flags), (flags)}
static const scenario scenarios[] = {
    {"fenced", BOTH(U_FENCED | U_TWICE), T_FENCED, false, false},
    {"fenced, weak stores", BOTH(U_FENCED), T_FENCED, true, false},
    {"membarrier", BOTH(U_TWICE), T_FENCED | T_BARRIER, false, false},
    {"membarrier, weak stores", BOTH(0), T_FENCED | T_BARRIER, true, false},
    {"shared counter, fenced", {U_FENCED, U_SHARED}, T_FENCED, true, false},
    {"shared counter, membarrier", {0, U_SHARED}, T_FENCED | T_BARRIER, true, false},
    {"shared counters only", BOTH(U_SHARED), T_FENCED | T_BARRIER, true, false},
    {"nested, fenced", {U_FENCED | U_NESTS, U_SHARED | U_NESTS}, T_FENCED, false, false},
    {"nested, membarrier", {U_NESTS, U_SHARED | U_NESTS}, T_FENCED | T_BARRIER, false, false},
    {"a signal anywhere, fenced", {U_FENCED | U_SIGNALLED, U_FENCED}, T_FENCED, false, false},
    {"a signal anywhere, membarrier", {U_SIGNALLED, 0}, T_FENCED | T_BARRIER, false, false},
    {"a new record, fenced", {U_FENCED | U_REGISTERS, U_FENCED}, T_FENCED | T_LISTS, true, false},
    {"a new record, membarrier", {U_REGISTERS, 0}, T_FENCED | T_BARRIER | T_LISTS, true, false},
    {"attached again, fenced", BOTH(U_FENCED), T_FENCED | T_ATTACHES, true, false},
    {"attached again, membarrier", BOTH(0), T_FENCED | T_BARRIER | T_ATTACHES, true, false},

    {"no fence", BOTH(0), 0, false, true},
    {"no fence, weak stores", BOTH(0), 0, true, true},
    {"users fence alone", BOTH(U_FENCED), 0, false, true},
    {"the taker fences alone", BOTH(0), T_FENCED, false, true},
    {"one user does not fence", {U_FENCED, 0}, T_FENCED, false, true},
    {"the barrier misses a CPU", BOTH(0), T_FENCED | T_BARRIER | T_MISSES_A_CPU, false, true},
    {"flush before the store, fenced", BOTH(U_FENCED), T_FENCED | T_FLUSHES_FIRST, false, true},
    {"flush before the store, membarrier", BOTH(0), T_FENCED | T_BARRIER | T_FLUSHES_FIRST, false, true},
    {"nobody is waited for", BOTH(U_FENCED), T_FENCED | T_FREES_AT_ONCE, false, true},
    {"shared counters are not looked at", {U_FENCED, U_SHARED}, T_FENCED | T_MISSES_SHARED, false, true},
    {"the list is read before the store", {U_FENCED | U_REGISTERS, U_FENCED}, T_FENCED | T_LISTS | T_LISTS_FIRST,
     false, true},
    {"looks before it pins only", {U_FENCED | U_LOOKS_BEFORE, U_FENCED}, T_FENCED, false, true},
    {"pins and never looks", {U_FENCED | U_NEVER_LOOKS, U_FENCED}, T_FENCED, false, true},
    {"pins by the shared counter and never looks", {U_FENCED, U_SHARED | U_NEVER_LOOKS}, T_FENCED, false, true},
    {"lets go before the last use", {U_LEAVES_EARLY, 0}, T_FENCED | T_BARRIER, false, true},
    {"lets go by a store that is no release", {U_LEAVES_RELAXED, 0}, T_FENCED | T_BARRIER, true, true},
    {"an inner pin lets go of all", {U_NESTS | U_LEAVES_ALL, 0}, T_FENCED | T_BARRIER, false, true},
    {"a handler's pin lets go of all", {U_SIGNALLED | U_LEAVES_ALL, 0}, T_FENCED | T_BARRIER, false, true},
    {"finds the object before it looks", {U_FENCED | U_READS_IFACE_BEFORE, U_FENCED}, T_FENCED | T_ATTACHES, false,
     true},
    {"attaches by a store that is no release", BOTH(U_FENCED), T_FENCED | T_ATTACHES | T_ATTACHES_RELAXED, true, true},
};

/* The programs of a scenario; a user's handler is the upper half of its program. */
static op programs[CPUS][PROGRAM];

static unsigned emit(op *p, unsigned at, op o)
{
    ck_assert_uint_lt(at, PROGRAM - 1);
    p[at] = o;
    return at + 1;
}
#define EMIT(...) at = emit(p, at, (op){__VA_ARGS__})

static unsigned emit_pin(op *p, unsigned at, unsigned flags, uint8_t count)
{
    if (flags & U_SHARED) {
        EMIT(RMW, SHARED, 0, 1, false);
    } else {
        EMIT(LOAD, count, 0, 0, false);
        EMIT(ADD, count, 0, 1, false);
    }
    if (flags & U_FENCED)
        EMIT(FENCE, 0, 0, 0, false);
    return at;
}

static unsigned emit_leave(op *p, unsigned at, unsigned flags, uint8_t count)
{
    if (flags & U_SHARED) {
        EMIT(RMW, SHARED, 0, (uint8_t)-1, false);
    } else if (flags & U_LEAVES_ALL) {
        EMIT(STORE, count, 0, 0, true);
    } else {
        EMIT(LOAD, count, 0, 0, false);
        EMIT(ADD, count, 0, (uint8_t)-1, !(flags & U_LEAVES_RELAXED));
    }
    return at;
}

/* Pin, look, find the object, use it, let go. */
static unsigned emit_use(op *p, unsigned at, unsigned flags, uint8_t count)
{
    unsigned out = 0;
    bool looks = !(flags & (U_LOOKS_BEFORE | U_NEVER_LOOKS));
    if (flags & U_LOOKS_BEFORE)
        EMIT(LOAD, STATE, 1, 0, false);
    if (flags & U_READS_IFACE_BEFORE)
        EMIT(LOAD, IFACE, 2, 0, false);
    at = emit_pin(p, at, flags, count);
    if (looks)
        EMIT(LOAD, STATE, 1, 0, false);
    if (flags & U_LEAVES_EARLY)
        at = emit_leave(p, at, flags, count);
    out = at;
    EMIT(IF, 0, 1, 0, false); /* a user that never looks has 0 here */
    if (!(flags & U_READS_IFACE_BEFORE))
        EMIT(LOAD, IFACE, 2, 0, false);
    if (flags & U_NESTS) {
        at = emit_pin(p, at, flags, count);
        at = emit_leave(p, at, flags, count);
    }
    EMIT(PUT, OBJECT, 2, 0, false);
    EMIT(USE, 0, 2, 0, false);
    p[out].value = (uint8_t)at;
    return flags & U_LEAVES_EARLY ? at : emit_leave(p, at, flags, count);
}

static void make_user(op *p, unsigned flags, uint8_t count)
{
    unsigned at = 0;
    if (flags & U_REGISTERS) {
        EMIT(TAKE, LOCK, 0, 0, false);
        EMIT(STORE, LISTED, 0, 1, false);
        EMIT(STORE, LOCK, 0, 0, true);
    }
    at = emit_use(p, at, flags, count);
    if (flags & U_TWICE)
        at = emit_use(p, at, flags, count);
    if (!(flags & U_SIGNALLED))
        return;
    ck_assert_uint_lt(at, HANDLER);
    emit_use(p, HANDLER, flags, count);
}

static unsigned emit_flush(op *p, unsigned at, unsigned flags)
{
    if (flags & T_FENCED)
        EMIT(FENCE, 0, 0, 0, false);
    if (flags & T_BARRIER) {
        EMIT(BARRIER, 0, 0, 0, false);
        if (!(flags & T_MISSES_A_CPU))
            EMIT(BARRIER, 0, 0, 1, false);
    }
    return at;
}

static unsigned emit_list(op *p, unsigned at)
{
    EMIT(TAKE, LOCK, 0, 0, false);
    EMIT(LOAD, LISTED, 2, 0, false);
    EMIT(STORE, LOCK, 0, 0, true);
    return at;
}

static void make_taker(op *p, unsigned flags)
{
    unsigned at = 0;
    if (flags & T_LISTS_FIRST)
        at = emit_list(p, at);
    if (flags & T_FLUSHES_FIRST)
        at = emit_flush(p, at, flags);
    EMIT(STORE, STATE, 0, 1, true);
    if (!(flags & T_FLUSHES_FIRST))
        at = emit_flush(p, at, flags);
    if ((flags & T_LISTS) && !(flags & T_LISTS_FIRST))
        at = emit_list(p, at);
    if (flags & T_LISTS)
        EMIT(UNLESS, 0, 2, (uint8_t)(at + 2), false);
    if (!(flags & T_FREES_AT_ONCE)) {
        EMIT(AWAIT, COUNT_0, 0, 0, false);
        EMIT(AWAIT, COUNT_1, 0, 0, false);
        if (!(flags & T_MISSES_SHARED))
            EMIT(AWAIT, SHARED, 0, 0, false);
    }
    EMIT(FREE, 0, 0, 0, false);
    if (flags & T_ATTACHES) {
        EMIT(STORE, IFACE, 0, 1, false);
        EMIT(STORE, STATE, 0, 0, !(flags & T_ATTACHES_RELAXED));
    }
}

static void init(void *state, unsigned which)
{
    (void)state;
    memset(programs, 0, sizeof programs);
    for (uint8_t i = 0; i < USERS; i++)
        make_user(programs[i], scenarios[which].user[i], (uint8_t)(COUNT_0 + i));
    make_taker(programs[TAKER], scenarios[which].taker);
}

static uint8_t place_of(uint8_t entry)
{
    return entry >> B_PLACE_SHIFT & 7;
}

/* The youngest store of its own, else memory. */
static uint8_t seen_by(const machine *m, const cpu *c, uint8_t where)
{
    for (unsigned i = c->n; i-- > 0;)
        if (place_of(c->buffer[i]) == where)
            return c->buffer[i] & B_VALUE;
    return m->memory[where];
}

static bool buffered(cpu *c, uint8_t where, uint8_t value, bool release)
{
    if (c->n == BUFFER)
        return false;
    c->buffer[c->n++] = (uint8_t)((value & B_VALUE) | where << B_PLACE_SHIFT | (release ? B_RELEASE : 0));
    return true;
}

static void touched(machine *m, uint8_t object)
{
    m->used_freed |= m->freed >> object & 1;
}

/* The store at i of the buffer reaches memory; in TSO only the oldest does. */
static bool drain(machine *m, cpu *c, unsigned i, bool pso)
{
    if (i >= c->n || (i && (!pso || (c->buffer[i] & B_RELEASE))))
        return false;
    uint8_t e = c->buffer[i];
    for (unsigned k = 0; k < i; k++)
        if (place_of(c->buffer[k]) == place_of(e))
            return false;
    memmove(c->buffer + i, c->buffer + i + 1, (size_t)(c->n - i - 1));
    c->buffer[--c->n] = 0;
    if (place_of(e) == OBJECT)
        touched(m, e & B_VALUE);
    else
        m->memory[place_of(e)] = e & B_VALUE;
    return true;
}

static bool execute(machine *m, unsigned who)
{
    cpu *c = &m->cpus[who];
    uint8_t *pc = c->in_handler ? &c->handler_pc : &c->pc, *r = c->in_handler ? c->handler_r : c->r;
    op o = programs[who][*pc];
    uint8_t next = *pc + 1;
    switch ((code)o.code) {
    case END:
        if (!c->in_handler)
            return false;
        c->in_handler = 0;
        c->handler_pc = 0;
        memset(c->handler_r, 0, sizeof c->handler_r);
        return true;
    case LOAD:
        r[o.reg] = seen_by(m, c, o.place);
        break;
    case STORE:
        if (!buffered(c, o.place, o.value, o.release))
            return false;
        break;
    case ADD:
        if (!buffered(c, o.place, r[o.reg] + o.value, o.release))
            return false;
        break;
    case RMW:
        if (c->n)
            return false;
        m->memory[o.place] += o.value;
        break;
    case FENCE:
        if (c->n)
            return false;
        break;
    case BARRIER:
        if (m->cpus[o.value].n)
            return false;
        break;
    case AWAIT:
        if (seen_by(m, c, o.place))
            return false;
        break;
    case UNLESS:
        next = r[o.reg] ? next : o.value;
        break;
    case IF:
        next = r[o.reg] ? o.value : next;
        break;
    case USE:
        touched(m, r[o.reg]);
        break;
    case PUT:
        if (!buffered(c, OBJECT, r[o.reg], false))
            return false;
        break;
    case FREE:
        m->freed |= 1 << o.value;
        break;
    case TAKE:
        if (c->n || m->memory[o.place])
            return false;
        m->memory[o.place] = 1;
        break;
    }
    *pc = next;
    return true;
}

/* A signal, once, where the user has begun and has not ended. */
static bool signalled(machine *m, unsigned who, unsigned flags)
{
    cpu *c = &m->cpus[who];
    if (!(flags & U_SIGNALLED) || c->handled || programs[who][c->pc].code == END)
        return false;
    c->handled = c->in_handler = 1;
    c->handler_pc = HANDLER;
    return true;
}

enum { ACTORS_A_CPU = 1 + BUFFER };

static bool step(void *state, unsigned actor, unsigned which)
{
    machine *m = state;
    const scenario *s = &scenarios[which];
    if (actor >= CPUS * ACTORS_A_CPU)
        return signalled(m, actor - CPUS * ACTORS_A_CPU, s->user[actor - CPUS * ACTORS_A_CPU]);
    unsigned who = actor / ACTORS_A_CPU, what = actor % ACTORS_A_CPU;
    return what ? drain(m, &m->cpus[who], what - 1, s->pso) : execute(m, who);
}

static const char *check(const void *state)
{
    const machine *m = state;
    return m->used_freed ? "a user who saw it active used it after nobody was seen inside" : NULL;
}

static const char *check_end(const void *state)
{
    const machine *m = state;
    for (unsigned i = 0; i < CPUS; i++)
        if (programs[i][m->cpus[i].pc].code != END || m->cpus[i].n)
            return "somebody waits for ever";
    return m->memory[COUNT_0] | m->memory[COUNT_1] | m->memory[SHARED] ? "a pin is left over" : NULL;
}

static const model gate = {
    .actors = CPUS * ACTORS_A_CPU + USERS, .init = init, .step = step, .check = check, .check_end = check_end};

START_TEST(store_buffers)
{
    const scenario *s = &scenarios[_i];
    size_t states;
    const char *bad = model_run(&gate, (unsigned)_i, &states);
    fprintf(stderr, "# %s: %zu states%s%s\n", s->name, states, bad ? ": " : "", bad ? bad : "");
    if (s->wrong) {
        ck_assert_msg(bad, "%s: not found in %zu states", s->name, states);
        ck_assert_msg(strstr(bad, "used it"), "%s: %s", s->name, bad);
    } else {
        ck_assert_msg(!bad, "%s, after %zu states: %s", s->name, states, bad);
        ck_assert_uint_ge(states, 500);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("control/model_gate");
    TCase *t = tcase_create("store buffers");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, store_buffers, 0, (int)(sizeof scenarios / sizeof *scenarios));
    suite_add_tcase(s, t);
    return test_main(s);
}
