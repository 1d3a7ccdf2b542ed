/*
 * Every info function in every situation, and every event in every state of a profiler. The expected answers are
 * computed here from the rules of docs/host-contract.md and the declarations of the tables, by code of this file only.
 */
#include "config.h"

#include "tests/control/fake.h"
#include "tests/control/zeros.h"

typedef enum { OUTSIDE, IN_TRIGGERING, IN_OTHER, PLACES } place;
static const char *const places[] = {"outside", "in a callback", "in a callback that forbids safepoints"};
static const char *const statuses[] = {"none", "detaching", "init at startup", "init at attach", "active",
                                       "pre-initialize"};

/* The table, as this test reads it. */
typedef struct {
    const char *name, *cls;
    uint32_t flags;
    bool triggers, needs_thread;
    varve_code (*ask)(varve_profiler *self);
} info_case;

/* Items as values that are true where the row says THREAD. */
#define PREFERRED(v) (WORD_##v)
#define BECAUSE(v, why) (WORD_##v)
enum { WORD_NOTHROW, WORD_NO_SAFEPOINT, WORD_SAFEPOINT, WORD_SAFEPOINT_IF_TRIGGERS, WORD_ANY_MODE, WORD_PREEMPTIVE,
       WORD_PREEMPTIVE_IF_TRIGGERS, WORD_COOPERATIVE, WORD_NO_LOCK, WORD_LOCK, WORD_ANY_THREAD, WORD_THREAD,
       WORD_NO_HOST_LOCKS, WORD_NO_ALLOC, WORD_ALLOC };
#define FIFTH(a, b, c, d, e, f) (e)
#define SECOND(a, b, c, d, e, f) (b)

/* Each is asked with zeros, once with all that it may do, once with VARVE_DONT_LOAD where it knows it. */
#define INFO(name, cls, flags, triggers, contract, params, names, text)         \
    static varve_code ask_##name(varve_profiler *self)                          \
    {                                                                           \
        return vv_info_table.name(self ZEROS names);                            \
    }
VARVE_INFO(INFO)
#undef INFO

static varve_code ask_describe_function_quietly(varve_profiler *self)
{
    return vv_info_table.describe_function(self, 0, VARVE_DONT_LOAD, NULL);
}

static varve_code ask_function_lines_quietly(varve_profiler *self)
{
    return vv_info_table.function_lines(self, 0, VARVE_DONT_LOAD, NULL, 0, NULL);
}

static const info_case infos[] = {
#define INFO(name, cls, flags, triggers, contract, params, names, text) \
    {#name, #cls, (flags), sizeof #triggers != sizeof "false", FIFTH contract == WORD_THREAD, ask_##name},
    VARVE_INFO(INFO)
#undef INFO
    {"describe_function", "SYNC", VARVE_AFTER_ATTACH, false, false, ask_describe_function_quietly},
    {"function_lines", "SYNC", VARVE_AFTER_ATTACH, false, false, ask_function_lines_quietly},
};

/* What they answer to zeros where they may be asked. One that is not listed may answer anything of its own. */
static const struct {
    const char *name;
    varve_code code;
} answers[] = {
    {"get_event_mask", VARVE_E_ARG}, {"set_event_mask", VARVE_OK},   {"set_hooks", VARVE_E_ARG},
    {"describe_host", VARVE_E_ARG},  {"enumerate", VARVE_E_ARG},     {"describe_domain", VARVE_E_ARG},
    {"describe_module", VARVE_E_ARG}, {"describe_function", VARVE_E_ARG}, {"function_lines", VARVE_E_ARG},
    {"describe_thread", VARVE_E_ARG}, {"current_thread", VARVE_E_ARG}, {"current_call", VARVE_E_ARG},
    {"stack_snapshot", VARVE_E_ARG}, {"call_values", VARVE_E_ARG},   {"force_collection", VARVE_E_UNSUPPORTED},
};

typedef struct {
    const info_case *info;
    vv_status status;
    varve_load_kind kind;
    place where;
    bool registered, nosuspend;
} cell;

/* The rules, in their order. VARVE_OK: it may be asked. */
static varve_code rule(const cell *c)
{
    const info_case *i = c->info;
    bool sync = strcmp(i->cls, "SYNC") == 0, initializing = strncmp(statuses[c->status], "init", 4) == 0;
    if (c->status == VV_STATUS_NONE || c->status == VV_STATUS_PRE_INITIALIZE)
        return VARVE_E_NOT_INITIALIZED;
    if (c->status == VV_STATUS_DETACHING)
        return VARVE_E_DETACHING;
    if (c->kind == VARVE_AT_ATTACH && (i->flags & VARVE_AFTER_ATTACH) == 0)
        return VARVE_E_NOT_AFTER_ATTACH;
    if (sync && c->registered) {
        if (c->where == OUTSIDE)
            return VARVE_E_CALL_SEQUENCE;
        if (i->triggers && c->where != IN_TRIGGERING)
            return VARVE_E_CALL_SEQUENCE;
    }
    if (strcmp(i->cls, "INIT_ONLY") == 0 && !initializing)
        return VARVE_E_INIT_ONLY;
    if (!sync && (i->flags & VARVE_SIMPLE) == 0 && c->nosuspend)
        return VARVE_E_ASYNC_UNSAFE;
    if (i->needs_thread && !c->registered)
        return VARVE_E_NO_THREAD;
    return VARVE_OK;
}

static bool is_a_rule(varve_code code)
{
    return code == VARVE_E_NOT_INITIALIZED || code == VARVE_E_DETACHING || code == VARVE_E_NOT_AFTER_ATTACH ||
        code == VARVE_E_CALL_SEQUENCE || code == VARVE_E_INIT_ONLY || code == VARVE_E_ASYNC_UNSAFE ||
        code == VARVE_E_NO_THREAD;
}

/* Whether the answer is right. Detaching has conditions of its own: a started host (here it is), and not in init. */
static bool is_expected(const cell *c, varve_code got)
{
    varve_code want = rule(c);
    if (want != VARVE_OK)
        return got == want;
    if (strcmp(c->info->name, "request_detach") == 0)
        return got == (c->status == VV_STATUS_ACTIVE ? VARVE_OK : VARVE_E_NOT_INITIALIZED);
    for (unsigned i = 0; i < VV_ARRAY_LEN(answers); i++)
        if (strcmp(answers[i].name, c->info->name) == 0)
            return got == answers[i].code;
    return !is_a_rule(got);
}

static void not_told(void *me, const varve_violation *v)
{
    (void)me;
    (void)v;
}

typedef struct {
    varve_host *host;
    fake_profiler asked, other; /* who is asked about, and who is called back */
    const cell *cell;
    varve_code got;
} scene;

static void ask(scene *s)
{
    if (s->cell->nosuspend)
        varve_nosuspend_enter();
    s->got = s->cell->info->ask(s->asked.self);
    if (s->cell->nosuspend)
        varve_nosuspend_leave();
}

static void ask_inside(void *me, vv_event e)
{
    fake_profiler *p = me;
    if (p->mine && (e == VV_EVENT_call_entered || e == VV_EVENT_collection_started))
        ask(p->mine);
}

/* The situation is made by what makes it in earnest, but for the state of the profiler that is asked about. */
static void play(scene *s, const cell *c)
{
    varve_profiler *p = s->asked.self;
    atomic_store(&p->status, (uint32_t)c->status);
    p->kind = c->kind;
    s->cell = c;
    s->got = (varve_code)-1;
    if (c->registered)
        ck_assert_int_eq(varve_host_thread_add(s->host, 77), VARVE_OK);
    if (c->where == OUTSIDE)
        ask(s);
    else if (c->where == IN_TRIGGERING)
        VARVE_RAISE(s->host, call_entered, 77, 1, NULL, 0);
    else
        VARVE_RAISE(s->host, collection_started, 0, false);
    varve_host_thread_remove(s->host);
    if (strcmp(c->info->name, "request_detach") == 0 && s->got == VARVE_OK) {
        ck_assert_int_eq(vv_status_of(p), VV_STATUS_DETACHING);
        atomic_store(&s->host->detaching, 0);
    }
    ck_assert_uint_eq(vv_self.flags, 0);
}

START_TEST(info_row)
{
    const info_case *row = &infos[_i];
    scene s = {.asked.mask = 0, .other = {.mask = VARVE_MON_ENTER_LEAVE | VARVE_MON_COLLECTIONS, .inside = ask_inside}};
    varve_on_violation(not_told, NULL);
    s.host = fake_open();
    ck_assert_int_eq(fake_attach(s.host, &s.asked, false), VARVE_OK);
    ck_assert_int_eq(fake_attach(s.host, &s.other, true), VARVE_OK);
    s.other.mine = &s;
    varve_host_started(s.host);
    unsigned cells = 0;
    for (unsigned n = 0; n < VV_STATUSES * 2 * PLACES * 2 * 2; n++) {
        unsigned k = n;
        cell c = {.info = row};
        c.nosuspend = k % 2, k /= 2;
        c.registered = k % 2, k /= 2;
        c.where = (place)(k % PLACES), k /= PLACES;
        c.kind = (varve_load_kind)(k % 2), k /= 2;
        c.status = (vv_status)k;
        play(&s, &c);
        ck_assert_msg(is_expected(&c, s.got), "%s, %s, attached %s, %s, thread %s, %s: got %s, the rules say %s",
                      row->name, statuses[c.status], c.kind == VARVE_AT_ATTACH ? "later" : "at startup",
                      places[c.where], c.registered ? "registered" : "unknown",
                      c.nosuspend ? "no-suspend" : "suspendable", varve_code_name(s.got), varve_code_name(rule(&c)));
        cells++;
    }
    fprintf(stderr, "# info %s: %u cells\n", row->name, cells);
}
END_TEST

/* Events: delivered in these states only, and only where the mask has the bit; the flags inside are the row's. */
typedef struct {
    const char *name;
    uint64_t bit;
    uint32_t flags;
    bool safepoint;
    void (*call)(varve_profiler *p);
} event_case;

#define EVENT(name, bit, flags, contract, params, names, text) \
    static void call_##name(varve_profiler *p)                 \
    {                                                          \
        vv_call_##name(p ZEROS names);                         \
    }
VARVE_HOST_EVENTS(EVENT)
#undef EVENT

static void call_initialize(varve_profiler *p)
{
    varve_code said = VARVE_OK;
    vv_call_initialize(p, p, &vv_info_table, VARVE_AT_STARTUP, &said);
}

static void call_attach_complete(varve_profiler *p)
{
    vv_call_attach_complete(p);
}

static void call_shutdown(varve_profiler *p)
{
    vv_call_shutdown(p);
}

static void call_detached(varve_profiler *p)
{
    vv_call_detached(p);
}

static const event_case events[] = {
#define EVENT(name, bit, flags, contract, params, names, text) \
    {#name, (bit), (flags), SECOND contract == WORD_SAFEPOINT, call_##name},
    VARVE_EVENTS(EVENT)
#undef EVENT
};

static uint32_t flags_inside;

static void look_inside(void *me, vv_event e)
{
    (void)me;
    (void)e;
    flags_inside = vv_self.flags;
}

static bool is_delivered(const event_case *e, vv_status status, bool wanted)
{
    if (e->bit && !wanted)
        return false;
    switch (status) {
    case VV_STATUS_ACTIVE:
        return true;
    case VV_STATUS_DETACHING:
        return (e->flags & VARVE_WHILE_DETACHING) != 0;
    case VV_STATUS_INIT_STARTUP:
    case VV_STATUS_INIT_ATTACH:
        return (e->flags & VARVE_WHILE_INIT) != 0;
    case VV_STATUS_NONE:
    case VV_STATUS_PRE_INITIALIZE:
        break;
    }
    return false;
}

START_TEST(event_row)
{
    const event_case *row = &events[_i];
    varve_on_violation(not_told, NULL);
    varve_host *host = fake_open();
    fake_profiler p = {.inside = look_inside};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    unsigned cells = 0;
    for (unsigned n = 0; n < VV_STATUSES * 2 * 2 * 2 * 2; n++) {
        vv_status status = (vv_status)(n / 16);
        bool wanted = n % 2, registered = n / 2 % 2, nosuspend = n / 4 % 2;
        atomic_store(&p.self->status, (uint32_t)status);
        p.self->kind = (varve_load_kind)(n / 8 % 2);
        atomic_store(&p.self->requested, wanted ? row->bit : 0);
        unsigned before = fake_count(&p, (vv_event)_i);
        flags_inside = 0;
        if (registered)
            varve_host_thread_add(host, 0);
        if (nosuspend)
            varve_nosuspend_enter();
        row->call(p.self);
        if (nosuspend)
            varve_nosuspend_leave();
        varve_host_thread_remove(host);
        bool delivered = is_delivered(row, status, wanted);
        ck_assert_msg(fake_count(&p, (vv_event)_i) - before == delivered, "%s in %s, %s", row->name, statuses[status],
                      wanted ? "wanted" : "not wanted");
        uint32_t inside = row->safepoint ? VV_IN_CALLBACK | VV_IN_TRIGGERS : VV_IN_CALLBACK;
        ck_assert_uint_eq(flags_inside, delivered ? inside : 0);
        ck_assert_uint_eq(vv_self.flags, 0);
        ck_assert_uint_eq(vv_gate_held(p.self->number), 0);
        cells++;
    }
    fprintf(stderr, "# event %s: %u cells\n", row->name, cells);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("matrix");
    TCase *c = tcase_create("matrix");
    tcase_add_loop_test(c, info_row, 0, VV_ARRAY_LEN(infos));
    tcase_add_loop_test(c, event_row, 0, VV_EVENTS);
    suite_add_tcase(s, c);
    return test_main(s);
}
