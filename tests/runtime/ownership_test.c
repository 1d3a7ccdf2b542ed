/* Who holds an execution open, for how long, and what ends it. */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { SMALL = 8921088, MEDIUM = 32 << 20 };

static vv_slot *only_slot(varve_session *v)
{
    for (uint32_t i = 0; i < v->registry.count; i++)
        if (vv_slot_phase(&v->registry.slots[i]) != VV_PHASE_FREE)
            return &v->registry.slots[i];
    return NULL;
}

static vv_exec_status status_in(const test_store *s, size_t execution)
{
    look l = look_store(s->root);
    look_fold(&l, 0, execution);
    vv_exec_status st = l.execution->status;
    look_done(&l);
    return st;
}

/* A root without descendants: its end and its thread's, in either order, make one end of the execution. */
START_TEST(gate_root_alone)
{
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, function(g.engine, "f"), 0);
    if (_i == 0)
        varve_root_end(g.root, VARVE_FAILED);
    else
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
    ck_assert_int_eq(vv_slot_phase(only_slot(g.session)), _i == 0 ? VV_PHASE_RETURNED : VV_PHASE_OPEN);
    ck_assert(publish(g.session));
    ck_assert_int_eq(status_in(&g.store, 0), VV_EXEC_RUNNING);
    if (_i == 0)
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
    else
        varve_root_end(g.root, VARVE_FAILED);
    varve_root_end(g.root, VARVE_SUCCEEDED); /* the first wins */
    ck_assert_int_eq(vv_slot_phase(only_slot(g.session)), VV_PHASE_CLOSING);
    settle(g.session);
    ck_assert_ptr_null(only_slot(g.session));
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_int_eq(l->execution->status, VV_EXEC_FAILED);
    rig_remove(&g);
}
END_TEST

/* The root has returned; its child goes on and spawns a grandchild, which is the last. Their errors don't change the
 * result. */
START_TEST(gate_post_root_grandchild)
{
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g), *child, *grandchild;
    varve_call_begin(t, f, 0);
    child = varve_thread_spawn(t, 0, 0, NULL, 0);
    rig_end(&g);
    varve_thread_start(child, varve_ticks());
    varve_call_begin(child, f, 0);
    grandchild = varve_thread_spawn(child, 0, 0, NULL, 0);
    varve_thread_end(child, VARVE_THREAD_ERRORED);
    ck_assert(publish(g.session));
    ck_assert_int_eq(status_in(&g.store, 0), VV_EXEC_RUNNING);
    varve_thread_start(grandchild, varve_ticks());
    varve_call_begin(grandchild, f, 0);
    varve_thread_end(grandchild, VARVE_THREAD_CANCELLED);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_int_eq(l->execution->status, VV_EXEC_SUCCEEDED);
    ck_assert_uint_eq(started(l, "f~f~f"), 1);
    ck_assert_uint_eq(counters_of(l, "f~f").error, 1);
    ck_assert_uint_eq(counters_of(l, "f~f~f").cancelled, 1);
    rig_remove(&g);
}
END_TEST

/* A root that nobody ends: the engine's close, or the session's, abandons it, once. */
START_TEST(gate_abandoned_root)
{
    bool by_engine = _i & 1, thread_open = _i & 2;
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    varve_engine *other = varve_engine_open(g.session, NULL);
    varve_thread *t = rig_begin(&g), *t2;
    varve_call_begin(t, function(g.engine, "f"), 0);
    if (!thread_open)
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_engine_close(other);
    ck_assert_uint_eq(status_of(g.session).roots_abandoned, 0);
    if (by_engine) {
        varve_engine_close(g.engine);
        varve_engine_close(g.engine);
        ck_assert_uint_eq(status_of(g.session).roots_abandoned, 1);
        varve_root_end(g.root, VARVE_SUCCEEDED); /* too late */
        if (thread_open)
            varve_thread_end(t, VARVE_THREAD_COMPLETED);
        ck_assert(publish(g.session));
        ck_assert_int_eq(status_in(&g.store, 0), VV_EXEC_ABANDONED);
        /* The slot serves again. */
        varve_root *again = varve_root_begin(other, NULL, &t2);
        execution_end(again, t2);
        ck_assert(publish(g.session));
        ck_assert_int_eq(status_in(&g.store, 1), VV_EXEC_SUCCEEDED);
        ck_assert_uint_eq(status_of(g.session).roots_abandoned, 1);
    }
    vv_consumer_start(g.session);
    look *l = rig_close(&g);
    ck_assert_int_eq(l->execution->status, VV_EXEC_ABANDONED);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    bool open = thread_open && !by_engine;
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_call_facts], open);
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_thread_facts], open);
    rig_remove(&g);
}
END_TEST

/* An old handle of a slot that serves another execution by now ends nothing, whoever asks first. */
START_TEST(gate_stale_root)
{
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    varve_thread *t;
    varve_root *old = varve_root_begin(g.engine, NULL, &t);
    execution_end(old, t);
    settle(g.session);
    varve_root *r = varve_root_begin(g.engine, NULL, &t);
    ck_assert_uint_eq((uintptr_t)old >> 8 << 24, (uintptr_t)r >> 8 << 24); /* the same slot */
    ck_assert_ptr_ne(old, r);
    varve_root_end(old, VARVE_PANICKED);
    ck_assert_int_eq(vv_slot_phase(only_slot(g.session)), VV_PHASE_OPEN);
    varve_root_end(r, VARVE_CANCELLED);
    varve_root_end(old, VARVE_PANICKED);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    ck_assert(publish(g.session));
    ck_assert_int_eq(status_in(&g.store, 1), VV_EXEC_CANCELLED);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* A spawn that gets no lease, as the count is full or the generation over: the subtree is off, counted, and the host
 * goes on. */
START_TEST(gate_lease_unavailable)
{
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f, 0);
    vv_slot *slot = only_slot(g.session);
    atomic_store(&slot->threads, UINT64_MAX);
    varve_thread *child = varve_thread_spawn(t, 0, 0, NULL, 0);
    ck_assert_ptr_null(child);
    ck_assert_uint_eq(atomic_load(&slot->threads), UINT64_MAX);
    atomic_store(&slot->threads, 2);
    varve_thread_start(child, varve_ticks());
    varve_call_begin(child, f, 0);
    ck_assert_ptr_null(varve_thread_spawn(child, 0, 0, NULL, 0));
    varve_thread_end(child, VARVE_THREAD_COMPLETED);
    ck_assert_uint_eq(status_of(g.session).threads_refused, 1);
    uint32_t generation = vv_slot_generation(slot);
    ck_assert(!vv_slot_acquire(&g.session->registry, slot, generation + 1, 0));
    ck_assert(!vv_slot_acquire(&g.session->registry, slot, generation - 1, 0));
    ck_assert(vv_slot_acquire(&g.session->registry, slot, generation, 0));
    ck_assert(!vv_slot_release(&g.session->registry, slot, 0));
    rig_end(&g);
    ck_assert(!vv_slot_acquire(&g.session->registry, slot, generation, 0)); /* Closing */
    settle(g.session);
    ck_assert(!vv_slot_acquire(&g.session->registry, slot, generation, 0)); /* free */
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(totals(l).started, 1);
    rig_remove(&g);
}
END_TEST

/* A slot's last generation is never followed by another. */
START_TEST(gate_generation_retires)
{
    vv_registry r;
    ck_assert(vv_registry_init(&r, 2, NULL));
    vv_slot *first = vv_slot_reserve(&r), *second;
    for (unsigned round = 0; round < 3; round++) {
        vv_slot *s = round ? vv_slot_reserve(&r) : first;
        ck_assert_ptr_eq(s, first);
        if (round == 0)
            atomic_store(&s->control, (uint64_t)(VV_GENERATION_MAX - 2) << 32);
        uint32_t generation = vv_slot_generation(s);
        ck_assert_uint_eq(generation, VV_GENERATION_MAX - 2 + round);
        vv_slot_admit(&r, s);
        ck_assert_ptr_eq(vv_registry_take(&r, VV_ADMITTED), s);
        bool last;
        ck_assert(vv_slot_return(&r, s, generation, 0, 1, &last));
        ck_assert(!last);
        ck_assert(vv_slot_release(&r, s, 2));
        ck_assert_ptr_eq(vv_registry_take(&r, VV_READY), s);
        vv_slot_free(&r, s);
    }
    ck_assert_int_eq(vv_slot_phase(first), VV_PHASE_RELEASED);
    second = vv_slot_reserve(&r);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_ne(second, first);
    ck_assert_ptr_null(vv_slot_reserve(&r));
    vv_registry_done(&r);
}
END_TEST

/* A child whose spawn record found no room records nothing, and holds its execution open all the same. */
START_TEST(gate_lost_child_holds_execution)
{
    rig g = rig_stepped(store_make(), SMALL, NULL);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f, 0);
    while (!status_of(g.session).records_lost)
        varve_call_begin(t, f, 0);
    uint64_t before = status_of(g.session).records_lost;
    varve_thread *child = varve_thread_spawn(t, 0, 0, NULL, 0);
    ck_assert_ptr_nonnull(child);
    ck_assert(publish(g.session)); /* room again */
    varve_thread_start(child, varve_ticks());
    ck_assert_uint_eq(varve_thread_depth(child), 0);
    varve_call_begin(child, f, 0);
    ck_assert_uint_eq(varve_thread_depth(child), 1);
    varve_thread *grandchild = varve_thread_spawn(child, 0, 0, NULL, 0);
    varve_call_end(child, VARVE_CALL_OK);
    ck_assert_uint_eq(status_of(g.session).records_lost, before + 3);
    rig_end(&g);
    varve_thread_end(child, VARVE_THREAD_COMPLETED);
    ck_assert(publish(g.session));
    ck_assert_int_eq(status_in(&g.store, 0), VV_EXEC_RUNNING);
    varve_thread_end(grandchild, VARVE_THREAD_COMPLETED);
    ck_assert(publish(g.session));
    ck_assert_int_eq(status_in(&g.store, 0), VV_EXEC_SUCCEEDED);
    look *l = rig_close(&g);
    ck_assert_uint_eq(l->execution->health.v[VV_H_structural_transport_exceeded], before + 3);
    ck_assert_uint_eq(l->fold->thread_count, 1);
    rig_remove(&g);
}
END_TEST

enum { WORKERS = 10000 };

/* Ten thousand workers of one spawn site, all alive when their root returns: one execution, one spawned context. */
START_TEST(gate_ten_thousand_workers)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f_main = function(g.engine, "main"), f_work = function(g.engine, "work");
    uint32_t site = varve_site_add(g.engine, varve_file_add(g.engine, "main"), 1, 2, 3);
    varve_thread *t = rig_begin(&g), **w = calloc(WORKERS, sizeof *w);
    varve_call_begin(t, f_main, 0);
    for (unsigned i = 0; i < WORKERS; i++)
        w[i] = varve_thread_spawn(t, 0, site, "worker", 6);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    for (unsigned i = 0; i < WORKERS; i++) {
        varve_thread_start(w[i], varve_ticks());
        varve_call_begin(w[i], f_work, 0);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        varve_thread_end(w[i], VARVE_THREAD_COMPLETED);
    free(w);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->stream->execution_count, 1);
    ck_assert_uint_eq(l->fold->context_count, 2);
    ck_assert_uint_eq(l->fold->thread_count, 1 + WORKERS);
    ck_assert_uint_eq(started(l, "main~work"), WORKERS);
    ck_assert_uint_eq(counters_of(l, "main~work").ok, WORKERS);
    rig_remove(&g);
}
END_TEST

/* The last record of an execution is behind a backlog of many segments, and others go on writing: its end waits for
 * all of it, and not for them. */
START_TEST(gate_terminal_barrier)
{
    rig g = rig_stepped(store_make(), 64 << 20, NULL);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g), *busy;
    varve_root_begin(g.engine, NULL, &busy);
    enum { CALLS = 500000 }; /* 46 segments, more than a pass takes of one ring */
    for (unsigned i = 0; i < CALLS; i++)
        call_once(t, f);
    rig_end(&g);
    unsigned passes = 0;
    for (; vv_slot_phase(&g.session->registry.slots[0]) != VV_PHASE_FREE; passes++) {
        for (unsigned i = 0; i < 30000; i++)
            call_once(busy, f);
        vv_consumer_pass(g.session);
        ck_assert_uint_lt(passes, 100);
    }
    ck_assert(publish(g.session));
    ck_assert_uint_eq(status_of(g.session).records_lost, 0);
    look l = look_at(&g.store);
    assert_whole(&l);
    ck_assert_uint_eq(started(&l, "f"), CALLS);
    look_done(&l);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* Sanitizers make calls of their own; the filter below names calls of this machine only. */
#if defined(__x86_64__) && !TEST_SANITIZED
static volatile sig_atomic_t system_calls;

static void on_system_call(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    (void)context;
    system_calls++;
}

/* From now on each system call of this thread but exit_group and sigreturn is counted, and not made. */
static bool trap_system_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {VV_ARRAY_LEN(code), code};
    struct sigaction sa = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &sa, NULL);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { EXIT_NO_FILTER = 77 };

/* Admissions and ends in a process that can't enter the kernel without being counted. Exits with what was wrong. */
static void admit_trapped(const test_store *s)
{
    varve_session *v = session_at(s, 3600000);
    varve_engine *e = varve_engine_open(v, NULL);
    varve_thread *t;
    unsigned refused = 0;
    if (!trap_system_calls())
        _exit(EXIT_NO_FILTER);
    getppid();
    bool counts = system_calls == 1;
    for (unsigned i = 0; i < 2000; i++)
        refused += !varve_root_begin(e, NULL, &t);
    _exit(!counts ? 1 : refused ? 2 : system_calls > 1 ? 3 : 0);
}

/* Two thousand admissions, the first included, make no system call. */
START_TEST(gate_admission_without_system_call)
{
    test_store s = store_make();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        admit_trapped(&s);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != EXIT_NO_FILTER)
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    store_remove(&s);
}
END_TEST
#define HAVE_TRAP 1
#else
#define HAVE_TRAP 0
#endif

int main(void)
{
    TCase *c = test_case("ownership", 60);
    tcase_add_loop_test(c, gate_root_alone, 0, 2);
    tcase_add_test(c, gate_post_root_grandchild);
    tcase_add_loop_test(c, gate_abandoned_root, 0, 4);
    tcase_add_test(c, gate_stale_root);
    tcase_add_test(c, gate_lease_unavailable);
    tcase_add_test(c, gate_generation_retires);
    tcase_add_test(c, gate_lost_child_holds_execution);
    tcase_add_test(c, gate_ten_thousand_workers);
    tcase_add_test(c, gate_terminal_barrier);
#if HAVE_TRAP
    tcase_add_test(c, gate_admission_without_system_call);
#endif
    return test_run();
}
