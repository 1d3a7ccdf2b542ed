/*
 * Each reservation of small programs denied by itself, runs of them, and any at random: nothing crashes, the host sees
 * what it did, all equations hold, no reference dangles, and all memory comes back.
 */
#include "config.h"

#include "runtime/session.h"

#include "tests/runtime/denial.h"

uint64_t size_of_files;

enum { MEMORY = 16 << 20 };

/* Calls as deep as frames grow twice, each in a place of its own. */
static void calls(void)
{
    root(0);
    for (unsigned i = 0; i < 140; i++)
        begin(0, i);
    pass();
    for (unsigned i = 0; i < 70; i++)
        end(0);
    pass();
    cycle();
    for (unsigned i = 0; i < 30; i++) {
        begin(0, i + 20);
        end(0);
    }
}

/* Waits in more open calls than the accumulator has room for at first. */
static void waits(void)
{
    root(0);
    wait_once(0);
    for (unsigned i = 0; i < 40; i++) {
        begin(0, i);
        if (i % 3) {
            wait_once(0);
            wait_once(0);
        }
    }
    thread_op(do_wait, 0, 100000, 0, 0);
    pass();
    for (unsigned i = 0; i < 20; i++)
        end(0);
    cycle();
    wait_once(0);
}

/* Children of calls and of their callers, never started, and in generations. */
static void spawns(void)
{
    root(0);
    spawn(0, 1, 0); /* from no call */
    start(1);
    begin(1, 5);
    for (unsigned i = 0; i < 5; i++)
        begin(0, i);
    for (unsigned i = 2; i < 24; i++) {
        spawn(0, i, i % 7);
        if (i % 5)
            start(i);
        begin(i, i);
        if (i == 12)
            pass();
    }
    pass();
    for (unsigned i = 24; i < 34; i++) {
        spawn(i - 22, i, 1);
        start(i);
        begin(i, 40);
        wait_once(i);
        finish(i - 22);
    }
    root_end(0);
    pass();
    cycle();
    spawn(33, 34, 0);
    start(34);
    begin(34, 7);
}

/* One thread on several OS threads, each with its ring; the other rings are read first. */
static void moves(void)
{
    root(0);
    begin(0, 0);
    spawn(0, 1, 0);
    on(1);
    start(1);
    begin(1, 1);
    spawn(1, 2, 0);
    begin(0, 2);
    on(2);
    start(2);
    begin(2, 3);
    begin(0, 4);
    wait_once(0);
    end(0);
    on(0);
    pass();
    begin(1, 5);
    wait_once(1);
    on(1);
    end(1);
    finish(2);
    on(2);
    begin(0, 6);
    leave(1);
    on(1);
    begin(0, 7);
    begin(1, 8);
    end(0);
    pass();
    on(0);
    end(0);
    begin(1, 9);
    cycle();
}

/* More records than a segment holds, with and without a consumer behind. */
static void rolls(void)
{
    root(0);
    begin(0, 0);
    for (unsigned k = 0; k < 4; k++) {
        for (unsigned i = 0; i < 5; i++) {
            calls_of(0, 2500);
            begin(0, 7);
            wait_once(0);
            end(0);
        }
        spawn(0, k + 1, 0);
        start(k + 1);
        begin(k + 1, 5);
        if (k % 2)
            pass();
    }
    for (unsigned k = 0; k < 4; k++)
        finish(k + 1);
}

/* A tree that is due for its rollover again and again, with calls open. */
static void rollovers(void)
{
    world.session->decoder.epoch_nodes = 12;
    root(0);
    for (unsigned k = 0; k < 6; k++) {
        begin(0, k);
        spawn(0, 1 + k, 0);
        start(1 + k);
        for (unsigned i = 0; i < 20; i++) {
            begin(0, i + k);
            begin(1 + k, i);
            begin(0, i + 7);
            end(0);
            end(0);
        }
        pass();
        if (k == 3)
            cycle();
    }
}

/* Facts of many threads, which call for publications of their own. */
static void facts(void)
{
    world.session->decoder.facts_due = world.session->decoder.fact_limit = 10;
    root(0);
    root(1);
    begin(0, 0);
    begin(1, 1);
    for (unsigned i = 0; i < 20; i++) {
        unsigned r = i % 2;
        spawn(r, 10 + i, 0);
        start(10 + i);
        begin(10 + i, i);
        if (i % 3 == 0)
            finish(10 + i);
        if (i % 8 == 7)
            pass();
    }
}

/* Executions that end in each order, of two engines, and one that nobody ends. */
static void ends(void)
{
    for (unsigned r = 0; r < 4; r++) {
        root(r);
        begin(r, r);
        spawn(r, 10 + r, 0);
        start(10 + r);
        begin(10 + r, r + 10);
    }
    other_op(do_root_begin, 4, 1);
    thread_op(do_begin, 4, 0, 0, 1);
    pass();
    root_end(0);
    finish(0);
    finish(1);
    finish(11);
    root_end(1);
    pass();
    finish(10);
    pass();
    finish(2);
    finish(12);
    other_op(do_engine_close, 1, 0);
    pass();
    cycle();
    root(5);
    begin(5, 30);
}

/* Selected calls deeper than marks and spans grow, with values, errors caught at each depth, and rethrows. */
static void selected(void)
{
    root(0);
    begin(0, 0);
    give(0, VARVE_INPUT, 20);
    for (unsigned i = 0; i < 9; i++) {
        begin_as(0, i, i % 2 ? BY_CLASS : BY_HAND | HAND_ALL);
        give(0, VARVE_INPUT, i * 300);
        set_id(0, i % 3);
        if (i == 5)
            pass();
    }
    throw_up(0, 2, 10);
    throw_up(0, 0, 4000); /* caught where it was thrown, and thrown again */
    throw_up(0, 1, 10);
    begin(0, 3);
    throw_up(0, 1, 10);
    pass();
    cycle();
    give(0, VARVE_OUTPUT, 30000);
    end(0);
    set_id(0, 0);
    begin_as(0, 4, BY_HAND);
    end(0);
    throw_up(0, 3, 5);
    pass();
    cycle();
    begin_as(0, 5, BY_CLASS | BY_HAND);
    throw_up(0, 100, 5);
}

/* The same of threads that go on elsewhere, and of spawned calls. */
static void selected_moves(void)
{
    root(0);
    begin(0, 0);
    for (unsigned i = 1; i < 5; i++) {
        spawn(0, i, 0);
        on(i % HANDS);
        start(i);
        begin_as(i, i, i % 2 ? BY_CLASS : BY_HAND | HAND_INPUT | HAND_ERROR);
        give(i, VARVE_INPUT, i * 100);
        begin_as(i, 7, BY_HAND | HAND_OUTPUT);
        on((i + 1) % HANDS);
        set_id(i, 1);
        give(i, VARVE_OUTPUT, 3);
        if (i == 3)
            pass();
        throw_up(i, 1 + i % 2, 9);
        on(0);
    }
    pass();
    leave(1);
    for (unsigned i = 1; i < 5; i++) {
        on((i + 2) % HANDS);
        begin_as(i, 9, BY_CLASS);
        give(i, VARVE_INPUT, 7);
        finish(i);
    }
    on(0);
    throw_up(0, 1, 3);
    cycle();
    begin_as(0, 1, BY_HAND | HAND_ALL);
}

static const struct {
    const char *name;
    void (*play)(void);
    bool from_open;
    uint64_t least; /* reservations */
} programs[] = {
    {"open", ends, true, 150},
    {"calls", calls, false, 20},
    {"waits", waits, false, 10},
    {"spawns", spawns, false, 50},
    {"moves", moves, false, 10},
    {"rolls", rolls, false, 10},
    {"rollovers", rollovers, false, 50},
    {"facts", facts, false, 40},
    {"ends", ends, false, 30},
    {"selected", selected, false, 60},
    {"selected moves", selected_moves, false, 60},
};

/* Of runs that are denied: the first VV_DENIAL_LENGTHS of them, or all. */
static const unsigned lengths[] = {1, 16, 100000, 2, 4};

static void deny_each(unsigned which, deny_kind kind)
{
    faults.kind = kind;
    faults.program = programs[which].name;
    bool from_open = programs[which].from_open;
    uint64_t n = play(programs[which].play, MEMORY, from_open);
    fprintf(stderr, "# %s: %" PRIu64 "\n", faults.program, n);
    CHECK(n >= programs[which].least);
    const char *one = getenv("VV_DENIED"); /* "from-to": only these */
    if (one && sscanf(one, "%" SCNu64 "-%" SCNu64, &faults.from, &faults.to) == 2) {
        play(programs[which].play, MEMORY, from_open);
        return;
    }
    const char *some = getenv("VV_DENIAL_LENGTHS");
    for (unsigned k = 0; k < (some ? (unsigned)atoi(some) : VV_ARRAY_LEN(lengths)) && k < VV_ARRAY_LEN(lengths); k++)
        for (uint64_t i = 0; i < n; i += lengths[k] < 4 ? 1 : lengths[k] / 2) {
            faults.from = i;
            faults.to = i + lengths[k];
            play(programs[which].play, MEMORY, from_open);
        }
}

START_TEST(gate_denied_reservations)
{
    hands_start(world.hands, HANDS);
    deny_each((unsigned)_i, DENY_RESERVATIONS);
    hands_stop(world.hands, HANDS);
}
END_TEST

START_TEST(gate_failed_allocations)
{
    hands_start(world.hands, HANDS);
    deny_each((unsigned)_i, DENY_ALLOCATIONS);
    hands_stop(world.hands, HANDS);
}
END_TEST

/* A thread's last records are on another ring than a backlog of its earlier ones, and go on without them as memory is
 * short: the backlog comes when its thread is gone. */
static void backlog(void)
{
    root(0);
    root(1);
    on(1);
    begin(0, 0);
    calls_of(0, 400000);
    on(2);
    calls_of(0, 12000);
    finish(0);
    root_end(0);
    /* A ring was refused. */
    atomic_fetch_add(&world.session->governor.denials[VV_POOL_GENERAL][VV_OWN_TRANSPORT], 1);
    on(1);
    begin(1, 0);
}

START_TEST(gate_end_before_a_backlog)
{
    faults.program = "backlog";
    hands_start(world.hands, HANDS);
    play(backlog, 32 << 20, false);
    hands_stop(world.hands, HANDS);
}
END_TEST

/* One of what selected calls do. */
static void anything_selected(test_rng *g, unsigned t)
{
    unsigned bytes = (unsigned)test_below(g, test_below(g, 8) ? 200 : sizeof stuff);
    switch (test_below(g, 6)) {
    case 0:
    case 1:
        begin_as(t, (unsigned)test_below(g, FUNCTIONS), (unsigned)test_below(g, 32));
        break;
    case 2:
        give(t, VARVE_INPUT, bytes);
        break;
    case 3:
        give(t, VARVE_OUTPUT, bytes);
        break;
    case 4:
        set_id(t, (unsigned)test_below(g, 4));
        break;
    default:
        throw_up(t, (unsigned)test_below(g, test_below(g, 4) ? 3 : 40), bytes);
    }
}

static void anything(void)
{
    test_rng *g = &faults.random;
    root(0);
    for (unsigned i = 0; i < 400; i++) {
        unsigned t = (unsigned)test_below(g, 16), what = (unsigned)test_below(g, 100);
        actor *a = &world.threads[t];
        if (what >= 98)
            pass();
        else if (what >= 97)
            cycle();
        else if (what >= 95)
            on((unsigned)test_below(g, HANDS));
        else if (!a->alive && t < 3 && !world.roots[t].begun)
            root(t);
        else if (!a->alive)
            continue;
        else if (!a->started)
            start(t);
        else if (what < 20)
            anything_selected(g, t);
        else if (what < 40)
            begin(t, (unsigned)test_below(g, FUNCTIONS));
        else if (what < 65)
            end(t);
        else if (what < 75)
            thread_op(do_wait, t, what == 70 ? 100000 : 0, 0, 0);
        else if (what < 77)
            calls_of(t, (uint32_t)test_below(g, 12000));
        else if (what < 90 && !world.threads[3 + what % 13].alive)
            spawn(t, 3 + what % 13, (unsigned)test_below(g, 3));
        else if (what == 94)
            finish(t);
        else if (what == 93 && t < 3)
            root_end(t);
    }
}

enum { AT_RANDOM = 60 };

/* Denied at random, of a random program: VV_SEED says which. */
START_TEST(gate_denied_at_random)
{
    faults.random = test_seeded("denial");
    faults.program = "anything";
    hands_start(world.hands, HANDS);
    for (unsigned i = 0; i < AT_RANDOM; i++) {
        faults.from = faults.to = i;
        faults.kind = i % 3 ? DENY_RESERVATIONS : DENY_ALLOCATIONS;
        faults.one_in = 2U << i % 7;
        play(anything, i % 2 ? 8921088 : MEMORY, i % 5 == 0);
    }
    hands_stop(world.hands, HANDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("denial");
    TCase *c = tcase_create("denial");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, gate_end_before_a_backlog);
    tcase_add_loop_test(c, gate_denied_reservations, 0, (int)VV_ARRAY_LEN(programs));
    tcase_add_loop_test(c, gate_failed_allocations, 0, (int)VV_ARRAY_LEN(programs));
    tcase_add_test(c, gate_denied_at_random);
    suite_add_tcase(suite, c);
    return test_main(suite);
}
