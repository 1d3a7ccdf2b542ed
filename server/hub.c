#include "config.h"

#include "server/hub.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/deadline.h"

#define SECOND_NS UINT64_C(1000000000)
/* Between two looks for followers: of what is written faster they are told the newest state. */
#define PAUSE_NS UINT64_C(40000000)

enum {
    STACK = 256 * 1024,
    SEND_BUFFER = 32 * 1024,  /* of a follower's socket: states that nobody will read should not pile up there */
    USER_TIMEOUT_MS = 30000,
    EVENTS = 16,
    TEXT_MAX = 64 * 1024 * 1024,
    TEXT_KEPT = 16 * 1024,
};

struct vv_follower {
    vv_hub *hub;
    vv_follow_form form;
    uint64_t id;
    int fd; /* borrowed; -1: none */
    bool listed, placed, gone, ended, begun, knows;
    uint64_t turn;     /* that it was told, where it knows one */
    uint64_t until_ns; /* the end of a long poll */
    uint64_t quiet_ns; /* since when nothing was told */
    vv_wr out;
    size_t sent; /* of out */
    pthread_cond_t changed;
    vv_follower *next, *before;
};

struct vv_hub {
    vv_library *library;
    uint64_t heartbeat_ns;
    unsigned places;
    pthread_mutex_t lock; /* guards all below; the library's locks are never taken under it */
    vv_feed *feed;
    vv_follower *followers;
    unsigned count; /* of those that have a place */
    uint64_t ids;
    bool stopping, started;
    int wake_fd; /* of the watcher */
    int epoll_fd, end_fd; /* of the thread that watches sockets */
    pthread_t watcher, guard;
};

static void ring(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void hush(int fd)
{
    uint64_t n;
    while (read(fd, &n, sizeof n) < 0 && errno == EINTR)
        ;
}

vv_code vv_hub_new(vv_hub **ret, vv_library *l, const vv_hub_options *o, vv_error *err)
{
    uint64_t epoch;
    vv_hub *h = calloc(1, sizeof *h);
    if (!h)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for followers");
    if (getrandom(&epoch, sizeof epoch, 0) != sizeof epoch)
        epoch = vv_now_ns() ^ (uint64_t)getpid() << 48;
    h->library = l;
    h->heartbeat_ns = o && o->heartbeat_ns ? o->heartbeat_ns : VV_HUB_HEARTBEAT * SECOND_NS;
    h->places = o && o->places ? o->places : VV_HUB_PLACES;
    h->wake_fd = h->epoll_fd = h->end_fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    h->feed = vv_feed_new(epoch);
    if (!h->feed) {
        vv_hub_free(h);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for followers");
    }
    *ret = h;
    return VV_OK;
}

void vv_hub_limit(vv_hub *h, unsigned places)
{
    if (places < h->places)
        h->places = places;
}

static void wake_all(vv_hub *h)
{
    for (vv_follower *f = h->followers; f; f = f->next)
        pthread_cond_signal(&f->changed);
}

void vv_hub_notice(void *hub, const vv_look *look)
{
    vv_hub *h = hub;
    pthread_mutex_lock(&h->lock);
    if (vv_feed_turn(h->feed, look))
        wake_all(h);
    pthread_mutex_unlock(&h->lock);
}

/* Takes a look where something may have changed, for as long as anybody follows. */
static void *watch(void *hub)
{
    vv_hub *h = hub;
    uint64_t next_ns = 0;
    for (;;) {
        pthread_mutex_lock(&h->lock);
        bool stopping = h->stopping, followed = h->count > 0;
        pthread_mutex_unlock(&h->lock);
        if (stopping)
            return NULL;
        struct pollfd fds[] = {{.fd = h->wake_fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
        uint64_t now = vv_now_ns(), until = UINT64_MAX;
        if (followed && now < next_ns) {
            until = next_ns;
        } else if (followed) {
            until = vv_library_due_ns(h->library);
            fds[1].fd = vv_library_watch_fd(h->library);
        }
        struct timespec wait = {0};
        if (until > now && until != UINT64_MAX)
            wait = (struct timespec){.tv_sec = (time_t)((until - now) / SECOND_NS),
                                     .tv_nsec = (long)((until - now) % SECOND_NS)};
        int n = ppoll(fds, 2, until == UINT64_MAX ? NULL : &wait, NULL);
        if (n > 0 && fds[0].revents)
            hush(h->wake_fd);
        bool due = followed && vv_now_ns() >= next_ns && vv_now_ns() >= vv_library_due_ns(h->library);
        if (!due && !(n > 0 && fds[1].revents))
            continue;
        const vv_look *look;
        if (vv_library_look(h->library, &look, NULL) == VV_OK)
            vv_look_release(h->library, look);
        next_ns = vv_now_ns() + PAUSE_NS;
    }
}

/* Its place is free from now on, whatever its thread is at. Under the lock. */
static void leave(vv_hub *h, vv_follower *f)
{
    if (!f->placed)
        return;
    f->placed = false;
    if (--h->count == 0)
        ring(h->wake_fd);
}

static void hang_up(vv_hub *h, uint64_t id)
{
    pthread_mutex_lock(&h->lock);
    vv_follower *f = h->followers;
    while (f && f->id != id)
        f = f->next;
    if (f) {
        f->gone = true;
        leave(h, f);
        /* Its thread waits here, or for the socket; who is in the list has not closed it. */
        shutdown(f->fd, SHUT_RDWR);
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&h->lock);
}

/* Watches sockets for clients that hang up; number 0 is the order to end. */
static void *guard(void *hub)
{
    vv_hub *h = hub;
    struct epoll_event events[EVENTS];
    for (;;) {
        int n = epoll_wait(h->epoll_fd, events, EVENTS, -1);
        if (n < 0 && errno != EINTR)
            return NULL;
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 == 0)
                return NULL;
            hang_up(h, events[i].data.u64);
        }
    }
}

static vv_code open_descriptors(vv_hub *h, vv_error *err)
{
    h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event end = {.events = EPOLLIN};
    if (h->wake_fd < 0 || h->end_fd < 0 || h->epoll_fd < 0
        || epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->end_fd, &end) != 0) {
        int os = errno;
        vv_close(&h->wake_fd);
        vv_close(&h->end_fd);
        vv_close(&h->epoll_fd);
        return vv_fail_os(err, os, "watching for followers");
    }
    return VV_OK;
}

/* With the first follower, under the lock. */
static vv_code start(vv_hub *h, vv_error *err)
{
    if (h->started)
        return VV_OK;
    vv_code rc = open_descriptors(h, err);
    if (rc != VV_OK)
        return rc;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    int os = pthread_create(&h->guard, &attr, guard, h);
    if (os == 0 && (os = pthread_create(&h->watcher, NULL, watch, h)) != 0) {
        ring(h->end_fd);
        pthread_join(h->guard, NULL);
    }
    pthread_attr_destroy(&attr);
    h->started = os == 0;
    if (os == 0)
        return VV_OK;
    vv_close(&h->wake_fd);
    vv_close(&h->end_fd);
    vv_close(&h->epoll_fd);
    return vv_fail_os(err, os, "watching for followers");
}

void vv_hub_stop(vv_hub *h)
{
    pthread_mutex_lock(&h->lock);
    bool first = h->started && !h->stopping;
    h->stopping = true;
    wake_all(h);
    if (first) {
        ring(h->wake_fd);
        ring(h->end_fd);
    }
    pthread_mutex_unlock(&h->lock);
}

void vv_hub_free(vv_hub *h)
{
    if (!h)
        return;
    vv_hub_stop(h);
    if (h->started) {
        pthread_join(h->watcher, NULL);
        pthread_join(h->guard, NULL);
    }
    vv_close(&h->wake_fd);
    vv_close(&h->end_fd);
    vv_close(&h->epoll_fd);
    vv_feed_free(h->feed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

unsigned vv_hub_places(const vv_hub *h)
{
    return h->places;
}

static vv_follower *new_follower(vv_hub *h, vv_follow_form form)
{
    vv_follower *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    *f = (vv_follower){.hub = h, .form = form, .fd = -1, .out = vv_wr_growing(TEXT_MAX)};
    vv_cond_init(&f->changed);
    return f;
}

/* What does not apply to a socket of another kind is not missed. */
static void tune(int fd)
{
    int size = SEND_BUFFER, ms = USER_TIMEOUT_MS;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

/* Under the lock. */
static vv_code take_place(vv_hub *h, vv_follower *f, const int *socket, vv_error *err)
{
    if (h->stopping)
        return vv_fail(err, VV_ERR_BUSY, "the server is about to end");
    if (h->count >= h->places)
        return vv_fail(err, VV_ERR_LIMIT, "%u follow already", h->count);
    vv_code rc = start(h, err);
    if (rc != VV_OK)
        return rc;
    f->id = ++h->ids;
    if (socket) {
        struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = f->id};
        if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, *socket, &e) != 0)
            return vv_fail_os(err, errno, "watching a follower");
        f->fd = *socket;
    }
    f->listed = f->placed = true;
    f->next = h->followers;
    if (f->next)
        f->next->before = f;
    h->followers = f;
    if (h->count++ == 0)
        ring(h->wake_fd);
    return VV_OK;
}

vv_code vv_follower_new(vv_follower **ret, vv_hub *h, vv_follow_form form, vv_str cursor, uint64_t wait_ns,
                        const int *socket, vv_error *err)
{
    vv_follower *f = new_follower(h, form);
    if (!f)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a follower");
    f->quiet_ns = vv_now_ns();
    f->until_ns = f->quiet_ns + wait_ns;
    pthread_mutex_lock(&h->lock);
    f->knows = cursor.p && vv_feed_find(h->feed, cursor, &f->turn);
    vv_code rc = take_place(h, f, socket, err);
    pthread_mutex_unlock(&h->lock);
    if (rc != VV_OK) {
        vv_follower_free(f);
        return rc;
    }
    if (socket)
        tune(*socket);
    *ret = f;
    return VV_OK;
}

void vv_follower_free(vv_follower *f)
{
    if (!f)
        return;
    vv_hub *h = f->hub;
    pthread_mutex_lock(&h->lock);
    if (f->listed) {
        leave(h, f);
        if (f->fd >= 0)
            epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, f->fd, NULL);
        *(f->before ? &f->before->next : &h->followers) = f->next;
        if (f->next)
            f->next->before = f->before;
    }
    pthread_mutex_unlock(&h->lock);
    pthread_cond_destroy(&f->changed);
    vv_wr_done(&f->out);
    free(f);
}

/* Taken under the lock, and written without it: a state may be long, and who finds a change waits for nobody. */
typedef struct {
    vv_feed *feed; /* NULL: there is none to be told */
    bool since, first;
    uint64_t turn; /* where since */
} news;

static void write_object(const news *n, vv_wr *w)
{
    vv_json j = vv_json_init(w);
    vv_feed_json(&j, n->feed, n->since ? &n->turn : NULL);
}

/* The newest state. Under the lock. */
static news take_news(vv_follower *f)
{
    vv_hub *h = f->hub;
    news n = {.feed = vv_feed_share(h->feed), .since = f->knows && vv_feed_knows(h->feed, f->turn),
              .first = !f->begun, .turn = f->turn};
    f->gone |= !n.feed;
    f->knows = true;
    f->turn = vv_feed_now(h->feed);
    f->ended = f->form == VV_FOLLOW_ONCE;
    return n;
}

/* In the follower's form. */
static void write_news(vv_follower *f, const news *n)
{
    if (f->form == VV_FOLLOW_EVENTS) {
        char cursor[VV_FEED_CURSOR];
        vv_feed_cursor(n->feed, vv_feed_now(n->feed), cursor);
        if (n->first)
            vv_wr_cstr(&f->out, "retry: 1000\n");
        vv_wr_cstr(&f->out, n->since ? "event: change\nid: " : "event: snapshot\nid: ");
        vv_wr_cstr(&f->out, cursor);
        vv_wr_cstr(&f->out, "\ndata: ");
    }
    write_object(n, &f->out);
    if (f->form != VV_FOLLOW_ONCE)
        vv_wr_cstr(&f->out, f->form == VV_FOLLOW_EVENTS ? "\n\n" : "\n");
}

/* Nothing has changed: a sign of life, or the end of a long poll. */
static news take_quiet(vv_follower *f)
{
    if (f->form == VV_FOLLOW_ONCE)
        return take_news(f);
    vv_wr_cstr(&f->out, f->form == VV_FOLLOW_EVENTS ? (f->begun ? ":\n\n" : "retry: 1000\n\n") : "\n");
    return (news){0};
}

static void wait_until(vv_follower *f, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    pthread_cond_timedwait(&f->changed, &f->hub->lock, &t);
}

/* Waits for something to tell; nothing where it was ended. Under the lock. */
static news next_news(vv_follower *f)
{
    vv_hub *h = f->hub;
    news n = {0};
    for (;;) {
        uint64_t now = vv_now_ns();
        uint64_t due = f->form == VV_FOLLOW_ONCE ? f->until_ns : f->begun ? f->quiet_ns + h->heartbeat_ns : now;
        if (f->gone)
            return n;
        if (h->stopping && f->form != VV_FOLLOW_ONCE) {
            f->ended = true;
            return n;
        }
        if (!f->knows || f->turn != vv_feed_now(h->feed)) {
            n = take_news(f);
            break;
        }
        if (now >= due || h->stopping) {
            n = take_quiet(f);
            break;
        }
        wait_until(f, due);
    }
    f->begun = true;
    f->quiet_ns = vv_now_ns();
    return n;
}

/* A whole state may be long, the changes after it are not. */
static void renew(vv_follower *f)
{
    f->sent = 0;
    vv_wr_reset(&f->out);
    if (f->out.cap > TEXT_KEPT) {
        vv_wr_done(&f->out);
        f->out = vv_wr_growing(TEXT_MAX);
    }
}

ssize_t vv_follower_read(vv_follower *f, char *buf, size_t cap)
{
    if (f->sent == f->out.len) {
        if (f->ended)
            return 0;
        renew(f);
        pthread_mutex_lock(&f->hub->lock);
        news n = next_news(f);
        bool gone = f->gone;
        pthread_mutex_unlock(&f->hub->lock);
        if (n.feed)
            write_news(f, &n);
        vv_feed_free(n.feed);
        if (gone || !vv_wr_ok(&f->out))
            return -1;
    }
    size_t n = f->out.len - f->sent;
    if (n > cap)
        n = cap;
    memcpy(buf, f->out.buf + f->sent, n);
    f->sent += n;
    return (ssize_t)n;
}

bool vv_hub_tell(vv_hub *h, vv_str cursor, bool always, vv_wr *w)
{
    news n = {0};
    pthread_mutex_lock(&h->lock);
    n.since = cursor.p && vv_feed_find(h->feed, cursor, &n.turn);
    bool tells = always || !n.since || n.turn != vv_feed_now(h->feed);
    if (tells)
        n.feed = vv_feed_share(h->feed);
    pthread_mutex_unlock(&h->lock);
    if (n.feed)
        write_object(&n, w);
    else if (tells)
        vv_wr_fail(w, "OutOfMemory");
    vv_feed_free(n.feed);
    return tells;
}
