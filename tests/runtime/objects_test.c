/* Values that wait for their publication, and the batches in which they go. */
#include "config.h"

#include "runtime/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "format/cas.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

/* The link puts these before the system's. */
ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);

static uint64_t bytes_read;

ssize_t __wrap_read(int fd, void *p, size_t n)
{
    ssize_t k = __real_read(fd, p, n);
    bytes_read += k > 0 ? (uint64_t)k : 0;
    return k;
}

static test_store store;
static vv_governor governor;
static vv_objects objects;
static vv_wstore *writer;
static bad_disk disk;
static unsigned seen[VV_STEPS];
static void (*act)(vv_step at);
static unsigned deny_at;
static vv_owner deny_owner;

static int at_step(void *ctx, vv_step at)
{
    seen[at]++;
    if (act)
        act(at);
    return bad_disk_step(ctx, at);
}

static bool denied(void *ctx, vv_owner owner)
{
    unsigned *times = ctx;
    return owner == deny_owner && *times && (*times)-- == 1;
}

static void open_as(uint8_t id, uint64_t max_bytes)
{
    vv_wstore_options o = {.root = store.root, .max_project_bytes = max_bytes, .minimum_free_bytes = 1,
                           .hooks = {.step = at_step, .ctx = &disk}, .governor = &governor};
    memset(o.euid.b, id, sizeof o.euid.b);
    ck_assert_int_eq(vv_wstore_open(&writer, &o, NULL), VV_OK);
}

enum { OURS = 7, NO_LIMIT = 1 << 30 };

static void reopen(uint64_t max_bytes)
{
    vv_wstore_close(writer);
    open_as(OURS, max_bytes);
}

static void setup(void)
{
    static const uint64_t limits[VV_POOLS] = {1 << 20, 1 << 20, 64 << 20};
    vv_governor_init(&governor, limits);
    governor.test = (vv_governor_test){.denies = denied, .ctx = &deny_at};
    deny_owner = VV_OWN_VALUES;
    vv_objects_init(&objects, &governor);
    store = store_make_quick();
    open_as(OURS, NO_LIMIT);
}

static void teardown(void)
{
    vv_wstore_close(writer);
    vv_objects_done(&objects);
    for (unsigned p = 0; p < VV_POOLS; p++)
        ck_assert_uint_eq(atomic_load(&governor.pools[p].used), 0);
    store_remove(&store);
}

/* n bytes that are those of no other tag. */
static vv_body body_of(uint64_t tag, size_t n, vv_pool pool)
{
    vv_body b = {.bytes = vv_gov_alloc(&governor, pool, VV_OWN_VALUES, n), .len = n, .cap = n, .pool = pool};
    ck_assert_ptr_nonnull(b.bytes);
    for (size_t i = 0; i < n; i++)
        b.bytes[i] = (uint8_t)(tag >> i % 8 * 8 ^ i * 31);
    return b;
}

static vv_cid put(uint64_t tag, size_t n)
{
    vv_body b = body_of(tag, n, VV_POOL_GENERAL);
    vv_cid cid;
    ck_assert(vv_objects_put(&objects, &b, &cid));
    ck_assert_ptr_null(b.bytes);
    return cid;
}

static void path_of_object(char path[256], const vv_cid *cid)
{
    char name[VV_CAS_PATH];
    vv_cas_path(name, cid);
    snprintf(path, 256, "%s/%s", store.root, name);
}

/* The inode of the object, if it is there, is whole and has that name; else 0. */
static ino_t is_good(const vv_cid *cid)
{
    char path[256];
    path_of_object(path, cid);
    vv_blob b = {0};
    vv_cas_object o;
    struct stat st = {0};
    bool good = vv_file_read(AT_FDCWD, path, NO_LIMIT, &b, NULL) == VV_OK &&
                vv_cas_decode(&o, b.p, b.n, cid, NULL) == VV_OK && o.codec == VV_CODEC_VALUE && stat(path, &st) == 0;
    vv_blob_done(&b);
    return good ? st.st_ino : 0;
}

typedef struct {
    unsigned count, codes[11];
    vv_cid last;
} losses;

static void note_loss(void *ctx, const vv_cid *cid, unsigned code)
{
    losses *l = ctx;
    ck_assert_uint_lt(code, VV_ARRAY_LEN(l->codes));
    l->count++;
    l->codes[code]++;
    l->last = *cid;
}

static losses lost;

static bool publish_all(void)
{
    lost = (losses){0};
    return vv_objects_publish(&objects, writer, note_loss, &lost);
}

/* Equal bodies wait once, in either pool; each is charged as long as it is there. */
START_TEST(equal_bodies_wait_once)
{
    vv_cid first = put(1, 1000), other = put(2, 1000), again = put(1, 1000);
    ck_assert_mem_eq(&first, &again, sizeof first);
    ck_assert_mem_ne(&first, &other, sizeof first);
    vv_body manual = body_of(1, 1000, VV_POOL_MANUAL);
    ck_assert(vv_objects_put(&objects, &manual, &again));
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_MANUAL].used), 0);
    ck_assert_uint_eq(objects.count, 2);
    ck_assert_uint_eq(vv_objects_bytes(&objects), 2000);
    uint64_t charge = vv_alloc_charge(VV_OWN_VALUES, 1000) + 512;
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used), 2 * charge);
    ck_assert(publish_all());
    ck_assert_uint_eq(lost.count, 0);
    ck_assert(is_good(&first) && is_good(&other));
    ck_assert_uint_eq(vv_objects_bytes(&objects), 0);
    assert_ledger(store.root);
    put(1, 1000);
    ck_assert(publish_all());
    ck_assert_uint_eq(lost.count, 0);
    assert_ledger(store.root);
}
END_TEST

/* Without memory for the entry the body is freed; without memory for a larger index nothing is lost. */
START_TEST(denied_entry)
{
    vv_body b = body_of(1, 10, VV_POOL_GENERAL);
    vv_cid cid, want;
    vv_cid_of(&want, VV_CODEC_VALUE, b.bytes, b.len);
    deny_at = 1;
    ck_assert(!vv_objects_put(&objects, &b, &cid));
    ck_assert_mem_eq(&cid, &want, sizeof cid);
    ck_assert_ptr_null(b.bytes);
    ck_assert_uint_eq(objects.count, 0);
    for (unsigned i = 0; i < VV_OBJECTS_FEW; i++)
        put(i, 10);
    b = body_of(1000, 10, VV_POOL_GENERAL);
    deny_at = 2;
    ck_assert(vv_objects_put(&objects, &b, &cid));
    ck_assert_uint_eq(deny_at, 0);
    ck_assert_uint_eq(objects.slot_count, VV_OBJECTS_FEW);
    for (unsigned i = 0; i < 3 * VV_OBJECTS_FEW; i++)
        put(i, 10);
    ck_assert_uint_eq(objects.count, 3 * VV_OBJECTS_FEW + 1);
    ck_assert_uint_eq(objects.slot_count, 4 * VV_OBJECTS_FEW);
}
END_TEST

enum { BATCH = 6, SIZE = 1000, FILE_SIZE = SIZE + VV_CAS_FIXED };

static vv_cid cids[1000];

static void put_batch(uint64_t from, unsigned n, size_t size)
{
    for (unsigned i = 0; i < n; i++)
        cids[i] = put(from + i, size);
}

static unsigned good_ones(unsigned n)
{
    unsigned good = 0;
    for (unsigned i = 0; i < n; i++)
        good += is_good(&cids[i]) != 0;
    return good;
}

/* Of a batch of six, at the third where the step is one of each object's: before the rename a failure loses it, and the
 * others go on, unless it closes the latch. */
static const struct {
    vv_step at;
    int os;
    unsigned after, lost, code;
    vv_latch latch;
} before[] = {
    {VV_STEP_LOCK, EIO, 0, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_LEDGER_READ, EIO, 0, BATCH, 10, VV_LATCH_UNAVAILABLE},
    {VV_STEP_DIRECTORY, EACCES, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_DIRECTORY, EIO, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_CREATE, EROFS, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_CREATE, ENOSPC, 2, BATCH - 2, 8, VV_LATCH_DISK},
    {VV_STEP_WRITE, EIO, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_WRITE, EDQUOT, 2, BATCH - 2, 8, VV_LATCH_DISK},
    {VV_STEP_FSYNC_FILE, EIO, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_FSYNC_FILE, ENOSPC, 2, BATCH - 2, 8, VV_LATCH_DISK},
    {VV_STEP_RENAME, EIO, 2, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_RENAME, EIO, BATCH - 1, 1, 6, VV_LATCH_OPEN},
    {VV_STEP_RENAME, ENOSPC, 2, BATCH - 2, 8, VV_LATCH_DISK},
};

START_TEST(gate_batch_fails_before_a_rename)
{
    disk = (bad_disk){before[_i].at, before[_i].os, before[_i].after, 1};
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    ck_assert_uint_eq(lost.count, before[_i].lost);
    ck_assert_uint_eq(lost.codes[before[_i].code], before[_i].lost);
    ck_assert_uint_eq(good_ones(BATCH), BATCH - before[_i].lost);
    ck_assert_uint_eq(is_good(&lost.last), 0);
    ck_assert_int_eq(vv_wstore_latch(writer), before[_i].latch);
    ck_assert_uint_eq(objects.count, 0);
    assert_ledger(store.root);
    /* Once more: what is there is found, also by a store that takes nothing. */
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    bool open = before[_i].latch == VV_LATCH_OPEN;
    ck_assert_uint_eq(lost.count, open ? 0 : before[_i].lost);
    ck_assert_uint_eq(lost.codes[before[_i].code], lost.count);
    reopen(NO_LIMIT);
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    ck_assert_uint_eq(good_ones(BATCH), BATCH);
    assert_ledger(store.root);
}
END_TEST

/* After a rename the failure is indeterminate: that object waits, with those behind it, everything is blocked, and once
 * it is resolved it is found to be there. */
static const vv_step after[] = {VV_STEP_FSYNC_DIRECTORY, VV_STEP_LEDGER_WRITE, VV_STEP_LEDGER_FSYNC,
                                VV_STEP_LEDGER_RENAME, VV_STEP_FSYNC_ROOT};

/* publish.lock, as another process would have it open. */
static int open_lock(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/publish.lock", store.root);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static vv_outcome publish_segment(void)
{
    vv_wr w = vv_wr_growing(1000);
    vv_euid e;
    memset(e.b, OURS, sizeof e.b);
    vv_data_begin(&w, &e, vv_wstore_next(writer, VV_PLANE_DATA));
    vv_data_end(&w, 0);
    vv_published p = vv_wstore_publish(writer, VV_PLANE_DATA, w.buf, w.len, false);
    vv_wr_done(&w);
    return p.outcome;
}

START_TEST(gate_batch_fails_after_a_rename)
{
    bool directory = after[_i] == VV_STEP_FSYNC_DIRECTORY;
    disk = (bad_disk){after[_i], EIO, directory ? 2 : 0, 2};
    put_batch(1, BATCH, SIZE);
    ck_assert(!publish_all());
    unsigned there = good_ones(BATCH);
    ck_assert_uint_ge(there, directory ? 3 : 1);
    ck_assert(!directory || there == 3);
    ck_assert_uint_eq(objects.count, 1 + BATCH - there);
    ino_t inodes[BATCH];
    for (unsigned i = 0; i < BATCH; i++)
        inodes[i] = is_good(&cids[i]);
    ck_assert_int_eq(publish_segment(), VV_BLOCKED);
    ck_assert(!publish_all());
    ck_assert_uint_eq(good_ones(BATCH), there);
    int fd = open_lock();
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), -1);
    close(fd);
    bool settled;
    int plane;
    uint64_t sequence;
    ck_assert(!vv_wstore_resolve(writer, &settled, &plane, &sequence));
    ck_assert(vv_wstore_resolve(writer, &settled, &plane, &sequence));
    ck_assert(settled && plane == -1);
    assert_ledger(store.root);
    ck_assert(publish_all());
    ck_assert_uint_eq(lost.count, 0);
    for (unsigned i = 0; i < BATCH; i++)
        ck_assert(inodes[i] ? is_good(&cids[i]) == inodes[i] : is_good(&cids[i]) != 0);
    ck_assert_int_eq(publish_segment(), VV_COMMITTED);
    assert_ledger(store.root);
}
END_TEST

/* The limit is met within a batch: just those within it are there, to the byte. */
START_TEST(gate_limit_within_a_batch)
{
    enum { FIT = 4 };
    reopen(48 + FIT * FILE_SIZE + 48 - (_i ? 1 : 0));
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    unsigned fit = FIT - (unsigned)_i;
    ck_assert_uint_eq(lost.codes[8], BATCH - fit);
    ck_assert_uint_eq(lost.count, BATCH - fit);
    for (unsigned i = 0; i < BATCH; i++)
        ck_assert_int_eq(is_good(&cids[i]) != 0, i < fit);
    assert_ledger(store.root);
    ck_assert_uint_eq(size_of_files, 48 + fit * FILE_SIZE);
}
END_TEST

/* A batch writes the ledger once, but for its bounds: 64 objects and 4 MiB. */
START_TEST(batches)
{
    put_batch(1, 200, 10);
    ck_assert_uint_gt(objects.slot_count, VV_OBJECTS_FEW);
    ck_assert(publish_all());
    ck_assert_uint_eq(objects.slot_count, VV_OBJECTS_FEW);
    for (unsigned i = 0; i < VV_OBJECTS_FEW; i++)
        ck_assert_ptr_null(objects.slots[i]); /* nothing is left of what waited before the index grew */
    ck_assert_uint_eq(good_ones(200), 200);
    ck_assert_uint_ge(seen[VV_STEP_LEDGER_WRITE], 1 + 4);
    ck_assert_uint_le(seen[VV_STEP_LEDGER_WRITE], 1 + 200);
    ck_assert_uint_eq(seen[VV_STEP_LOCK], seen[VV_STEP_LEDGER_WRITE] - 1);
    ck_assert_uint_eq(seen[VV_STEP_UNLOCK], seen[VV_STEP_LOCK]);
    ck_assert_uint_eq(seen[VV_STEP_FSYNC_DIRECTORY], 200);
    assert_ledger(store.root);
    unsigned locks = seen[VV_STEP_LOCK];
    put_batch(1000, 5, 2 << 20);
    ck_assert(publish_all());
    ck_assert_uint_ge(seen[VV_STEP_LOCK], locks + 3);
    ck_assert_uint_eq(good_ones(5), 5);
    assert_ledger(store.root);
    /* Two equal ones in one batch are one. */
    vv_body b = body_of(5000, 100, VV_POOL_GENERAL);
    vv_wstore_object o = {.codec = VV_CODEC_VALUE, .body = b.bytes, .len = b.len};
    vv_cid_of(&o.cid, o.codec, b.bytes, b.len);
    vv_published out[3];
    ck_assert(vv_wstore_publish_objects(writer, (vv_wstore_object[]){o, o, o}, 3, out));
    ck_assert(out[0].outcome == VV_COMMITTED && out[1].outcome == VV_REUSED && out[2].outcome == VV_REUSED);
    ck_assert(vv_wstore_publish_objects(writer, NULL, 0, NULL));
    vv_body_free(&governor, &b);
    assert_ledger(store.root);
}
END_TEST

/* What reading the object costs, if it is captured once more. */
static uint64_t read_for(const vv_cid *cid, uint64_t tag, size_t size)
{
    vv_cid again = put(tag, size);
    ck_assert_mem_eq(&again, cid, sizeof again);
    bytes_read = 0;
    ck_assert(publish_all());
    return bytes_read;
}

static void replace(const vv_cid *cid, bool in_place, bool bad)
{
    char path[256], other[300];
    path_of_object(path, cid);
    snprintf(other, sizeof other, "%s.other", path);
    vv_blob b = {0};
    ck_assert_int_eq(vv_file_read(AT_FDCWD, path, NO_LIMIT, &b, NULL), VV_OK);
    b.p[60] ^= bad;
    FILE *f = fopen(in_place ? path : other, in_place ? "r+" : "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(b.p, 1, b.n, f), b.n);
    fclose(f);
    ck_assert(in_place || rename(other, path) == 0);
    vv_blob_done(&b);
}

/* A value that is captured again is read once at most, as long as its file is the one that was read. Any other file of
 * that name, or a change of it, is read again. */
START_TEST(gate_known_object_is_not_read_again)
{
    enum { BIG = 100000 };
    vv_cid cid = put(1, BIG);
    ck_assert(publish_all());
    disk_settle();
    read_for(&cid, 1, BIG);
    ck_assert_uint_lt(read_for(&cid, 1, BIG), BIG);
    reopen(NO_LIMIT); /* another session knows nothing yet */
    ck_assert_uint_ge(read_for(&cid, 1, BIG), BIG);
    ck_assert_uint_lt(read_for(&cid, 1, BIG), BIG);
    replace(&cid, false, false);
    disk_settle();
    ck_assert_uint_ge(read_for(&cid, 1, BIG), BIG);
    ck_assert_uint_lt(read_for(&cid, 1, BIG), BIG);
    replace(&cid, true, false);
    disk_settle();
    ck_assert_uint_ge(read_for(&cid, 1, BIG), BIG);
    ck_assert_uint_lt(read_for(&cid, 1, BIG), BIG);
    ck_assert_uint_eq(lost.count, 0);
    replace(&cid, _i & 1, true);
    read_for(&cid, 1, BIG);
    ck_assert_uint_eq(lost.codes[7], 1);
    char path[256];
    path_of_object(path, &cid);
    ck_assert_int_eq(unlink(path), 0);
    read_for(&cid, 1, BIG);
    ck_assert(lost.count == 0 && is_good(&cid));
}
END_TEST

/* What is remembered is charged; without memory for it all is read. */
START_TEST(known_objects_are_charged)
{
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    disk_settle();
    put_batch(1, BATCH, SIZE);
    ck_assert(publish_all());
    ck_assert_uint_gt(atomic_load(&governor.pools[VV_POOL_GENERAL].used), 65536);
    reopen(NO_LIMIT);
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used), 0);
    deny_owner = VV_OWN_WRITER;
    deny_at = 1;
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_ge(read_for(&cids[0], 1, SIZE), SIZE);
    ck_assert_uint_eq(deny_at, 0);
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used), 0);
    ck_assert_uint_eq(lost.count, 0);
}
END_TEST

/* Another's file of the third object's name appears at a step: an equal one is found, a different one is a conflict,
 * and neither is replaced. */
static const struct {
    vv_step at;
    unsigned after;
} races[] = {
    {VV_STEP_LOCK, 0}, {VV_STEP_LEDGER_READ, 0}, {VV_STEP_CREATE, 2}, {VV_STEP_FSYNC_FILE, 2}, {VV_STEP_RENAME, 2},
};

static struct {
    vv_step at;
    unsigned after;
    bool equal;
    ino_t inode;
} racer;

static void race(vv_step at)
{
    if (at != racer.at || racer.inode || racer.after--)
        return;
    char path[256], dir[256];
    path_of_object(path, &cids[2]);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    ck_assert(mkdir(dir, 0777) == 0 || errno == EEXIST);
    vv_body b = body_of(racer.equal ? 3 : 999, SIZE, VV_POOL_CONTROL);
    vv_wr w = vv_wr_growing(FILE_SIZE);
    vv_cas_encode(&w, VV_CODEC_VALUE, b.bytes, b.len);
    FILE *f = fopen(path, "wx");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(w.buf, 1, w.len, f), w.len);
    struct stat st;
    ck_assert_int_eq(fstat(fileno(f), &st), 0);
    racer.inode = st.st_ino;
    fclose(f);
    vv_wr_done(&w);
    vv_body_free(&governor, &b);
}

START_TEST(gate_put_race)
{
    unsigned row = (unsigned)_i / 2;
    racer.at = races[row].at;
    racer.after = races[row].after;
    racer.equal = _i & 1;
    racer.inode = 0;
    put_batch(1, BATCH, SIZE);
    act = race;
    ck_assert(publish_all());
    act = NULL;
    ck_assert_uint_ne(racer.inode, 0);
    ck_assert_uint_eq(lost.count, racer.equal ? 0 : 1);
    ck_assert_uint_eq(lost.codes[7], lost.count);
    ck_assert_uint_eq(good_ones(BATCH), racer.equal ? BATCH : BATCH - 1);
    char path[256];
    path_of_object(path, &cids[2]);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_ino, racer.inode);
    ck_assert_int_eq(vv_wstore_latch(writer), VV_LATCH_OPEN);
    /* The racer's file came past the ledger, which the next to open the store puts right. */
    ck_assert_int_eq(publish_segment(), VV_COMMITTED);
    reopen(NO_LIMIT);
    assert_ledger(store.root);
}
END_TEST

static vv_step die_at;
static unsigned die_after;

static void die(vv_step at)
{
    if (at == die_at && die_after-- == 0)
        kill(getpid(), SIGKILL);
}

/* Killed before any step of a batch, at its first, third or last object: who opens the store next finds the ledger
 * right or puts it right, and each object whole or absent. */
START_TEST(gate_killed_in_a_batch)
{
    static const unsigned times[] = {0, 2, BATCH - 1};
    vv_wstore_close(writer);
    writer = NULL;
    put_batch(1, BATCH, SIZE);
    for (unsigned i = 0; i < VV_ARRAY_LEN(times); i++) {
        store_remove(&store);
        store = store_make_quick();
        pid_t pid = fork();
        if (pid == 0) {
            open_as(OURS, NO_LIMIT);
            die_at = (vv_step)_i;
            die_after = times[i];
            act = die;
            _exit(publish_all() ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        /* A step of the batch, not of each object, comes once (or more often, on a slow machine). */
        ck_assert(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0 && i > 0));
        open_as(OURS + 1, NO_LIMIT);
        assert_ledger(store.root);
        for (unsigned k = 0; k < BATCH; k++) {
            char path[256];
            path_of_object(path, &cids[k]);
            ck_assert(access(path, F_OK) != 0 || is_good(&cids[k]));
        }
        if (WIFEXITED(status))
            ck_assert_uint_eq(good_ones(BATCH), BATCH);
        put_batch(1, BATCH, SIZE);
        ck_assert(publish_all());
        ck_assert_uint_eq(lost.count, 0);
        ck_assert_uint_eq(good_ones(BATCH), BATCH);
        assert_ledger(store.root);
        vv_wstore_close(writer);
        writer = NULL;
        put_batch(1, BATCH, SIZE);
    }
}
END_TEST

/* Of a process that publishes n objects, some of which others publish too: 0 where each is there or lost for the
 * limit. */
static int publish_in_child(uint8_t id, uint64_t max_bytes, uint64_t own, unsigned n)
{
    open_as(id, max_bytes);
    put_batch(1, n / 2, SIZE);
    for (unsigned i = n / 2; i < n; i++)
        cids[i] = put(own + i, SIZE);
    unsigned of_limit = 0, all = 0;
    bool done;
    do {
        done = publish_all();
        of_limit += lost.codes[8];
        all += lost.count;
    } while (!done);
    bool right = all == of_limit && good_ones(n) >= n - all;
    vv_wstore_close(writer);
    return right ? (int)(all > 200 ? 200 : all) : 255;
}

/* Two processes with equal and different objects, at a limit for some of them. */
START_TEST(gate_two_processes_at_the_limit)
{
    enum { N = 60, DISTINCT = N / 2 + 2 * (N / 2) };
    const uint64_t fit = _i ? DISTINCT : DISTINCT - 20, limit = 48 + fit * FILE_SIZE + 48;
    vv_wstore_close(writer);
    writer = NULL;
    pid_t pids[2];
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(publish_in_child((uint8_t)(20 + i), limit, 1000 * (i + 1), N));
    }
    unsigned lost_by_both = 0;
    for (unsigned i = 0; i < 2; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 255);
        lost_by_both += (unsigned)WEXITSTATUS(status);
    }
    assert_ledger(store.root);
    /* Full to the last object where something was lost, and nothing is lost where all fit. */
    ck_assert_uint_eq(size_of_files, 48 + fit * FILE_SIZE);
    ck_assert_int_eq(lost_by_both > 0, _i == 0);
}
END_TEST

/* Who publishes one batch after the other lets others have the lock now and then. */
START_TEST(others_get_their_turn)
{
    vv_wstore_close(writer);
    writer = NULL;
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        open_as(OURS + 1, NO_LIMIT);
        for (unsigned committed = 0; committed < 5;)
            committed += publish_segment() == VV_COMMITTED;
        vv_wstore_close(writer);
        _exit(0);
    }
    close(pipes[1]);
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    open_as(OURS, NO_LIMIT);
    char c;
    for (uint64_t i = 0; __real_read(pipes[0], &c, 1) != 0; i++) {
        put_batch(1 + i * 500, 500, 10);
        ck_assert(publish_all() || objects.count);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(pipes[0]);
}
END_TEST

/* Random sizes, repetitions, and failures at random steps: each object is there or was lost, the ledger is right, and
 * what failed is never there in part. */
START_TEST(gate_random_faults)
{
    test_rng g = test_seeded("objects");
    g.state += (uint64_t)_i;
    for (unsigned round = 0; round < 30; round++) {
        unsigned n = 1 + (unsigned)(test_random(&g) % 20);
        for (unsigned i = 0; i < n; i++) {
            uint64_t tag = test_random(&g) % 100;
            cids[i] = put(tag, 1 + (size_t)tag * 37);
        }
        static const int errors[] = {EIO, EACCES, EINTR};
        disk = (bad_disk){(vv_step)(test_random(&g) % VV_STEP_UNLOCK), errors[test_random(&g) % VV_ARRAY_LEN(errors)],
                          (unsigned)(test_random(&g) % 8), (unsigned)(test_random(&g) % 3)};
        unsigned lost_ones = 0;
        for (bool done = false; !done;) {
            done = publish_all();
            lost_ones += lost.count;
            bool settled;
            int plane;
            uint64_t sequence;
            while (!vv_wstore_resolve(writer, &settled, &plane, &sequence))
                continue;
        }
        ck_assert(lost_ones || good_ones(n) == n);
        ck_assert_uint_eq(objects.count, 0);
        if (vv_wstore_latch(writer) != VV_LATCH_OPEN)
            reopen(NO_LIMIT);
        assert_ledger(store.root);
    }
}
END_TEST

static uint64_t waited_ns;

static void wait_for_the_lock(vv_step at)
{
    if (at != VV_STEP_LOCK)
        return;
    uint64_t from = vv_clock_monotonic_ns();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    waited_ns += vv_clock_monotonic_ns() - from;
}

/* How many values may wait follows from the writing alone, not from waits for the lock, nor from one in vain. */
START_TEST(waits_are_no_speed)
{
    int fd = open_lock();
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    put_batch(1, BATCH, SIZE);
    ck_assert(!publish_all());
    ck_assert_uint_eq(objects.count, BATCH);
    ck_assert_uint_eq(objects.each_ns, 0);
    close(fd);
    act = wait_for_the_lock;
    uint64_t from = vv_clock_monotonic_ns();
    ck_assert(publish_all());
    uint64_t spent = vv_clock_monotonic_ns() - from - waited_ns;
    act = NULL;
    ck_assert_uint_gt(waited_ns, 0);
    ck_assert_uint_gt(objects.each_ns, 0);
    ck_assert_uint_le(objects.each_ns, spent / BATCH + 1);
}
END_TEST

/* From a time on what waits is lost, without a look at the disk, and what comes is refused. */
START_TEST(gate_no_time_is_left)
{
    vv_cid early = put(1, 1000);
    atomic_store(&objects.until_ns, UINT64_MAX);
    ck_assert(publish_all() && lost.count == 0 && is_good(&early));
    enum { N = 200 };
    vv_cid late[N];
    for (unsigned i = 0; i < N; i++)
        late[i] = put(100 + i, 1000);
    ck_assert_int_eq(vv_objects_refused(&objects, writer), -1);
    atomic_store(&objects.until_ns, 1);
    ck_assert_int_eq(vv_objects_refused(&objects, writer), 6);
    ck_assert(publish_all());
    ck_assert_uint_eq(lost.count, N);
    ck_assert_uint_eq(lost.codes[6], N);
    for (unsigned i = 0; i < N; i++)
        ck_assert(!is_good(&late[i]));
    ck_assert_uint_eq(objects.count, 0);
    ck_assert_uint_eq(vv_objects_bytes(&objects), 0);
    atomic_store(&objects.until_ns, 0);
    late[0] = put(100, 1000);
    ck_assert(publish_all() && lost.count == 0 && is_good(&late[0]));
}
END_TEST

int main(void)
{
    TCase *c = test_case("objects", 120);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, equal_bodies_wait_once);
    tcase_add_test(c, denied_entry);
    tcase_add_loop_test(c, gate_batch_fails_before_a_rename, 0, (int)VV_ARRAY_LEN(before));
    tcase_add_loop_test(c, gate_batch_fails_after_a_rename, 0, (int)VV_ARRAY_LEN(after));
    tcase_add_loop_test(c, gate_limit_within_a_batch, 0, 2);
    tcase_add_test(c, batches);
    tcase_add_test(c, gate_no_time_is_left);
    tcase_add_test(c, waits_are_no_speed);
    tcase_add_loop_test(c, gate_known_object_is_not_read_again, 0, 2);
    tcase_add_test(c, known_objects_are_charged);
    tcase_add_loop_test(c, gate_put_race, 0, 2 * (int)VV_ARRAY_LEN(races));
    tcase_add_loop_test(c, gate_killed_in_a_batch, 0, VV_STEPS);
    tcase_add_loop_test(c, gate_two_processes_at_the_limit, 0, 2);
    tcase_add_test(c, others_get_their_turn);
    tcase_add_loop_test(c, gate_random_faults, 0, 4);
    return test_run();
}
