/* Values that wait for their publication, and the batches in which they go. */
#include "config.h"

#include "runtime/objects.h"

#include <errno.h>
#include <inttypes.h>

#include "format/cas.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

static test_store store;
static vv_governor governor;
static vv_objects objects;
static vv_wstore *writer;
static bad_disk disk;

static bool denied(void *ctx, vv_owner owner)
{
    unsigned *times = ctx;
    return owner == VV_OWN_VALUES && *times && (*times)-- == 1;
}

static unsigned deny_at;

static void open_writer(uint64_t max_bytes)
{
    vv_wstore_options o = {.root = store.root, .max_project_bytes = max_bytes, .minimum_free_bytes = 1,
                           .hooks = {.step = bad_disk_step, .ctx = &disk}};
    memset(o.euid.b, 7, sizeof o.euid.b);
    ck_assert_int_eq(vv_wstore_open(&writer, &o, NULL), VV_OK);
}

static void setup(void)
{
    static const uint64_t limits[VV_POOLS] = {1 << 20, 1 << 20, 64 << 20};
    vv_governor_init(&governor, limits);
    governor.test = (vv_governor_test){.denies = denied, .ctx = &deny_at};
    vv_objects_init(&objects, &governor);
    store = store_make_quick();
    open_writer(1 << 30);
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

/* Whether the object is there, is whole and has that name. */
static bool is_good(const vv_cid *cid)
{
    char name[VV_CAS_PATH], path[256];
    vv_cas_path(name, cid);
    snprintf(path, sizeof path, "%s/%s", store.root, name);
    vv_blob b = {0};
    vv_cas_object o;
    bool good = vv_file_read(AT_FDCWD, path, 1 << 30, &b, NULL) == VV_OK &&
                vv_cas_decode(&o, b.p, b.n, cid, NULL) == VV_OK && o.codec == VV_CODEC_VALUE;
    vv_blob_done(&b);
    return good;
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
    ck_assert_uint_eq(objects.equal, 2);
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
    ck_assert_uint_eq(objects.equal, VV_OBJECTS_FEW);
    ck_assert_uint_eq(objects.slot_count, 4 * VV_OBJECTS_FEW);
}
END_TEST

int main(void)
{
    TCase *c = test_case("objects", 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, equal_bodies_wait_once);
    tcase_add_test(c, denied_entry);
    return test_run();
}
