/* What followers are told: by states of a store that are made up, in an order that the test decides. */
#include "config.h"

#include "server/follow.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/testing.h"

enum { STREAMS = 8, TEXT = 64 * 1024, PATIENCE_MS = 60000 };
#define SECOND_NS UINT64_C(1000000000)

/* A state of a store that is not there. */
typedef struct {
    vv_store store;
    vv_stream streams[2048];
    vv_look look;
} state;

static uint32_t states;

static void put_stream(state *s, uint32_t id, bool alive, uint64_t meta, uint64_t data)
{
    vv_stream *at = &s->streams[s->store.stream_count++];
    *at = (vv_stream){.alive = alive, .meta_high = meta, .meta_contiguous = meta, .data_high = data,
                      .data_contiguous = data};
    vv_put32(at->euid.b, id);
}

static const vv_look *finish(state *s)
{
    s->store.streams = s->streams;
    memset(s->store.generation, 0, sizeof s->store.generation);
    vv_put32(s->store.generation, ++states);
    s->look.store = &s->store;
    vv_hex(s->look.generation, s->store.generation, sizeof s->store.generation);
    return &s->look;
}

static state *empty(void)
{
    static state s;
    s.store.stream_count = 0;
    return &s;
}

/* One stream whose data has come so far. */
static const vv_look *at(uint64_t data)
{
    state *s = empty();
    put_stream(s, 1, true, 1, data);
    return finish(s);
}

#define EUID "\"euid\":\"%08x000000000000000000000000\""

static const char *event(const vv_feed *f, const uint64_t *since)
{
    static char text[TEXT];
    vv_wr w = vv_wr_fixed(text, sizeof text - 1);
    vv_json j = vv_json_init(&w);
    vv_feed_json(&j, f, since);
    ck_assert(vv_json_done(&j));
    text[w.len] = 0;
    return text;
}

static const char *streams_of(const char *text)
{
    const char *s = strstr(text, "\"streams\":");
    ck_assert_ptr_nonnull(s);
    return s;
}

static uint64_t turn(vv_feed *f, const vv_look *look)
{
    ck_assert(vv_feed_turn(f, look));
    return vv_feed_now(f);
}

START_TEST(a_feed_tells_what_changed)
{
    vv_feed *f = vv_feed_new(0x1234);
    ck_assert_str_eq(event(f, NULL), "{\"cursor\":\"0000000000001234-0\",\"generation\":null,\"as_of\":null,"
                                     "\"changed\":true,\"full\":true,\"streams\":[]}");
    state *s = empty();
    put_stream(s, 1, true, 1, 2);
    put_stream(s, 3, false, 4, 5);
    uint64_t first = turn(f, finish(s));
    const vv_look *same = &s->look;
    ck_assert(!vv_feed_turn(f, same));
    char want[512];
    snprintf(want, sizeof want,
             "{\"cursor\":\"0000000000001234-1\",\"generation\":\"%s\",\"as_of\":\"%s\",\"changed\":true,"
             "\"full\":true,\"streams\":[{" EUID ",\"alive\":true,\"high_water\":{\"meta\":1,\"data\":2}},"
             "{" EUID ",\"alive\":false,\"high_water\":{\"meta\":4,\"data\":5}}]}",
             same->generation, same->generation, 1u, 3u);
    ck_assert_str_eq(event(f, NULL), want);
    ck_assert(strstr(event(f, &first), "\"changed\":false,\"full\":false,\"streams\":[]}"));

    s = empty();
    put_stream(s, 1, true, 1, 3);
    put_stream(s, 2, false, 0, 0);
    s->streams[1].unprobed = true;
    put_stream(s, 3, false, 4, 5);
    uint64_t second = turn(f, finish(s));
    snprintf(want, sizeof want,
             "\"streams\":[{" EUID ",\"alive\":true,\"high_water\":{\"meta\":1,\"data\":3}},"
             "{" EUID ",\"alive\":null,\"high_water\":{\"meta\":0,\"data\":0}}]}", 1u, 2u);
    ck_assert_str_eq(streams_of(event(f, &first)), want);

    s = empty();
    put_stream(s, 2, false, 0, 0);
    put_stream(s, 3, false, 4, 5);
    uint64_t third = turn(f, finish(s));
    snprintf(want, sizeof want,
             "\"streams\":[{" EUID ",\"alive\":false,\"high_water\":null},"
             "{" EUID ",\"alive\":false,\"high_water\":{\"meta\":0,\"data\":0}}]}", 1u, 2u);
    ck_assert_str_eq(streams_of(event(f, &second)), want);
    ck_assert_str_eq(streams_of(event(f, &first)), want);

    turn(f, NULL); /* the store has gone */
    ck_assert(strstr(event(f, &third), "\"generation\":null,\"as_of\":null,\"changed\":true,\"full\":false"));
    snprintf(want, sizeof want,
             "\"streams\":[{" EUID ",\"alive\":false,\"high_water\":null},"
             "{" EUID ",\"alive\":false,\"high_water\":null}]}", 2u, 3u);
    ck_assert_str_eq(streams_of(event(f, &third)), want);
    ck_assert_str_eq(streams_of(event(f, NULL)), "\"streams\":[]}");
    vv_feed_free(f);
}
END_TEST

/* What the generation goes by shows as a change, though no high water moves. */
START_TEST(changes_behind_the_high_water)
{
    vv_feed *f = vv_feed_new(1);
    state *s = empty();
    put_stream(s, 1, true, 1, 2);
    vv_range bad[] = {{3, 4}};
    s->streams[0].data_high = 9;
    s->streams[0].data_bad = bad;
    s->streams[0].data_bad_count = 1;
    uint64_t before = turn(f, finish(s));
    bad[0].last = 5;
    turn(f, finish(s));
    ck_assert_ptr_nonnull(strstr(event(f, &before), "\"data\":2"));
    before = vv_feed_now(f);
    s->streams[0].data_high = 10;
    turn(f, finish(s));
    ck_assert_ptr_nonnull(strstr(event(f, &before), "\"data\":2"));
    vv_feed_free(f);
}
END_TEST

static const struct {
    const char *cursor;
    bool known;
} cursors[] = {
    {"00000000000000ab-0", true},  {"00000000000000ab-1", true},  {"00000000000000ab-2", true},
    {"00000000000000ab-3", false}, {"00000000000000ac-1", false}, {"00000000000000ab-", false},
    {"00000000000000ab-01", false}, {"00000000000000ab-1 ", false}, {"00000000000000AB-1", false},
    {"00000000000000ab-18446744073709551616", false}, {"", false}, {"x", false}, {"00000000000000ab.1", false},
};

START_TEST(cursors_are_our_own)
{
    vv_feed *f = vv_feed_new(0xab);
    turn(f, at(1));
    turn(f, at(2));
    uint64_t found;
    ck_assert_msg(vv_feed_find(f, vv_cstr(cursors[_i].cursor), &found) == cursors[_i].known, "%s",
                  cursors[_i].cursor);
    vv_feed_free(f);
}
END_TEST

/* Streams that went are remembered up to a number; who comes from before gets the whole state. */
START_TEST(very_many_go)
{
    vv_feed *f = vv_feed_new(1);
    state *s = empty();
    for (uint32_t i = 0; i < VV_FEED_GONE + 2; i++)
        put_stream(s, i, false, 1, 1);
    uint64_t first = turn(f, finish(s));
    s->store.stream_count = VV_FEED_GONE + 1;
    uint64_t second = turn(f, finish(s));
    s->store.stream_count = 1;
    turn(f, finish(s));
    ck_assert(!vv_feed_knows(f, first) && !vv_feed_knows(f, second));
    ck_assert(vv_feed_knows(f, vv_feed_now(f)));
    vv_feed_free(f);
}
END_TEST

/* Follows by events alone, from any cursor, and always ends up with the state. */
START_TEST(random_states)
{
    enum { TURNS = 2000, FOLLOWERS = 5 };
    typedef struct {
        bool there, alive;
        uint64_t data;
    } known;
    test_rng g = test_seeded("follow");
    known now[STREAMS] = {0}, seen[FOLLOWERS][STREAMS] = {0};
    uint64_t told[FOLLOWERS] = {0};
    bool knows[FOLLOWERS] = {false};
    vv_feed *f = vv_feed_new(7);
    for (unsigned n = 0; n < TURNS; n++) {
        unsigned c = (unsigned)test_below(&g, STREAMS);
        now[c].there = test_below(&g, 6) != 0;
        now[c].alive = test_below(&g, 2);
        now[c].data += test_below(&g, 2);
        state *s = empty();
        for (uint32_t i = 0; i < STREAMS; i++)
            if (now[i].there)
                put_stream(s, i, now[i].alive, 1, now[i].data);
        turn(f, finish(s));
        unsigned who = (unsigned)test_below(&g, FOLLOWERS);
        const char *text = event(f, knows[who] ? &told[who] : NULL);
        if (!knows[who])
            memset(seen[who], 0, sizeof seen[who]);
        for (uint32_t i = 0; i < STREAMS; i++) {
            char id[64];
            snprintf(id, sizeof id, EUID, i);
            const char *at = strstr(text, id);
            if (!at)
                continue;
            uint64_t data = 0;
            ck_assert_ptr_null(strstr(at + 1, id)); /* once */
            at += strlen(id);
            bool alive = strncmp(at, ",\"alive\":true", 13) == 0;
            at += strcspn(at, "h");
            bool there = sscanf(at, "high_water\":{\"meta\":1,\"data\":%" SCNu64, &data) == 1;
            seen[who][i] = (known){there, there && alive, there ? data : 0};
        }
        knows[who] = test_below(&g, 20) != 0;
        told[who] = vv_feed_now(f);
        for (uint32_t i = 0; i < STREAMS; i++) {
            ck_assert_int_eq(seen[who][i].there, now[i].there);
            ck_assert(!now[i].there || (seen[who][i].alive == now[i].alive && seen[who][i].data == now[i].data));
        }
    }
    vv_feed_free(f);
}
END_TEST

/* What was shared stays as it was, whatever the feed goes on to, and longer than the feed. */
START_TEST(a_shared_state_stays)
{
    vv_feed *f = vv_feed_new(1);
    ck_assert_ptr_nonnull(f);
    ck_assert(vv_feed_turn(f, at(1)));
    uint64_t first = vv_feed_now(f);
    ck_assert(vv_feed_turn(f, at(2)));
    vv_feed *shared = vv_feed_share(f);
    ck_assert_ptr_nonnull(shared);
    char whole[TEXT], change[TEXT];
    strcpy(whole, event(f, NULL));
    strcpy(change, event(f, &first));
    for (uint64_t i = 3; i < 10; i++)
        ck_assert(vv_feed_turn(f, at(i)));
    ck_assert(vv_feed_turn(f, NULL));
    ck_assert_str_ne(event(f, NULL), whole);
    vv_feed_free(f);
    ck_assert_str_eq(event(shared, NULL), whole);
    ck_assert_str_eq(event(shared, &first), change);
    vv_feed_free(shared);
}
END_TEST

/* A hub whose library has no store: all states are the test's. */
typedef struct {
    char dir[32];
    vv_library *library;
    vv_hub *hub;
} rig;

static void begin(rig *r, const vv_hub_options *o)
{
    strcpy(r->dir, "/tmp/varve-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    ck_assert(vv_library_open(&r->library, r->dir, 1, 0, NULL) == VV_OK);
    ck_assert(vv_hub_new(&r->hub, r->library, o, NULL) == VV_OK);
}

static void done(rig *r)
{
    vv_hub_free(r->hub);
    vv_library_close(r->library);
    rmdir(r->dir);
}

static vv_follower *follow(rig *r, vv_follow_form form, const char *cursor, const int *socket)
{
    vv_follower *f;
    ck_assert(vv_follower_new(&f, r->hub, form, vv_cstr(cursor), 60 * SECOND_NS, socket, NULL) == VV_OK);
    return f;
}

/* What it is told next, whole. */
static const char *hear(vv_follower *f)
{
    static char text[TEXT];
    ssize_t n = vv_follower_read(f, text, sizeof text - 1);
    ck_assert_int_ge(n, 0);
    text[n] = 0;
    return text;
}

static const char *cursor_in(const char *text)
{
    static _Thread_local char cursor[64];
    const char *from = strstr(text, "\"cursor\":\"");
    ck_assert_ptr_nonnull(from);
    ck_assert_int_eq(sscanf(from, "\"cursor\":\"%63[^\"]", cursor), 1);
    return cursor;
}

START_TEST(events)
{
    rig r;
    begin(&r, NULL);
    vv_hub_notice(r.hub, at(1));
    vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
    const char *text = hear(f);
    ck_assert_int_eq(strncmp(text, "retry: 1000\nevent: snapshot\nid: ", 32), 0);
    ck_assert_ptr_nonnull(strstr(text, "\ndata: {\"cursor\""));
    ck_assert_str_eq(text + strlen(text) - 2, "\n\n");
    ck_assert_ptr_nonnull(strstr(text, "\"data\":1}"));
    vv_hub_notice(r.hub, at(2));
    text = hear(f);
    ck_assert_int_eq(strncmp(text, "event: change\nid: ", 18), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"data\":2}"));
    vv_follower_free(f);
    f = follow(&r, VV_FOLLOW_LINES, "", NULL);
    text = hear(f);
    ck_assert(text[0] == '{' && strchr(text, '\n') == text + strlen(text) - 1);
    vv_follower_free(f);
    done(&r);
}
END_TEST

/* Between the snapshot and the next wait, and while an event is on its way: told once, the newest state alone. */
START_TEST(changes_at_any_moment)
{
    rig r;
    begin(&r, NULL);
    vv_hub_notice(r.hub, at(1));
    vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
    vv_hub_notice(r.hub, at(2)); /* before the first read */
    ck_assert_ptr_nonnull(strstr(hear(f), "\"data\":2}"));
    char text[TEXT] = "";
    for (uint64_t i = 3; i < 10; i++)
        vv_hub_notice(r.hub, at(i));
    size_t n = 0;
    do {
        ck_assert_int_eq(vv_follower_read(f, text + n++, 1), 1);
        vv_hub_notice(r.hub, at(100 + n));
    } while (n < 2 || text[n - 1] != '\n' || text[n - 2] != '\n');
    ck_assert_ptr_nonnull(strstr(text, "\"data\":9}"));
    char want[32];
    snprintf(want, sizeof want, "\"data\":%zu}", 100 + n);
    const char *next = hear(f);
    ck_assert_ptr_nonnull(strstr(next, want));
    ck_assert_int_eq(strncmp(next, "event: change\n", 14), 0);
    vv_follower_free(f);
    done(&r);
}
END_TEST

START_TEST(resuming)
{
    rig r, other;
    begin(&r, NULL);
    begin(&other, NULL);
    vv_hub_notice(r.hub, at(1));
    vv_hub_notice(other.hub, at(1));
    vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
    char cursor[64];
    strcpy(cursor, cursor_in(hear(f)));
    vv_follower_free(f);
    /* At the head: no event. */
    f = follow(&r, VV_FOLLOW_EVENTS, cursor, NULL);
    ck_assert_str_eq(hear(f), "retry: 1000\n\n");
    vv_hub_notice(r.hub, at(2));
    ck_assert_ptr_nonnull(strstr(hear(f), "event: change"));
    vv_follower_free(f);
    /* Behind: what changed. */
    f = follow(&r, VV_FOLLOW_EVENTS, cursor, NULL);
    ck_assert_ptr_nonnull(strstr(hear(f), "event: change"));
    vv_follower_free(f);
    /* Before a restart: the whole. */
    f = follow(&other, VV_FOLLOW_EVENTS, cursor, NULL);
    ck_assert_ptr_nonnull(strstr(hear(f), "event: snapshot"));
    vv_follower_free(f);
    done(&r);
    done(&other);
}
END_TEST

START_TEST(signs_of_life)
{
    rig r;
    begin(&r, &(vv_hub_options){.heartbeat_ns = 1000000});
    vv_hub_notice(r.hub, at(1));
    vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
    hear(f);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(hear(f), ":\n\n");
    vv_follower_free(f);
    f = follow(&r, VV_FOLLOW_LINES, "", NULL);
    hear(f);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(hear(f), "\n");
    vv_follower_free(f);
    done(&r);
}
END_TEST

static void *read_once(void *follower)
{
    static char text[TEXT];
    ssize_t n = vv_follower_read(follower, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return n < 0 ? NULL : text;
}

START_TEST(a_long_poll)
{
    rig r;
    begin(&r, NULL);
    vv_hub_notice(r.hub, at(1));
    vv_wr w = vv_wr_growing(TEXT);
    ck_assert(vv_hub_tell(r.hub, (vv_str){NULL, 0}, false, &w));
    vv_wr_u8(&w, 0);
    char cursor[64];
    strcpy(cursor, cursor_in((char *)w.buf));
    size_t len = w.len;
    ck_assert(!vv_hub_tell(r.hub, vv_cstr(cursor), false, &w));
    ck_assert_uint_eq(w.len, len);
    ck_assert(vv_hub_tell(r.hub, vv_cstr(cursor), true, &w)); /* who does not wait is told that nothing has changed */
    vv_wr_u8(&w, 0);
    ck_assert_ptr_nonnull(strstr((char *)w.buf + len, "\"changed\":false,\"full\":false,\"streams\":[]}"));
    /* Nothing happens. */
    vv_follower *f;
    ck_assert(vv_follower_new(&f, r.hub, VV_FOLLOW_ONCE, vv_cstr(cursor), 0, NULL, NULL) == VV_OK);
    const char *text = hear(f);
    ck_assert_ptr_nonnull(strstr(text, "\"changed\":false,\"full\":false,\"streams\":[]}"));
    ck_assert_str_eq(cursor_in(text), cursor);
    ck_assert_str_eq(hear(f), "");
    vv_follower_free(f);
    /* Something does, before it waits or while it does. */
    f = follow(&r, VV_FOLLOW_ONCE, cursor, NULL);
    pthread_t thread;
    void *told;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_once, f), 0);
    vv_hub_notice(r.hub, at(2));
    ck_assert_int_eq(pthread_join(thread, &told), 0);
    ck_assert_ptr_nonnull(strstr(told, "\"changed\":true,\"full\":false"));
    ck_assert_str_eq(hear(f), "");
    vv_follower_free(f);
    ck_assert(vv_hub_tell(r.hub, vv_cstr(cursor), false, &w));
    vv_wr_done(&w);
    done(&r);
}
END_TEST

static bool is_full(rig *r)
{
    vv_follower *f;
    vv_code rc = vv_follower_new(&f, r->hub, VV_FOLLOW_EVENTS, (vv_str){NULL, 0}, 0, NULL, NULL);
    if (rc == VV_OK)
        vv_follower_free(f);
    return rc == VV_ERR_LIMIT;
}

START_TEST(places)
{
    rig r;
    begin(&r, &(vv_hub_options){.places = 3});
    vv_follower *f[3];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            ck_assert(!is_full(&r));
            f[i] = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
        }
        ck_assert(is_full(&r));
        vv_follower_free(f[1]);
        f[1] = follow(&r, VV_FOLLOW_LINES, "", NULL);
        ck_assert(is_full(&r));
        for (int i = 0; i < 3; i++)
            vv_follower_free(f[i]);
    }
    done(&r);
}
END_TEST

/* A client that hangs up is noticed while it waits, and while its thread is elsewhere. */
START_TEST(hanging_up)
{
    rig r;
    begin(&r, &(vv_hub_options){.places = 1});
    vv_hub_notice(r.hub, at(1));
    for (int waits = 0; waits < 2; waits++) {
        int pair[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", &pair[0]);
        hear(f);
        ck_assert(is_full(&r));
        pthread_t thread;
        void *told = r.dir;
        if (waits)
            ck_assert_int_eq(pthread_create(&thread, NULL, read_once, f), 0);
        close(pair[1]);
        for (int ms = 0; is_full(&r); ms++) {
            ck_assert_int_lt(ms, PATIENCE_MS);
            poll(NULL, 0, 1);
        }
        if (waits)
            ck_assert_int_eq(pthread_join(thread, &told), 0);
        else
            told = read_once(f);
        ck_assert_ptr_null(told);
        vv_follower_free(f);
        close(pair[0]);
    }
    done(&r);
}
END_TEST

START_TEST(stopping)
{
    rig r;
    begin(&r, NULL);
    vv_hub_notice(r.hub, at(1));
    vv_follower *f = follow(&r, VV_FOLLOW_EVENTS, "", NULL);
    char cursor[64];
    strcpy(cursor, cursor_in(hear(f)));
    vv_follower *once = follow(&r, VV_FOLLOW_ONCE, cursor, NULL), *none;
    pthread_t thread;
    void *told;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_once, f), 0);
    vv_hub_stop(r.hub);
    ck_assert_int_eq(pthread_join(thread, &told), 0);
    ck_assert_str_eq(told, "");
    ck_assert_ptr_nonnull(strstr(hear(once), "\"changed\":false"));
    ck_assert(vv_follower_new(&none, r.hub, VV_FOLLOW_EVENTS, (vv_str){NULL, 0}, 0, NULL, NULL) == VV_ERR_BUSY);
    vv_follower_free(f);
    vv_follower_free(once);
    done(&r);
}
END_TEST

/* Many at once, while states come: each ends with the last one. */
enum { MANY = 16, LAST = 300 };

static void *follow_to_the_last(void *follower)
{
    char want[32], text[TEXT];
    snprintf(want, sizeof want, "\"data\":%d}", LAST);
    uint64_t last = 0;
    for (;;) {
        ssize_t n = vv_follower_read(follower, text, sizeof text - 1);
        if (n <= 0)
            return NULL;
        text[n] = 0;
        uint64_t cursor = strtoull(strchr(cursor_in(text), '-') + 1, NULL, 10);
        if (cursor <= last)
            return NULL;
        last = cursor;
        if (strstr(text, want))
            return follower;
    }
}

START_TEST(many_at_once)
{
    rig r;
    begin(&r, NULL);
    vv_follower *f[MANY];
    pthread_t threads[MANY];
    vv_hub_notice(r.hub, at(1));
    for (int i = 0; i < MANY; i++) {
        f[i] = follow(&r, i % 2 ? VV_FOLLOW_EVENTS : VV_FOLLOW_LINES, "", NULL);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, follow_to_the_last, f[i]), 0);
    }
    vv_follower *stalled = follow(&r, VV_FOLLOW_EVENTS, "", NULL); /* it reads nothing, and is waited for by nobody */
    for (uint64_t i = 2; i <= LAST; i++)
        vv_hub_notice(r.hub, at(i));
    for (int i = 0; i < MANY; i++) {
        void *told;
        ck_assert_int_eq(pthread_join(threads[i], &told), 0);
        ck_assert_ptr_nonnull(told);
        vv_follower_free(f[i]);
    }
    ck_assert_ptr_nonnull(strstr(hear(stalled), "\"data\":300}"));
    vv_follower_free(stalled);
    done(&r);
}
END_TEST

static const struct {
    const char *accept, *params[4], *last_event_id;
    int form; /* -1: refused */
    const char *cursor, *at_fault;
    uint64_t wait_s;
} asks[] = {
    {NULL, {NULL}, NULL, VV_FOLLOW_ONCE, NULL, NULL, 0},
    {"*/*", {"wait", "60"}, NULL, VV_FOLLOW_ONCE, NULL, NULL, 60},
    {"*/*", {"wait", "0", "cursor", "ab-1"}, NULL, VV_FOLLOW_ONCE, "ab-1", NULL, 0},
    {"*/*", {"wait", "61"}, NULL, -1, NULL, "wait", 0},
    {"*/*", {"wait", "-1"}, NULL, -1, NULL, "wait", 0},
    {"*/*", {"wait", "1.5"}, NULL, -1, NULL, "wait", 0},
    {"*/*", {"wait", ""}, NULL, -1, NULL, "wait", 0},
    {"*/*", {"as_of", "5"}, NULL, -1, NULL, "as_of", 0},
    {"*/*", {"limit", "5"}, NULL, -1, NULL, "limit", 0},
    {"*/*", {"limit", "5", "wait", "5"}, NULL, -1, NULL, "limit", 0},
    {"text/event-stream", {"limit", "5", "cursor", "ab-1"}, NULL, -1, NULL, "limit", 0},
    {"text/event-stream", {NULL}, NULL, VV_FOLLOW_EVENTS, NULL, NULL, 0},
    {"text/event-stream", {"cursor", "ab-1"}, NULL, VV_FOLLOW_EVENTS, "ab-1", NULL, 0},
    {"text/event-stream", {"cursor", "ab-1"}, "ab-2", VV_FOLLOW_EVENTS, "ab-2", NULL, 0},
    {"text/event-stream", {NULL}, "ab-2", VV_FOLLOW_EVENTS, "ab-2", NULL, 0},
    {"text/event-stream", {"cursor", "ab-1"}, "", VV_FOLLOW_EVENTS, "ab-1", NULL, 0},
    {"text/event-stream", {"wait", "5"}, NULL, -1, NULL, "wait", 0},
    {"application/x-ndjson", {"cursor", "ab-1"}, NULL, VV_FOLLOW_LINES, "ab-1", NULL, 0},
    {"application/x-ndjson", {"wait", "5", "cursor", "ab-1"}, NULL, -1, NULL, "wait", 0},
    {"application/json", {"wait", "5", "cursor", "ab-1"}, NULL, VV_FOLLOW_ONCE, "ab-1", NULL, 5},
    {"application/json, text/event-stream;q=0.1", {"wait", "5"}, NULL, VV_FOLLOW_ONCE, NULL, NULL, 5},
    {"text/event-stream;q=0.5, */*", {NULL}, NULL, VV_FOLLOW_ONCE, NULL, NULL, 0},
    {"text/event-stream;q=0.1, application/x-ndjson;q=0.5", {NULL}, NULL, VV_FOLLOW_LINES, NULL, NULL, 0},
    {"text/event-stream, application/x-ndjson;q=0.5, */*;q=0.1", {NULL}, NULL, VV_FOLLOW_EVENTS, NULL, NULL, 0},
    {"text/event-stream, */*", {NULL}, NULL, VV_FOLLOW_EVENTS, NULL, NULL, 0},
    {"*/*", {"cursor", ""}, NULL, -1, NULL, "cursor", 0},
    {"*/*", {"cursor", "A"}, NULL, -1, NULL, "cursor", 0},
    {"*/*", {"cursor", "a\nb"}, NULL, -1, NULL, "cursor", 0},
};

START_TEST(what_is_asked)
{
    vv_param params[2];
    vv_query q = {.params = params};
    for (int i = 0; i < 4 && asks[_i].params[i]; i += 2)
        params[q.param_count++] = (vv_param){vv_cstr(asks[_i].params[i]), vv_cstr(asks[_i].params[i + 1])};
    vv_request rq = {.method = "GET", .accept = asks[_i].accept, .last_event_id = asks[_i].last_event_id};
    vv_follow_ask ask;
    vv_error err = {0};
    vv_code rc = vv_follow_check(&ask, &rq, &q, &err);
    if (asks[_i].form < 0) {
        ck_assert(rc == VV_ERR_ARG);
        ck_assert_str_eq(q.parameter, asks[_i].at_fault);
        return;
    }
    ck_assert_msg(rc == VV_OK, "%s", err.msg);
    ck_assert_int_eq((int)ask.form, asks[_i].form);
    ck_assert_uint_eq(ask.wait_s, asks[_i].wait_s);
    ck_assert(asks[_i].cursor ? vv_str_eq(ask.cursor, vv_cstr(asks[_i].cursor)) : ask.cursor.p == NULL);
}
END_TEST

int main(void)
{
    TCase *c = test_case("follow", 120);
    tcase_add_test(c, a_feed_tells_what_changed);
    tcase_add_test(c, changes_behind_the_high_water);
    tcase_add_loop_test(c, cursors_are_our_own, 0, VV_ARRAY_LEN(cursors));
    tcase_add_test(c, very_many_go);
    tcase_add_test(c, random_states);
    tcase_add_test(c, a_shared_state_stays);
    tcase_add_test(c, events);
    tcase_add_test(c, changes_at_any_moment);
    tcase_add_test(c, resuming);
    tcase_add_test(c, signs_of_life);
    tcase_add_test(c, a_long_poll);
    tcase_add_test(c, places);
    tcase_add_test(c, hanging_up);
    tcase_add_test(c, stopping);
    tcase_add_test(c, many_at_once);
    tcase_add_loop_test(c, what_is_asked, 0, VV_ARRAY_LEN(asks));
    return test_run();
}
