/* The tree by itself: how it grows, seals in parts, rolls over, saturates and forgets. */
#include "config.h"

#include "runtime/cct.h"

#include "runtime/session.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

typedef struct {
    rig g;
    vv_cct c;
} fixture;

static fixture open_fixture(void)
{
    fixture f = {.g = rig_stepped(store_make_quick(), 32 << 20, NULL)};
    vv_cct_init(&f.c, f.g.engine, &f.g.session->governor);
    return f;
}

static void close_fixture(fixture *f)
{
    vv_cct_done(&f->c);
    varve_session_close(f->g.session);
    rig_remove(&f->g);
}

static uint32_t call(vv_cct *c, uint32_t parent, uint32_t function)
{
    uint32_t i = vv_cct_intern(c, parent, function, 0, parent == VV_NODE_NONE ? VV_EDGE_ROOT : VV_EDGE_CALL);
    ck_assert_uint_ne(i, VV_NODE_NONE);
    c->nodes[i].started++;
    vv_cct_touch(c, i);
    return i;
}

typedef struct {
    vv_cct_row rows[4096];
    vv_cct_overflow overflow[VV_OVERFLOW_REASONS * VV_EDGES];
    uint64_t count, overflow_count;
    uint8_t health;
    bool more;
} sealed;

static sealed out;
static vv_cct_ref refs[4096];
static uint32_t ref_count;

static void seal(vv_cct *c, size_t max_bytes)
{
    vv_wr w = vv_wr_growing(1 << 24);
    uint64_t n = vv_cct_seal(c, &w, max_bytes, refs, &ref_count, &out.health, &out.more);
    out.count = out.overflow_count = 0;
    if (n) {
        vv_cct_cursor cur;
        vv_cct_open(&cur, w.buf, w.len, out.health, n);
        while (vv_cct_next_context(&cur, &out.rows[out.count]))
            out.count++;
        while (vv_cct_next_overflow(&cur, &out.overflow[out.overflow_count]))
            out.overflow_count++;
        vv_error err = {0};
        ck_assert_msg(vv_cct_finish(&cur, &err) == VV_OK, "%s", err.name);
    }
    vv_wr_done(&w);
}

/* A million calls on one path change counters only; call, root and spawn edges, and two sites, are contexts of their
 * own. */
START_TEST(gate_context_identity)
{
    fixture f = open_fixture();
    uint32_t main = call(&f.c, VV_NODE_NONE, 1), leaf = call(&f.c, main, 2);
    for (unsigned i = 1; i < 1000000; i++)
        ck_assert_uint_eq(call(&f.c, main, 2), leaf);
    ck_assert_uint_eq(f.c.count, 2);
    uint32_t file = varve_file_add(f.c.engine, "f");
    uint32_t a = varve_site_add(f.c.engine, file, 1, 2, 3), b = varve_site_add(f.c.engine, file, 2, 3, 4);
    uint32_t ids[] = {vv_cct_intern(&f.c, main, 2, a, VV_EDGE_CALL), vv_cct_intern(&f.c, main, 2, b, VV_EDGE_CALL),
                      vv_cct_intern(&f.c, main, 2, a, VV_EDGE_SPAWN), vv_cct_intern(&f.c, main, 2, b, VV_EDGE_SPAWN)};
    for (unsigned i = 0; i < VV_ARRAY_LEN(ids); i++)
        ck_assert_uint_eq(ids[i], 2 + i);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.count, 6);
    ck_assert_uint_eq(f.c.sealed_started, 1000001);
    for (unsigned i = 1; i < out.count; i++)
        ck_assert_int_lt(memcmp(&out.rows[i - 1].key, &out.rows[i].key, sizeof out.rows[i].key), 0);
    close_fixture(&f);
}
END_TEST

static void settle_refs(vv_cct *c, bool committed)
{
    vv_cct_settle(c, refs, ref_count, committed);
}

static uint32_t chain(vv_cct *c, unsigned n)
{
    uint32_t at = VV_NODE_NONE;
    for (unsigned i = 0; i < n; i++)
        at = call(c, at, i + 1);
    return at;
}

/* Sealed in parts: parents never come after their children, also when a part is lost in between. */
START_TEST(gate_parents_first)
{
    fixture f = open_fixture();
    chain(&f.c, 1000);
    bool defined[1001] = {false};
    unsigned parts = 0, lost = 0;
    do {
        seal(&f.c, 40 * 213);
        bool committed = parts++ % 3 != 1;
        lost += !committed;
        for (unsigned i = 0; i < out.count; i++) {
            const vv_cct_row *r = &out.rows[i];
            ck_assert(r->defined);
            uint32_t id = r->tuple.function_id;
            bool parent_here = false;
            for (unsigned k = 0; k < out.count; k++)
                parent_here = parent_here || out.rows[k].tuple.function_id == id - 1;
            ck_assert(id == 1 || defined[id - 1] || parent_here);
        }
        for (unsigned i = 0; committed && i < out.count; i++)
            defined[out.rows[i].tuple.function_id] = true;
        settle_refs(&f.c, committed);
    } while (f.c.dirty_count);
    ck_assert_uint_gt(lost, 3);
    for (unsigned i = 1; i <= 1000; i++)
        ck_assert(defined[i]);
    close_fixture(&f);
}
END_TEST

/* Rolled over: an open parent stays as a stub, its children are found new and defined again, memory goes back. */
START_TEST(gate_rollover_keeps_open_parents)
{
    fixture f = open_fixture();
    const _Atomic uint64_t *used = &f.g.session->governor.pools[VV_POOL_GENERAL].used;
    uint64_t others = *used;
    uint32_t deep = chain(&f.c, 30), map[4096];
    for (unsigned i = 0; i < 2000; i++)
        call(&f.c, deep, 1000 + i);
    seal(&f.c, 1 << 24);
    settle_refs(&f.c, true);
    uint64_t before = *used - others;
    ck_assert(!vv_cct_is_dirty(&f.c));
    vv_cct_rollover(&f.c, &deep, 1, map);
    ck_assert_uint_eq(f.c.count, 1); /* a stub counts as a resident node */
    ck_assert_uint_lt(*used - others, before / 16);
    deep = map[deep];
    ck_assert_uint_eq(f.c.nodes[deep].parent, VV_NODE_ORPHAN);
    uint32_t child = call(&f.c, deep, 1000);
    vv_cct_end_slow(&f.c, deep, VV_CALL_OK, 7, 0, 0);
    vv_cct_end_slow(&f.c, child, VV_CALL_OK, 5, 0, 0);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.count, 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert(out.rows[i].defined == (out.rows[i].counters.inclusive_ns == 5));
    close_fixture(&f);
}
END_TEST

/* Before its definition is committed a node keeps all its ancestors; what was not sealed is not dropped at all. */
START_TEST(gate_rollover_keeps_the_unsealed)
{
    fixture f = open_fixture();
    uint32_t deep = chain(&f.c, 30), map[4096];
    for (unsigned i = 0; i < 100; i++)
        call(&f.c, deep, 1000 + i);
    vv_cct_rollover(&f.c, NULL, 0, map);
    ck_assert_uint_eq(f.c.count, 130);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(f.c.sealed_started, 130);
    settle_refs(&f.c, false);
    /* Lost: no counts are left, and no definition that a live call needs. */
    uint32_t keep = map[deep];
    vv_cct_rollover(&f.c, &keep, 1, map);
    ck_assert_uint_eq(f.c.count, 30);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.count, 30);
    ck_assert_uint_eq(f.c.sealed_started, 0);
    for (unsigned i = 0; i < out.count; i++)
        ck_assert(out.rows[i].defined);
    close_fixture(&f);
}
END_TEST

START_TEST(gate_saturation)
{
    fixture f = open_fixture();
    uint32_t i = call(&f.c, VV_NODE_NONE, 1);
    f.c.nodes[i].inclusive_high = f.c.nodes[i].await_high = UINT8_MAX - 1;
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, UINT64_MAX, UINT64_MAX, 1);
    ck_assert_uint_eq(f.c.health, 0);
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, 1, 1, 1);
    ck_assert_uint_eq(f.c.health, 0);
    ck_assert_uint_eq(f.c.nodes[i].inclusive_high, UINT8_MAX);
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, UINT64_MAX, 0, 0);
    ck_assert_uint_eq(f.c.health, 0);
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, 1, 0, 0);
    ck_assert_uint_eq(f.c.health, VV_HEALTH_COUNTER_SATURATED);
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, 0, UINT64_MAX, 0);
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, 0, 1, 0);
    f.c.cold[i].await_count = UINT64_MAX;
    vv_cct_end_slow(&f.c, i, VV_CALL_OK, 0, 0, 1);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.health, VV_HEALTH_COUNTER_SATURATED | VV_HEALTH_AWAIT_SATURATED);
    ck_assert(out.rows[0].counters.inclusive_ns == ((vv_u128)UINT8_MAX << 64 | UINT64_MAX));
    ck_assert(out.rows[0].counters.await_ns == ((vv_u128)UINT8_MAX << 64 | UINT64_MAX));
    ck_assert_uint_eq(out.rows[0].counters.await_count, UINT64_MAX);
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.health, 0);
    close_fixture(&f);
}
END_TEST

/* Every bucket of the matrix counts for itself and needs no memory. */
START_TEST(gate_overflow_matrix)
{
    fixture f = open_fixture();
    vv_governor *g = &f.g.session->governor;
    ck_assert(vv_reserve(g, VV_POOL_GENERAL, VV_OWN_POPULATION,
                         g->pools[VV_POOL_GENERAL].limit - atomic_load(&g->pools[VV_POOL_GENERAL].used)));
    ck_assert_uint_eq(vv_cct_intern(&f.c, VV_NODE_NONE, 1, 0, VV_EDGE_ROOT), VV_NODE_NONE);
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            uint32_t node = vv_overflow_node(r, e);
            for (unsigned k = 0; k <= r * VV_EDGES + e; k++)
                vv_cct_overflow_start(&f.c, node);
            vv_cct_end_slow(&f.c, node, VV_CALL_ERRORED, 10, 2, 1);
            vv_cct_direct(&f.c, node, 3);
        }
    seal(&f.c, 1 << 20);
    ck_assert_uint_eq(out.count, 0);
    ck_assert_uint_eq(out.overflow_count, VV_OVERFLOW_REASONS * VV_EDGES);
    for (unsigned i = 0; i < out.overflow_count; i++) {
        const vv_cct_overflow *o = &out.overflow[i];
        ck_assert_uint_eq(o->counters.started, o->reason * VV_EDGES + o->edge + 1);
        ck_assert_uint_eq(o->counters.error, 1);
        ck_assert(o->counters.inclusive_ns == 10 && o->counters.await_ns == 2 && o->counters.direct_child_ns == 3);
    }
    ck_assert_uint_eq(f.c.sealed_started, 21);
    ck_assert_uint_eq(f.c.sealed_awaits, 6);
    ck_assert(!vv_cct_is_dirty(&f.c));
    close_fixture(&f);
}
END_TEST

/* Where the store takes nothing any more, counts are taken out without a byte being written. */
START_TEST(discarded)
{
    fixture f = open_fixture();
    vv_cct_discard(&f.c); /* of an empty tree */
    uint32_t deep = chain(&f.c, 30);
    vv_cct_overflow_start(&f.c, vv_overflow_node(0, 1));
    vv_cct_end_slow(&f.c, deep, VV_CALL_OK, 7, 1, 4);
    vv_cct_discard(&f.c);
    ck_assert_uint_eq(f.c.sealed_started, 31);
    ck_assert_uint_eq(f.c.sealed_awaits, 4);
    ck_assert(!vv_cct_is_dirty(&f.c));
    vv_cct_discard(&f.c);
    ck_assert_uint_eq(f.c.sealed_started, 0);
    close_fixture(&f);
}
END_TEST

int main(void)
{
    TCase *c = test_case("cct", 60);
    tcase_add_test(c, gate_context_identity);
    tcase_add_test(c, gate_parents_first);
    tcase_add_test(c, gate_rollover_keeps_open_parents);
    tcase_add_test(c, gate_rollover_keeps_the_unsealed);
    tcase_add_test(c, gate_saturation);
    tcase_add_test(c, gate_overflow_matrix);
    tcase_add_test(c, discarded);
    return test_run();
}
