/*
 * A small program with selected calls whose store and memory fail as the test says: for one plane's files, or one
 * owner's reservations, at a time. The test takes the consumer's passes.
 */
#pragma once

#include <errno.h>

#include "tests/runtime/evidence.h"
#include "tests/runtime/inside.h"

enum { SMALL = 8921088 };

/* ---- what fails ---- */

/* Of files that begin with this, the next so many fail at a step. */
typedef struct {
    const char *magic;
    vv_step at;
    int os;
    unsigned times;
    char now[9]; /* what is being written */
} plane_disk;

typedef struct {
    plane_disk disk;
    rig g;
    varve_thread *t, *child;
    uint32_t f[8];
    vv_owner denied;
    unsigned denials; /* so many reservations of the owner, from now on */
    unsigned after;   /* this many pass first */
    uint64_t calls;   /* that the program began */
} run;

static inline bool strikes(plane_disk *d)
{
    if (!d->times || strcmp(d->now, d->magic) != 0)
        return false;
    d->times -= d->times != ALWAYS;
    return true;
}

static inline int at_step(void *ctx, vv_step at)
{
    plane_disk *d = &((run *)ctx)->disk;
    return at != VV_STEP_WRITE && at == d->at && strikes(d) ? d->os : 0;
}

static inline ssize_t write_some(void *ctx, int fd, const void *p, size_t n)
{
    static const char *const magics[] = {"BAMLDAT1", "BAMLMET1", "BAMLVAL1", "VARVHLT1"};
    plane_disk *d = &((run *)ctx)->disk;
    for (size_t i = 0; i < VV_ARRAY_LEN(magics) && n >= 8; i++)
        if (memcmp(p, magics[i], 8) == 0) {
            memcpy(d->now, magics[i], 9);
            if (d->at == VV_STEP_WRITE && strikes(d)) {
                errno = d->os;
                return -1;
            }
        }
    return write(fd, p, n);
}

static inline bool denies(void *ctx, vv_owner owner)
{
    run *r = ctx;
    if (!r->denials || owner != r->denied)
        return false;
    if (r->after) {
        r->after--;
        return false;
    }
    r->denials -= r->denials != ALWAYS;
    return true;
}

static inline void fail_next(run *r, const char *magic, vv_step at, int os, unsigned times)
{
    r->disk = (plane_disk){magic, at, os, times, ""};
}

static inline void fail_data(run *r, int os)
{
    fail_next(r, "BAMLDAT1", VV_STEP_WRITE, os, 1);
}

static inline void deny(run *r, vv_owner owner, unsigned times)
{
    r->denied = owner;
    r->denials = times;
    r->after = 0;
}

static inline void allow(run *r)
{
    r->denials = 0;
}

/* ---- what the program does ---- */

static const varve_policy llm = {.llm = true};

static inline varve_policy by_hand(unsigned roles)
{
    return (varve_policy){.manual = true,
                          .runtime_id = {7},
                          .input = roles & VARVE_INPUT ? VARVE_SWITCH_ON : VARVE_SWITCH_OFF,
                          .output = roles & VARVE_OUTPUT ? VARVE_SWITCH_ON : VARVE_SWITCH_OFF,
                          .error = roles & VARVE_ERROR ? VARVE_SWITCH_ON : VARVE_SWITCH_OFF};
}

static inline void call(run *r, unsigned f, const varve_policy *p)
{
    r->calls++;
    varve_call_begin_as(r->t, r->f[f], 0, varve_ticks(), p);
}

/* Selected, and owes nothing but these. */
static inline void call_for(run *r, unsigned f, unsigned roles)
{
    varve_policy p = by_hand(roles);
    call(r, f, &p);
}

static inline void end(run *r)
{
    varve_call_end(r->t, VARVE_CALL_OK);
}

static inline void end_badly(run *r)
{
    varve_call_end(r->t, VARVE_CALL_ERRORED);
}

static inline void throw_up(run *r, uint64_t ends)
{
    throw_text(r->t, &(varve_error){.ends = ends}, "no");
}

static inline void set_id(run *r, uint8_t first)
{
    uint8_t id[16] = {first};
    varve_call_set_runtime_id(r->t, 0, id);
}

/* An execution whose first call is open, all that it owes but the output given and committed. */
static inline void begin(run *r)
{
    *r = (run){.calls = 1};
    test_store s = store_make_quick();
    vv_session_test test = {.no_consumer = true,
                            .hooks = {.step = at_step, .write = write_some, .ctx = r},
                            .governor = {.denies = denies, .ctx = r}};
    r->g = (rig){.store = s, .session = session_tested(&s, 3600000, SMALL, &test)};
    r->g.engine = varve_engine_open(r->g.session, &(varve_engine_info){.roles = VARVE_ALL_ROLES});
    add_functions(r->g.engine, r->f, VV_ARRAY_LEN(r->f));
    r->t = rig_begin(&r->g);
    varve_call_begin(r->t, r->f[0], 0);
    give_int(r->t, VARVE_INPUT, -1);
    ck_assert(publish(r->g.session));
}

/* The execution's end, and a look at it. */
static inline look *finish(run *r, vv_accounting *ret)
{
    give_int(r->t, VARVE_OUTPUT, -2);
    varve_call_end(r->t, VARVE_CALL_OK);
    rig_end(&r->g);
    for (unsigned i = 0; i < 3; i++)
        publish(r->g.session);
    ck_assert_ptr_null(r->g.session->decoder.execs);
    *ret = r->g.session->decoder.over;
    return rig_close(&r->g);
}

static inline uint64_t *block_ring(run *r)
{
    vv_ring *ring = vv_session_ring(r->g.session, r->g.engine);
    uint64_t *end_of_it = ring->end;
    ring->end = ring->at;
    deny(r, VV_OWN_TRANSPORT, ALWAYS);
    return end_of_it;
}

static inline void unblock_ring(run *r, uint64_t *end_of_it)
{
    vv_session_ring(r->g.session, r->g.engine)->end = end_of_it;
    allow(r);
}

/* What was recorded is read while so many reservations are denied, and nothing makes room. */
static inline void settle_denied_times(run *r, vv_owner owner, unsigned times)
{
    void (*relieve)(void *, vv_exec *) = r->g.session->decoder.relieve;
    r->g.session->decoder.relieve = NULL;
    deny(r, owner, times);
    settle(r->g.session);
    ck_assert(times == ALWAYS || !r->denials);
    allow(r);
    r->g.session->decoder.relieve = relieve;
}

static inline void settle_denied(run *r, vv_owner owner)
{
    settle_denied_times(r, owner, ALWAYS);
}

/* The same while there is no room for a fact. */
static inline void settle_without_facts_times(run *r, unsigned times)
{
    vv_decoder *d = &r->g.session->decoder;
    ck_assert_uint_eq(d->execs->facts.count, 0);
    vv_facts_done(&d->execs->facts, d->governor);
    settle_denied_times(r, VV_OWN_EVIDENCE, times);
}

static inline void settle_without_facts(run *r)
{
    settle_without_facts_times(r, ALWAYS);
}

/* The next group is lost with the facts that wait by now. */
static inline void lose(run *r, int os)
{
    settle(r->g.session);
    fail_data(r, os);
    publish(r->g.session);
    ck_assert_uint_eq(r->disk.times, 0);
}
