/*
 * The lease count of a slot in every interleaving: who closes an execution, when, and once. The steps are those of
 * runtime/execution.c, one atomic operation each.
 */
#include "config.h"

#include "tests/runtime/model.h"

enum { NONE, SUCCEEDED, ABANDONED };
enum { OPEN, RETURNED, CLOSING, FREE };

/* One slot, as all models here see it. */
typedef struct {
    uint8_t threads, status, phase, generation;
    uint8_t ready;           /* times it was made ready */
    uint8_t open;            /* producers that may still record */
    uint8_t late;            /* records written after it was ready */
    uint8_t returns;         /* guards that were given back */
    uint8_t abandoned;       /* counted */
    uint8_t pc[4], local[4]; /* of the actors */
    uint8_t spawned;         /* the grandchild may run */
    uint8_t second_status;   /* set by a handle that is not the second execution's */
    uint8_t second_threads;
} slot;
_Static_assert(sizeof(slot) <= MODEL_BYTES, "a state");

static void begin(void *state, uint8_t threads, uint8_t open)
{
    slot *s = state;
    s->threads = threads;
    s->open = open;
}

/* The actor has made a step, and goes on here. */
static bool to(slot *s, unsigned a, unsigned pc)
{
    s->pc[a] = (uint8_t)pc;
    return true;
}

static void record(slot *s)
{
    s->late += s->ready != 0;
}

static void returned(slot *s, uint8_t status)
{
    s->status = status;
    s->phase = RETURNED;
}

/* A release in steps from pc at on: the count, then the phase, then the list. True: a step was made. */
static bool release(slot *s, unsigned a, unsigned at)
{
    switch (s->pc[a] - at) {
    case 0:
        return to(s, a, --s->threads ? 100 : at + 1);
    case 1:
        s->phase = CLOSING;
        return to(s, a, at + 2);
    case 2:
        s->ready++;
        return to(s, a, 100);
    default:
        return false;
    }
}

/* The count as two operations, as if it were no atomic one. */
static bool torn_release(slot *s, unsigned a, unsigned at)
{
    switch (s->pc[a] - at) {
    case 0:
        s->local[a] = s->threads;
        return to(s, a, at + 1);
    case 1:
        s->threads = (uint8_t)(s->local[a] - 1);
        return to(s, a, s->threads ? 100 : at + 2);
    case 2:
        s->ready++;
        return to(s, a, 100);
    default:
        return false;
    }
}

/* A thread's end in steps: its last record, that it records no more, its release. */
static bool thread_end(slot *s, unsigned a)
{
    switch (s->pc[a]) {
    case 0:
        record(s);
        return to(s, a, 1);
    case 1:
        s->open--;
        return to(s, a, 2);
    default:
        return release(s, a, 2);
    }
}

static const char *check(const void *state)
{
    const slot *s = state;
    if (s->ready > 1)
        return "closed twice";
    if (s->ready && s->status == NONE)
        return "closed without a status";
    if (s->ready && s->open)
        return "closed with a producer left";
    if (s->late)
        return "a record after the end";
    return NULL;
}

static const char *check_end(const void *state)
{
    const slot *s = state;
    return s->ready != 1 ? "never closed" : s->threads ? "leases left" : NULL;
}

/* The root returns while its thread and its child end. */
static void init_last_child(void *state, unsigned wrong)
{
    (void)wrong;
    begin(state, 3, 2);
}

static bool step_last_child(void *state, unsigned a, unsigned wrong)
{
    slot *s = state;
    if (a == 0) {
        /* Mistake 1: the guard's lease goes before the status is there. */
        unsigned status_at = wrong == 1 ? 100 : 0;
        if (s->pc[a] == status_at && s->status == NONE) {
            returned(s, SUCCEEDED);
            return to(s, a, wrong == 1 ? 101 : 1);
        }
        return release(s, a, wrong == 1 ? 0 : 1);
    }
    return wrong == 2 && s->pc[a] >= 2 ? torn_release(s, a, 2) : thread_end(s, a);
}

START_TEST(gate_model_root_and_last_child)
{
    model m = {3, init_last_child, step_last_child, check, check_end};
    model_assert(&m, 2, 50);
}
END_TEST

/* The root returns and its thread is gone; the child spawns a grandchild on its way out. Actors: root, child,
 * grandchild. */
static void init_grandchild(void *state, unsigned wrong)
{
    (void)wrong;
    begin(state, 2, 1);
}

/* The grandchild may run. */
static void spawn(slot *s)
{
    s->spawned = 1;
    s->open++;
}

static bool acquire(slot *s, unsigned a)
{
    if (s->pc[a] == 0) {
        s->local[a] = s->phase == OPEN || s->phase == RETURNED;
        return to(s, a, s->local[a] ? 1 : 50);
    }
    if (s->threads == 0)
        return to(s, a, 50);
    s->threads++;
    spawn(s);
    return to(s, a, 2);
}

static bool step_grandchild(void *state, unsigned a, unsigned wrong)
{
    slot *s = state;
    if (a == 0) {
        if (s->pc[a] == 0) {
            returned(s, SUCCEEDED);
            return to(s, a, 1);
        }
        return release(s, a, 1);
    }
    if (a == 2)
        return s->spawned && thread_end(s, a);
    /* The child. Mistake 1: the grandchild runs without a lease. Mistake 2: the child gives its own up first. */
    if (wrong == 1 && s->pc[a] == 0) {
        spawn(s);
        return to(s, a, 2);
    }
    if (wrong == 2 && s->pc[a] == 0) {
        s->open--;
        return to(s, a, 60);
    }
    if (wrong == 2 && s->pc[a] >= 60 && s->pc[a] < 63) {
        bool moved = release(s, a, 60);
        if (s->pc[a] == 100)
            s->pc[a] = 70;
        return moved;
    }
    if (wrong == 2 && s->pc[a] == 70) {
        record(s);
        s->threads++;
        spawn(s);
        return to(s, a, 100);
    }
    if (s->pc[a] < 2)
        return acquire(s, a);
    if (s->pc[a] == 2 || s->pc[a] == 50) {
        s->open--;
        return to(s, a, 3);
    }
    return release(s, a, 3);
}

START_TEST(gate_model_post_root_grandchild)
{
    model m = {3, init_grandchild, step_grandchild, check, check_end};
    model_assert(&m, 2, 40);
}
END_TEST

/* The host ends the root while a close finds it open, and the last thread ends. Actors: host, close, thread. */
static void init_drop(void *state, unsigned wrong)
{
    (void)wrong;
    begin(state, 2, 1);
}

static bool step_drop(void *state, unsigned a, unsigned wrong)
{
    slot *s = state;
    uint8_t mine = a == 0 ? SUCCEEDED : ABANDONED;
    if (a == 2) {
        if (s->pc[a] == 0) {
            record(s);
            s->open--;
            return to(s, a, 1);
        }
        return release(s, a, 1);
    }
    /* Mistake 1: the status is looked at, then set. */
    if (wrong == 1 && s->pc[a] == 0) {
        s->local[a] = s->status == NONE;
        return to(s, a, 1);
    }
    if (s->pc[a] == (wrong == 1)) {
        bool first = wrong == 1 ? s->local[a] : s->status == NONE && s->phase == OPEN;
        if (first) {
            returned(s, mine);
            s->returns++;
            s->abandoned += mine == ABANDONED;
        }
        return to(s, a, first ? 2 : 100);
    }
    return release(s, a, 2);
}

static const char *check_drop(const void *state)
{
    const slot *s = state;
    if (s->returns > 1)
        return "the guard's lease was given back twice";
    return check(state);
}

static const char *check_drop_end(const void *state)
{
    const slot *s = state;
    if (s->abandoned != (s->status == ABANDONED))
        return "an abandoned root was counted wrong";
    return check_end(state);
}

START_TEST(gate_model_abnormal_drop)
{
    model m = {3, init_drop, step_drop, check_drop, check_drop_end};
    model_assert(&m, 1, 30);
}
END_TEST

/*
 * The slot is used again while somebody holds a handle of its first execution. Actors: the last release, consumer and
 * next admission in one; an old handle that ends its root once more; an old handle that acquires a lease.
 */
static void init_reuse(void *state, unsigned wrong)
{
    slot *s = state;
    (void)wrong;
    s->threads = 1;
    returned(s, SUCCEEDED);
}

static bool step_owner(slot *s)
{
    switch (s->pc[0]++) {
    case 0:
        s->threads--;
        if (s->threads)
            s->pc[0] = 100; /* the old handle got a lease in time: not the last */
        break;
    case 1:
        s->phase = CLOSING;
        break;
    case 2: /* hand-off */
        s->phase = FREE;
        s->status = NONE;
        s->generation++;
        break;
    case 3: /* the next execution takes its leases, and opens */
        s->threads = 2;
        break;
    case 4:
        s->phase = OPEN;
        s->ready = 0;
        break;
    case 5: /* its thread ends */
        s->threads--;
        s->second_threads = s->threads == 0;
        break;
    default:
        s->pc[0] = 100;
        return false;
    }
    return true;
}

static bool step_reuse(void *state, unsigned a, unsigned wrong)
{
    slot *s = state;
    if (a == 0)
        return s->pc[0] != 100 && step_owner(s);
    if (a == 1) {
        /* Mistake 1: the generation is looked at, then the status is set by itself. */
        if (wrong == 1 && s->pc[a] == 0) {
            s->local[a] = s->generation == 0;
            return to(s, a, s->local[a] ? 1 : 100);
        }
        if (s->pc[a] == (wrong == 1)) {
            bool hit = s->status == NONE && s->phase == OPEN && (wrong == 1 || s->generation == 0);
            if (hit) {
                s->status = ABANDONED;
                s->second_status = s->generation != 0;
            }
            return to(s, a, 100);
        }
        return false;
    }
    switch (s->pc[a]) {
    case 0:
        return to(s, a, s->generation == 0 && (s->phase == OPEN || s->phase == RETURNED) ? 1 : 100);
    case 1:
        if (s->threads == 0)
            return to(s, a, 100);
        s->threads++;
        return to(s, a, 2);
    case 2: /* Mistake 2: the generation is not looked at again. */
        s->local[a] = s->generation != 0 && wrong == 2;
        return to(s, a, s->generation == 0 || wrong == 2 ? 100 : 3);
    case 3:
        s->threads--;
        s->second_threads = s->second_threads || s->threads == 0;
        return to(s, a, 100);
    default:
        return false;
    }
}

static const char *check_reuse(const void *state)
{
    const slot *s = state;
    if (s->second_status)
        return "an old handle ended the next execution";
    if (s->local[2] && s->pc[2] == 100)
        return "an old handle holds a lease of the next execution";
    if (s->second_threads)
        return "the next execution closed before its root returned";
    return NULL;
}

static const char *check_reuse_end(const void *state)
{
    const slot *s = state;
    /* The guard's is left; where the old handle got its lease in time, the first execution never closed. */
    return s->generation && s->threads != 1 ? "the next execution's count is wrong" : NULL;
}

START_TEST(gate_model_slot_reuse)
{
    model m = {3, init_reuse, step_reuse, check_reuse, check_reuse_end};
    model_assert(&m, 2, 50);
}
END_TEST

int main(void)
{
    TCase *c = test_case("model_lease", 60);
    tcase_add_test(c, gate_model_root_and_last_child);
    tcase_add_test(c, gate_model_post_root_grandchild);
    tcase_add_test(c, gate_model_abnormal_drop);
    tcase_add_test(c, gate_model_slot_reuse);
    return test_run();
}
