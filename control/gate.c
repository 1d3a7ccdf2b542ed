#include "config.h"

#include "control/gate.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/gate_inside.h"

/* A record that died with pins is not handed on while its thread may still be there: another destructor of that thread
 * might let go of them. */
typedef enum { RECORD_FREE, RECORD_LIVE, RECORD_DEAD } record_state;

enum { RECORDS_A_BLOCK = 64, RECORDS_MAX = 1 << 20 };

_Static_assert(sizeof(vv_gate_record) == 256, "whole lines, and blocks of whole pages");

/* Pins of threads without a record, a line each. */
typedef struct {
    _Alignas(64) _Atomic uint32_t pins;
} shared_slot;

__thread vv_gate_record *vv_gate_self __attribute__((tls_model("initial-exec")));
_Atomic bool vv_gate_fenced = true;

/* This thread's part of the shared counters: what a forked child keeps of them. Counted before the shared one and after
 * it, so that a fork in between leaves too much rather than too little. */
static __thread uint16_t shared_mine[VV_GATE_SLOTS] __attribute__((tls_model("initial-exec")));
static __thread bool ending __attribute__((tls_model("initial-exec")));

static shared_slot shared[VV_GATE_SLOTS];
static _Atomic bool forked;
/* A flush has failed once: who looks from now on flushes for itself, and knows nothing where that fails. */
static _Atomic bool in_doubt;
static _Atomic(vv_gate_violation) on_violation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vv_gate_record *all_records, *free_records;
static unsigned made, most = RECORDS_MAX;

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* False: this process can't tell when a thread ends or forks, and no thread gets a record. */
static bool can_register;
static pthread_key_t exit_key;

static int call_membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

static int (*membarrier)(int command) = call_membarrier;

static bool membarrier_register(void)
{
    int has = membarrier(MEMBARRIER_CMD_QUERY);
    return has >= 0 && (has & MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
        membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static bool choose(bool want_fenced)
{
    bool fenced = VV_GATE_ALWAYS_FENCED || want_fenced || !membarrier_register();
    atomic_store(&vv_gate_fenced, fenced);
    return fenced == want_fenced;
}

static void clear_pins(vv_gate_record *r)
{
    for (unsigned i = 0; i < VV_GATE_SLOTS; i++)
        atomic_store_explicit(&r->pins[i], 0, memory_order_relaxed);
}

static void put_free(vv_gate_record *r)
{
    r->state = RECORD_FREE;
    r->tid = 0;
    r->next_free = free_records;
    free_records = r;
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child has this thread only: it keeps its own pins, since it may be inside a callback, and nobody else's. */
static void fork_child(void)
{
    vv_gate_record *self = vv_gate_self;
    free_records = NULL;
    for (vv_gate_record *r = all_records; r; r = r->next_made)
        if (r != self) {
            clear_pins(r);
            put_free(r);
        }
    if (self)
        self->tid = gettid();
    for (unsigned i = 0; i < VV_GATE_SLOTS; i++)
        atomic_store(&shared[i].pins, shared_mine[i]);
    if (!atomic_load(&vv_gate_fenced))
        choose(false);
    atomic_store(&forked, true);
    pthread_mutex_init(&lock, NULL);
}

/* The end of a thread that has a record. */
static void let_go(void *record)
{
    vv_gate_record *r = record;
    uint32_t held[VV_GATE_SLOTS];
    ending = true;
    vv_gate_self = NULL;
    atomic_signal_fence(memory_order_seq_cst); /* a handler from here on pins elsewhere */
    pthread_mutex_lock(&lock);
    pid_t tid = r->tid;
    bool clean = true;
    for (unsigned i = 0; i < VV_GATE_SLOTS; i++) {
        held[i] = atomic_load_explicit(&r->pins[i], memory_order_relaxed);
        clean = clean && !held[i];
    }
    if (clean) {
        put_free(r);
    } else {
        r->state = RECORD_DEAD;
        clear_pins(r);
    }
    pthread_mutex_unlock(&lock);
    vv_gate_violation fn = atomic_load(&on_violation);
    for (unsigned i = 0; i < VV_GATE_SLOTS && fn && !clean; i++)
        if (held[i])
            fn(tid, i, held[i]);
}

static void init(void)
{
    const char *variant = secure_getenv("VARVE_GATE");
    choose(variant && strcmp(variant, "fenced") == 0);
    can_register = pthread_key_create(&exit_key, let_go) == 0 &&
        pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

void vv_gate_init(void)
{
    pthread_once(&once, init);
}

static void make_block(void)
{
    if (made >= most)
        return;
    unsigned n = most - made < RECORDS_A_BLOCK ? most - made : RECORDS_A_BLOCK;
    vv_gate_record *block = mmap(NULL, n * sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return;
    for (unsigned i = n; i-- > 0;) {
        block[i].next_made = all_records;
        all_records = &block[i];
        put_free(&block[i]);
    }
    made += n;
}

/* Records whose threads have really gone are free again. */
static void reclaim(void)
{
    for (vv_gate_record *r = all_records; r; r = r->next_made)
        if (r->state == RECORD_DEAD && syscall(SYS_tgkill, getpid(), r->tid, 0) != 0) {
            clear_pins(r);
            put_free(r);
        }
}

static void take_record(void)
{
    if (!free_records)
        reclaim();
    if (!free_records)
        make_block();
    vv_gate_record *r = free_records;
    if (!r || pthread_setspecific(exit_key, r) != 0)
        return;
    free_records = r->next_free;
    r->state = RECORD_LIVE;
    r->tid = gettid();
    vv_gate_self = r;
}

bool vv_gate_register(void)
{
    if (vv_gate_self || ending)
        return vv_gate_self;
    vv_gate_init();
    if (!can_register)
        return false;
    pthread_mutex_lock(&lock);
    if (!vv_gate_self)
        take_record();
    pthread_mutex_unlock(&lock);
    return vv_gate_self;
}

vv_gate_pin vv_gate_enter_shared(unsigned slot)
{
    shared_mine[slot]++;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_fetch_add(&shared[slot].pins, 1);
    vv_gate_fence();
    return (vv_gate_pin){NULL};
}

vv_gate_pin vv_gate_enter_first(unsigned slot)
{
    return vv_gate_register() ? vv_gate_pin_record(vv_gate_self, slot) : vv_gate_enter_shared(slot);
}

void vv_gate_leave_shared(unsigned slot)
{
    atomic_fetch_sub(&shared[slot].pins, 1);
    atomic_signal_fence(memory_order_seq_cst);
    shared_mine[slot]--;
}

uint32_t vv_gate_held(unsigned slot)
{
    vv_gate_record *r = vv_gate_self;
    return shared_mine[slot] + (r ? atomic_load_explicit(&r->pins[slot], memory_order_relaxed) : 0);
}

static bool flush(void)
{
    vv_gate_fence();
    return atomic_load(&vv_gate_fenced) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 ||
        (membarrier_register() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
}

void vv_gate_flush(void)
{
    vv_gate_init();
    if (!flush())
        atomic_store(&in_doubt, true);
}

bool vv_gate_is_evacuated(unsigned slot, pid_t *ret_tid)
{
    pid_t tid = 0;
    bool inside = (atomic_load(&in_doubt) && !flush()) || atomic_load(&shared[slot].pins);
    pthread_mutex_lock(&lock);
    for (vv_gate_record *r = all_records; r && !tid; r = r->next_made)
        if (r->state == RECORD_LIVE && atomic_load_explicit(&r->pins[slot], memory_order_acquire))
            tid = r->tid;
    pthread_mutex_unlock(&lock);
    if (ret_tid && (inside || tid))
        *ret_tid = tid;
    return !inside && !tid;
}

bool vv_gate_is_forked(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

void vv_gate_on_violation(vv_gate_violation fn)
{
    atomic_store(&on_violation, fn);
}

void vv_gate_inside_membarrier(int (*fn)(int command))
{
    membarrier = fn;
}

bool vv_gate_inside_choose(bool fenced)
{
    vv_gate_init();
    return choose(fenced);
}

void vv_gate_inside_limit(unsigned records)
{
    pthread_mutex_lock(&lock);
    most = records;
    pthread_mutex_unlock(&lock);
}

void vv_gate_inside_records(unsigned *ret_made, unsigned *ret_live)
{
    unsigned live = 0;
    pthread_mutex_lock(&lock);
    for (vv_gate_record *r = all_records; r; r = r->next_made)
        live += r->state == RECORD_LIVE;
    *ret_made = made;
    pthread_mutex_unlock(&lock);
    *ret_live = live;
}
