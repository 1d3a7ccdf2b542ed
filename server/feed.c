#include "config.h"

#include "server/feed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

typedef struct {
    vv_euid euid;
    bool alive, unprobed, gone;
    uint64_t meta, data;           /* contiguous */
    uint64_t meta_high, data_high;
    uint8_t runs[VV_SHA256_BYTES]; /* of what is missing; zero where nothing is */
    uint64_t turn;                 /* of its last change */
} line;

/* Of one state; shared, nobody changes it any more. */
typedef struct {
    atomic_uint refs;
    line items[];
} line_list;

struct vv_feed {
    uint64_t epoch, now;
    uint64_t oldest; /* turn from which on all changes are known */
    bool has_store;
    uint8_t generation[32];
    line_list *lines; /* by id, gone ones among them */
    size_t count, gone;
};

vv_feed *vv_feed_new(uint64_t epoch)
{
    vv_feed *f = calloc(1, sizeof *f);
    if (f)
        f->epoch = epoch;
    return f;
}

static void unref(line_list *l)
{
    if (l && atomic_fetch_sub(&l->refs, 1) == 1)
        free(l);
}

void vv_feed_free(vv_feed *f)
{
    if (!f)
        return;
    unref(f->lines);
    free(f);
}

vv_feed *vv_feed_share(const vv_feed *f)
{
    vv_feed *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *f;
    if (copy->lines)
        atomic_fetch_add(&copy->lines->refs, 1);
    return copy;
}

static void hash_runs(vv_sha256_ctx *c, const vv_range *runs, size_t count)
{
    uint8_t b[16];
    for (size_t i = 0; i < count; i++) {
        vv_put64(b, runs[i].first);
        vv_put64(b + 8, runs[i].last);
        vv_sha256_update(c, b, sizeof b);
    }
    vv_put64(b, count);
    vv_sha256_update(c, b, 8);
}

static line line_of(const vv_stream *s)
{
    line n = {.euid = s->euid, .alive = s->alive, .unprobed = s->unprobed, .meta = s->meta_contiguous,
              .data = s->data_contiguous, .meta_high = s->meta_high, .data_high = s->data_high};
    if (s->meta_bad_count || s->data_bad_count) {
        vv_sha256_ctx c;
        vv_sha256_init(&c);
        hash_runs(&c, s->meta_bad, s->meta_bad_count);
        hash_runs(&c, s->data_bad, s->data_bad_count);
        vv_sha256_final(&c, n.runs);
    }
    return n;
}

static bool is_same(const line *a, const line *b)
{
    return a->alive == b->alive && a->unprobed == b->unprobed && a->gone == b->gone
        && a->meta == b->meta && a->data == b->data && a->meta_high == b->meta_high && a->data_high == b->data_high
        && memcmp(a->runs, b->runs, sizeof a->runs) == 0;
}

/* Lines of what was known and of what is there now, merged by id. */
static void merge(vv_feed *f, line *out, const vv_store *store)
{
    size_t streams = store ? store->stream_count : 0, n = 0;
    const line *known = f->lines ? f->lines->items : NULL;
    f->gone = 0;
    for (size_t i = 0, k = 0; i < f->count || k < streams;) {
        int c = i == f->count  ? 1
                : k == streams ? -1
                               : memcmp(known[i].euid.b, store->streams[k].euid.b, sizeof(vv_euid));
        line next = c < 0 ? known[i] : line_of(&store->streams[k]);
        if (c < 0)
            next.gone = true;
        next.turn = c <= 0 && is_same(&next, &known[i]) ? known[i].turn : f->now;
        f->gone += next.gone;
        out[n++] = next;
        i += c <= 0;
        k += c >= 0;
    }
    f->count = n;
}

/* Those who come with an older turn get the whole state henceforth. */
static void forget_gone(vv_feed *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->count; i++)
        if (!f->lines->items[i].gone)
            f->lines->items[kept++] = f->lines->items[i];
    f->count = kept;
    f->gone = 0;
    f->oldest = f->now;
}

bool vv_feed_turn(vv_feed *f, const vv_look *look)
{
    const vv_store *store = look ? look->store : NULL;
    if (f->has_store == (store != NULL)
        && (!store || memcmp(f->generation, store->generation, sizeof f->generation) == 0))
        return false;
    size_t most = f->count + (store ? store->stream_count : 0);
    line_list *lines = malloc(sizeof *lines + most * sizeof lines->items[0]);
    if (!lines)
        return false;
    atomic_init(&lines->refs, 1);
    f->now++;
    f->has_store = store != NULL;
    if (store)
        memcpy(f->generation, store->generation, sizeof f->generation);
    merge(f, lines->items, store);
    unref(f->lines);
    f->lines = lines;
    if (f->gone > VV_FEED_GONE)
        forget_gone(f);
    return true;
}

uint64_t vv_feed_now(const vv_feed *f)
{
    return f->now;
}

void vv_feed_cursor(const vv_feed *f, uint64_t turn, char out[VV_FEED_CURSOR])
{
    snprintf(out, VV_FEED_CURSOR, "%016llx-%llu", (unsigned long long)f->epoch, (unsigned long long)turn);
}

bool vv_feed_knows(const vv_feed *f, uint64_t turn)
{
    return turn >= f->oldest && turn <= f->now;
}

bool vv_feed_find(const vv_feed *f, vv_str cursor, uint64_t *ret_turn)
{
    char text[VV_FEED_CURSOR], again[VV_FEED_CURSOR];
    if (cursor.n < 18 || cursor.n >= sizeof text)
        return false;
    memcpy(text, cursor.p, cursor.n);
    text[cursor.n] = 0;
    uint64_t turn = strtoull(text + 17, NULL, 10);
    vv_feed_cursor(f, turn, again);
    *ret_turn = turn;
    return strcmp(text, again) == 0 && vv_feed_knows(f, turn);
}

static void line_json(vv_json *j, const line *l)
{
    vv_json_obj(j);
    vv_json_kv_hex(j, "euid", l->euid.b, sizeof l->euid.b);
    vv_json_kv_opt_bool(j, "alive", l->gone || !l->unprobed, l->alive && !l->gone);
    if (l->gone) {
        vv_json_key(j, "high_water");
        vv_json_null(j);
    } else {
        vv_json_kv_obj(j, "high_water");
        vv_json_kv_u64(j, "meta", l->meta);
        vv_json_kv_u64(j, "data", l->data);
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
}

void vv_feed_json(vv_json *j, const vv_feed *f, const uint64_t *since)
{
    char cursor[VV_FEED_CURSOR], generation[65];
    vv_feed_cursor(f, f->now, cursor);
    vv_hex(generation, f->generation, sizeof f->generation);
    const char *state = f->has_store ? generation : NULL;
    vv_json_obj(j);
    vv_json_kv_cstr(j, "cursor", cursor);
    vv_json_kv_cstr(j, "generation", state);
    vv_json_kv_cstr(j, "as_of", state);
    vv_json_kv_bool(j, "changed", !since || *since != f->now);
    vv_json_kv_bool(j, "full", !since);
    vv_json_kv_arr(j, "streams");
    for (size_t i = 0; i < f->count; i++)
        if (since ? f->lines->items[i].turn > *since : !f->lines->items[i].gone)
            line_json(j, &f->lines->items[i]);
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}
