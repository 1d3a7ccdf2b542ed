#include "config.h"

#include "runtime/session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/store_path.h"
#include "base/text.h"
#include "runtime/shield.h"

static const uint64_t default_project = 10ULL << 30, default_free = 1ULL << 30;
static const uint64_t flush_limit_ms = 5000, values_limit_ms = 3500, stop_limit_ms = 1000;

/* Sessions that own nothing: what a host gets where there is nothing to own. */
static varve_session off_configured = {.state = VARVE_OFF_CONFIGURED,
                                       .reason = "off by configuration: BAML_PROFILE is set, and neither 1 nor true"};
static varve_session off_memory = {.state = VARVE_OFF_MEMORY, .reason = "memory_bytes is below the minimum of 8921088"};
static varve_session off_no_memory = {.state = VARVE_OFF_MEMORY, .reason = "no memory"};

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static varve_session *sessions;

static void fork_prepare(void)
{
    pthread_mutex_lock(&sessions_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&sessions_lock);
}

/* The child has this thread only. Its rings take nothing from now on, and its descriptors hold no lock of the
 * parent's. */
static void fork_child(void)
{
    for (varve_session *s = sessions; s; s = s->next_session) {
        atomic_store(&s->state, VARVE_OFF_FORKED);
        for (vv_ring *r = atomic_load(&s->rings); r; r = r->next) {
            r->end = r->at;
            r->current = 0;
            vv_ring_cut_off(r);
        }
        vv_wstore_forked(s->store);
    }
    sessions = NULL;
    pthread_mutex_init(&sessions_lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void list_session(varve_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&sessions_lock);
    s->next_session = sessions;
    sessions = s;
    pthread_mutex_unlock(&sessions_lock);
}

static void unlist_session(varve_session *s)
{
    pthread_mutex_lock(&sessions_lock);
    for (varve_session **at = &sessions; *at; at = &(*at)->next_session)
        if (*at == s) {
            *at = s->next_session;
            break;
        }
    pthread_mutex_unlock(&sessions_lock);
}

static bool enabled(void)
{
    const char *v = getenv("BAML_PROFILE");
    if (!v)
        return true;
    while (*v == ' ' || (*v >= '\t' && *v <= '\r'))
        v++;
    size_t n = strlen(v);
    while (n && (v[n - 1] == ' ' || (v[n - 1] >= '\t' && v[n - 1] <= '\r')))
        n--;
    return (n == 1 && *v == '1') || (n == 4 && strncasecmp(v, "true", 4) == 0);
}

/* Milliseconds; what does not parse is the default. */
static uint64_t publish_interval_ms(const varve_options *o)
{
    const char *v = getenv("BAML_PROFILE_PUBLISH_INTERVAL_MS");
    if (!v)
        return o->publish_interval_ms ? *o->publish_interval_ms : 1000;
    uint64_t ms = 0;
    for (const char *p = v; *p; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(ms, 10, &ms) ||
            __builtin_add_overflow(ms, (uint64_t)(*p - '0'), &ms))
            return 1000;
    return *v ? ms : 1000;
}

/* An absolute path without a trailing slash, for whatever the working directory becomes later. */
static char *store_root(const varve_options *o, vv_error *err)
{
    char path[PATH_MAX];
    vv_store_origin origin;
    const char *env = getenv("BAML_PROFILE_DIR");
    bool given = (!env || !*env) && o->store_root && *o->store_root;
    if (given && (size_t)snprintf(path, sizeof path, "%s", o->store_root) >= sizeof path) {
        vv_fail(err, VV_ERR_LIMIT, "the store's path is longer than %zu bytes", sizeof path - 1);
        return NULL;
    }
    if (!given && vv_store_path(path, sizeof path, &origin, err) != VV_OK)
        return NULL;
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0;
    char *absolute = NULL;
    if (path[0] == '/') {
        absolute = strdup(path);
    } else {
        char cwd[PATH_MAX];
        const char *rest = strncmp(path, "./", 2) == 0 ? path + 2 : path;
        if (!getcwd(cwd, sizeof cwd) || asprintf(&absolute, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, rest) < 0)
            absolute = NULL;
    }
    if (!absolute)
        vv_fail(err, VV_ERR_NOMEM, "the working directory has no name");
    return absolute;
}

static varve_session *off_store(varve_session *s, const vv_error *err)
{
    if (!s)
        return &off_no_memory;
    snprintf(s->reason, sizeof s->reason, "the store could not be opened: %s", err->msg);
    atomic_store(&s->state, VARVE_OFF_STORE);
    return s;
}

static bool reserve_fixed(varve_session *s, vv_pool pool, vv_owner owner, uint64_t n, uint64_t *ret)
{
    bool ok = vv_reserve(&s->governor, pool, owner, n);
    *ret = ok ? n : 0;
    return ok;
}

/* All memory that stays for the session's life. */
static bool make_fixed(varve_session *s)
{
    const vv_sizing *z = &s->sizing;
    return reserve_fixed(s, VV_POOL_CONTROL, VV_OWN_POPULATION, z->slots * VV_SLOT_CHARGE, &s->fixed_control) &&
           reserve_fixed(s, VV_POOL_GENERAL, VV_OWN_WRITER, (2 * z->slots + 64) * VV_META_CHARGE, &s->fixed_general) &&
           vv_registry_init(&s->registry, (uint32_t)z->slots, s) && vv_handles_init(s, (uint32_t)z->slots);
}

static void decoder_init(varve_session *s);

/* A reservation was denied, on any thread: the consumer makes room, and so do segments that rings only keep. */
static void shed(void *ctx)
{
    varve_session *s = ctx;
    vv_wake_up(&s->wake);
    for (vv_ring *r = atomic_load_explicit(&s->rings, memory_order_acquire); r; r = r->next)
        vv_ring_shed(r, &s->governor);
}

/* Where so few files may be open, those of the store would be missing to the program. */
static bool has_descriptors(vv_error *err)
{
    enum { LEAST = 16 };
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= LEAST)
        return true;
    vv_fail(err, VV_ERR_LIMIT, "%llu files may be open, recording needs %d", (unsigned long long)r.rlim_cur, LEAST);
    return false;
}

static uint64_t default_memory(void)
{
    struct rlimit r;
    bool limited = getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY;
    return vv_sizing_total(limited ? r.rlim_cur : UINT64_MAX);
}

/* The store, and the clock's zero. The consumer measures the clock. */
static bool open_store(varve_session *s, const varve_options *o, const vv_session_test *test, vv_error *err)
{
    vv_wstore_options so = {.root = s->root,
                           .max_project_bytes = o->max_project_bytes ? o->max_project_bytes : default_project,
                           .minimum_free_bytes = o->minimum_free_bytes ? o->minimum_free_bytes : default_free,
                           .hooks = test ? test->hooks : (vv_wstore_hooks){.ctx = NULL},
                           .governor = &s->governor};
    if (test && test->euid)
        memcpy(so.euid.b, test->euid, sizeof so.euid.b);
    else
        vv_uuid7_new(so.euid.b);
    s->decoder.euid = so.euid;
    vv_clock_select();
    vv_clock_start(&s->clock);
    vv_shield shield;
    vv_shield_raise(&shield);
    vv_code rc = vv_wstore_open(&s->store, &so, err);
    vv_shield_lower(&shield);
    if (rc != VV_OK)
        return false;
    if (test && test->no_consumer)
        vv_clock_calibrate(&s->clock);
    return true;
}

static void free_session(varve_session *s)
{
    vv_wstore_close(s->store);
    if (s->handles.roots)
        vv_handles_done(s);
    vv_registry_done(&s->registry);
    vv_release(&s->governor, VV_POOL_CONTROL, VV_OWN_POPULATION, s->fixed_control);
    vv_release(&s->governor, VV_POOL_GENERAL, VV_OWN_WRITER, s->fixed_general);
    vv_governor_done(&s->governor);
    free(s->root);
    free(s);
}

varve_session *vv_session_open(const varve_options *options, const vv_session_test *test)
{
    varve_options o = {.struct_size = sizeof o};
    if (options && options->struct_size)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    if (!enabled())
        return &off_configured;
    vv_sizing sizing;
    if (!vv_sizing_derive(o.memory_bytes ? o.memory_bytes : default_memory(), &sizing))
        return &off_memory;
    varve_session *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (!s)
        return &off_no_memory;
    memset(s, 0, sizeof *s);
    s->sizing = sizing;
    const uint64_t limits[VV_POOLS] = {sizing.control, sizing.manual, sizing.general};
    vv_governor_init(&s->governor, limits);
    s->governor.values_limit = sizing.general / 4;
    if (test)
        s->governor.test = test->governor;
    vv_error err = {.code = VV_OK};
    if (!make_fixed(s)) {
        free_session(s);
        return &off_no_memory;
    }
    snprintf(s->version, sizeof s->version, "%s",
             o.host_version && *o.host_version ? o.host_version : "varve " PACKAGE_VERSION);
    vv_utf8_mend(s->version, strlen(s->version));
    s->root = store_root(&o, &err);
    if (!has_descriptors(&err) || !s->root || !open_store(s, &o, test, &err))
        return off_store(s, &err);
    uint64_t ms = publish_interval_ms(&o);
    s->publish_interval_ns = ms > UINT64_MAX / 4000000 ? UINT64_MAX / 4 : ms * 1000000;
    pthread_mutex_init(&s->lock, NULL);
    vv_wake_init(&s->wake);
    vv_governor_on_denial(&s->governor, shed, s);
    uint8_t seed[16];
    vv_uuid4_new(seed);
    memcpy(s->runtime_seed, seed, sizeof seed);
    decoder_init(s);
    bool ok = vv_writer_init(&s->writer, s->store, &s->decoder, &s->engines, s->version,
                             (size_t)sizing.segment_target, (size_t)sizing.single_value);
    vv_consumer_init(s);
    vv_checkpoint_init(s);
    if (!ok || (!(test && test->no_consumer) && !vv_consumer_start(s))) {
        vv_fail(&err, VV_ERR_NOMEM, ok ? "no thread for the consumer" : "no memory for the writer");
        if (ok)
            vv_writer_done(&s->writer);
        vv_wstore_close(s->store);
        s->store = NULL;
        return off_store(s, &err);
    }
    list_session(s);
    return s;
}

varve_session *varve_session_open(const varve_options *options)
{
    return vv_session_open(options, NULL);
}

/* Memory was denied, or a tree is due for its rollover: publish, then drop what no open call needs. */
static void relieve(void *ctx, vv_exec *x)
{
    varve_session *s = ctx;
    vv_writer_cycle(&s->writer);
    vv_checkpoint_take(s, true);
    s->consumer.next_publish_ns = vv_clock_monotonic_ns() + s->publish_interval_ns;
    if (x && !x->in_flight && x->cct.count)
        vv_decoder_rollover(&s->decoder, x);
}

static void decoder_init(varve_session *s)
{
    vv_decoder *d = &s->decoder;
    d->governor = &s->governor;
    d->clock = &s->clock;
    d->registry = &s->registry;
    d->rings = &s->rings;
    vv_objects_init(&d->objects, &s->governor);
    d->store = s->store;
    d->epoch_nodes = (uint32_t)(s->sizing.epoch_target / VV_ITEM_CHARGE);
    d->fact_limit = d->facts_due = s->sizing.segment_target / VV_FACT_CHARGE;
    d->relieve = relieve;
    d->ctx = s;
    d->admitted_end = &d->admitted;
}

void varve_session_status(const varve_session *session, varve_status *ret_status)
{
    const varve_session *s = session ? session : &off_no_memory;
    *ret_status = (varve_status){.state = (varve_state)atomic_load(&s->state), .store_root = s->root ? s->root : "",
                                 .reason = s->reason};
    if (ret_status->state == VARVE_OFF_FORKED)
        ret_status->reason = "this process is a fork of the one that opened the session";
    if (ret_status->state != VARVE_ACTIVE)
        return;
    static const char *const latches[] = {
        [VV_LATCH_OPEN] = "",
        [VV_LATCH_DISK] = "the disk limit was met: nothing more is recorded",
        [VV_LATCH_UNAVAILABLE] = "the store failed: nothing more is recorded",
        [VV_LATCH_PERMISSION] = "the store may not be written: nothing more is recorded",
        [VV_LATCH_CONFLICT] = "the store holds a foreign file: nothing more is recorded",
    };
    memcpy(ret_status->stream_id, s->decoder.euid.b, sizeof ret_status->stream_id);
    ret_status->roots_begun = atomic_load(&s->roots_begun);
    ret_status->records_lost = atomic_load(&s->records_lost) + atomic_load(&s->decoder.stray_records);
    ret_status->awaits_lost = atomic_load(&s->awaits_lost);
    ret_status->roots_refused = atomic_load(&s->roots_refused) + atomic_load(&s->decoder.admissions_lost);
    ret_status->tables_lost = atomic_load(&s->writer.tables_lost);
    ret_status->lock_timeouts = vv_wstore_lock_timeouts(s->store);
    ret_status->batches_lost = atomic_load(&s->writer.batches_lost);
    ret_status->roots_abandoned = atomic_load(&s->roots_abandoned);
    ret_status->threads_refused = atomic_load(&s->leases_refused);
    ret_status->root_ends_lost = atomic_load(&s->writer.root_ends_lost);
    ret_status->reason = latches[vv_wstore_latch(s->store)];
    if (!*ret_status->reason && (ret_status->batches_lost || ret_status->root_ends_lost))
        ret_status->reason = "some of the recording could not be written";
    else if (!*ret_status->reason && vv_wstore_is_indeterminate(s->store))
        ret_status->reason = "a commit could not be confirmed: what was recorded since then may be missing";
    else if (!*ret_status->reason && s->unflushed)
        ret_status->reason = s->unflushed;
    else if (!*ret_status->reason && (ret_status->records_lost || ret_status->roots_refused))
        ret_status->reason = "some calls or executions found no memory and were not recorded";
    else if (!*ret_status->reason && atomic_load(&s->decoder.facts_lost))
        ret_status->reason = "calls are counted, but some spans, values or threads found no memory and are missing";
}

bool varve_flush(varve_session *session, uint64_t timeout_ms)
{
    return session && vv_session_active(session) && vv_consumer_flush(session, timeout_ms);
}

static void print_status(const varve_session *s)
{
    const char *v = getenv("VARVE_STATUS");
    if (!v || strcmp(v, "1") != 0)
        return;
    varve_status st;
    varve_session_status(s, &st);
    char line[PATH_MAX + 512], hex[33];
    vv_hex(hex, st.stream_id, sizeof st.stream_id);
    int n = st.state == VARVE_ACTIVE
                ? snprintf(line, sizeof line, "varve: recorded %llu execution%s to %s, stream %s%s%s\n",
                           (unsigned long long)st.roots_begun, st.roots_begun == 1 ? "" : "s", st.store_root, hex,
                           *st.reason ? ": " : "", st.reason)
                : snprintf(line, sizeof line, "varve: off: %s\n", st.reason);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    vv_shield shield;
    vv_shield_raise(&shield);
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written;
    vv_shield_lower(&shield);
}

static void free_active(varve_session *s)
{
    vv_governor *g = &s->governor;
    vv_writer_abandon(&s->writer);
    while (s->decoder.execs)
        vv_decoder_drop(&s->decoder, s->decoder.execs);
    for (vv_ring *r = atomic_load(&s->rings), *next; r; r = next) {
        next = r->next;
        vv_decoder_discard(r, g);
        vv_ring_detach(r);
    }
    for (varve_engine *e = atomic_load(&s->engines), *next; e; e = next) {
        next = atomic_load(&e->next);
        vv_lthread_map_done(e, g);
        vv_engine_free(e, g);
    }
    vv_objects_done(&s->decoder.objects);
    vv_writer_done(&s->writer);
    vv_consumer_done(s);
    vv_checkpoint_done(s);
    vv_wake_done(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free_session(s);
}

void varve_session_close(varve_session *session)
{
    varve_session *s = session;
    if (!s || atomic_load(&s->state) == VARVE_OFF_FORKED)
        return;
    if (!vv_session_active(s)) {
        print_status(s);
        if (atomic_load(&s->state) == VARVE_OFF_STORE)
            free_session(s);
        return;
    }
    vv_handles_settle(s);
    for (uint32_t i = 0; i < s->registry.count; i++)
        if (vv_slot_drop(&s->registry, &s->registry.slots[i], VARVE_ABANDONED, vv_ticks()))
            vv_root_abandoned(s);
    uint64_t now = vv_clock_monotonic_ns(), deadline = now + (flush_limit_ms + stop_limit_ms) * 1000000;
    /* A value is a file, synced: many of them must not cost the counts and the ends their place. */
    atomic_store(&s->decoder.objects.until_ns, now + values_limit_ms * 1000000);
    uint64_t timeouts = vv_wstore_lock_timeouts(s->store);
    if (!vv_consumer_flush(s, flush_limit_ms))
        s->unflushed = vv_wstore_lock_timeouts(s->store) > timeouts
                           ? "another process held the store's lock: the last of the recording is missing"
                           : "the store took too long: the last of the recording is missing";
    bool stopped = vv_consumer_stop(s, deadline);
    print_status(s);
    unlist_session(s);
    /* A consumer that hangs in the file system keeps what it uses. */
    if (stopped)
        free_active(s);
}

varve_engine *varve_engine_open(varve_session *session, const varve_engine_info *info)
{
    varve_session *s = session;
    if (!s || !vv_session_active(s))
        return NULL;
    pthread_mutex_lock(&s->lock);
    varve_engine *e = vv_engine_new(s, &s->governor, s->engine_count + 1, info);
    if (e) {
        s->engine_count++;
        if (s->last_engine)
            atomic_store_explicit(&s->last_engine->next, e, memory_order_release);
        else
            atomic_store_explicit(&s->engines, e, memory_order_release);
        s->last_engine = e;
    }
    pthread_mutex_unlock(&s->lock);
    return e;
}

/* The guard of a root that nobody ended: the first of its generation to see it open and of this engine. */
static void abandon(varve_session *s, vv_slot *slot, const varve_engine *e)
{
    uint32_t generation = vv_slot_generation(slot);
    bool last;
    if (vv_slot_phase(slot) == VV_PHASE_OPEN && atomic_load_explicit(&slot->engine, memory_order_relaxed) == e &&
        vv_slot_return(&s->registry, slot, generation, VARVE_ABANDONED, vv_ticks(), &last))
        vv_root_abandoned(s);
}

void varve_engine_close(varve_engine *engine)
{
    if (!engine || !vv_session_active(engine->session))
        return;
    varve_session *s = engine->session;
    for (uint32_t i = 0; i < s->registry.count; i++)
        abandon(s, &s->registry.slots[i], engine);
    /* What it named stays for the executions that outlive it; then the consumer frees it. */
    atomic_fetch_add(&s->engines_closed, 1);
    atomic_store(&engine->closed, true);
    vv_wake_up(&s->wake);
}

uint32_t varve_function_add(varve_engine *engine, const varve_function_info *info)
{
    bool on = engine && info && info->fqn && vv_session_active(engine->session);
    return on ? vv_engine_add_function(engine, info) : 0;
}

uint32_t varve_file_add(varve_engine *engine, const char *path)
{
    return engine && path && vv_session_active(engine->session) ? vv_engine_add_file(engine, path) : 0;
}

uint32_t varve_site_add(varve_engine *engine, uint32_t file, uint32_t start, uint32_t end, uint32_t line)
{
    vv_site site = {.file = file, .start = start, .end = end, .line = line};
    return engine && vv_session_active(engine->session) ? vv_engine_add_site(engine, &site) : 0;
}
