#include "config.h"

#include "server/http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/deadline.h"
#include "server/file_watch.h"
#include "server/framing.h"
#include "server/listen.h"
#include "server/log.h"

enum {
    CONNECTIONS = 1024,
    FILES = 256, /* descriptors that are left to the store, at best */
    FILES_LEAST = 32, /* without so many in all nobody could be answered */
    TIMEOUT_SECONDS = 30,
    SLOW_NS = 1000000000,
    CONNECTION_MEMORY = 320 * 1024, /* request line (2000 executions), headers, and the piece of a body on its way */
    STACK = 1024 * 1024,
    UPLOAD_MAX = 64 * 1024,         /* of a body that nobody asked for, before the connection is given up */
    METHOD = 16,
};

typedef struct call call;

struct vv_http {
    vv_server *server;
    struct MHD_Daemon *daemon;
    vv_file_watch *files;
    vv_listener listener;
    vv_log *log;          /* or NULL; borrowed */
    unsigned connections; /* at most */
    atomic_bool stopping;
    pthread_mutex_t lock;
    call *oldest, *newest; /* that wait for a client's request to be whole; under the lock */
    unsigned waiting;
    atomic_uint active;
    _Atomic uint64_t last_ns;
};

/*
 * A connection, and the request on its way. Made with the connection: the library doesn't tell of the end of each
 * request that it refuses itself.
 */
struct call {
    vv_http *http;
    int fd;
    call *older, *newer;
    bool waiting;
    bool stranger; /* another user's process, at a Unix socket */
    char *target;
    size_t uploaded;
    bool counted, met;
    unsigned patience_s; /* the connection's own timeout, where it was set; else 0 */
    vv_watched_file file;

    char method[METHOD]; /* for the log: of an answer that was given, else empty */
    unsigned status;
    uint64_t from_ns, sent;
};

static void leave_queue(call *c)
{
    vv_http *h = c->http;
    if (!c->waiting)
        return;
    *(c->older ? &c->older->newer : &h->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &h->newest) = c->older;
    c->older = c->newer = NULL;
    c->waiting = false;
    h->waiting--;
}

static void stop_waiting(call *c)
{
    pthread_mutex_lock(&c->http->lock);
    leave_queue(c);
    pthread_mutex_unlock(&c->http->lock);
}

/*
 * The connection waits for its client. Where many do, the one that has waited longest is hung up: clients that are
 * slow, or only there, keep nobody out. A socket is closed only after its call has left the queue.
 */
static void start_waiting(call *c)
{
    vv_http *h = c->http;
    pthread_mutex_lock(&h->lock);
    leave_queue(c);
    c->older = h->newest;
    *(h->newest ? &h->newest->newer : &h->oldest) = c;
    h->newest = c;
    c->waiting = true;
    if (++h->waiting > h->connections - h->connections / 4) {
        call *slow = h->oldest;
        leave_queue(slow);
        shutdown(slow->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&h->lock);
}

static void log_request(const call *c)
{
    const vv_log_entry e = {.method = c->method, .target = c->target, .status = c->status, .bytes = c->sent,
                            .duration_ns = vv_now_ns() - c->from_ns};
    if (c->method[0])
        vv_log_write(c->http->log, &e);
}

static void end_request(call *c)
{
    log_request(c);
    if (c->counted) {
        atomic_store(&c->http->last_ns, vv_now_ns());
        atomic_fetch_sub(&c->http->active, 1);
    }
    vv_file_watch_leave(c->http->files, &c->file);
    free(c->target);
    c->target = NULL;
    c->uploaded = 0;
    c->counted = c->met = false;
    c->patience_s = 0;
    c->method[0] = 0;
    c->sent = 0;
}

/* Root and this user may ask. Of a socket with a network's address everybody who gets through may. */
static bool is_stranger(const vv_http *h, int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;
    if (!h->listener.local)
        return false;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || (who.uid != geteuid() && who.uid != 0);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    call *c = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = info ? calloc(1, sizeof *c) : NULL;
        if (c) {
            c->http = cls;
            c->fd = info->connect_fd;
            c->stranger = is_stranger(c->http, c->fd);
            start_waiting(c);
        }
        *context = c;
    } else if (c) {
        stop_waiting(c);
        end_request(c);
        free(c);
        *context = NULL;
    }
}

/* The raw target, before the library decodes anything. */
static void *on_target(void *cls, const char *uri, struct MHD_Connection *connection)
{
    (void)cls;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    call *c = info ? info->socket_context : NULL;
    if (!c)
        return NULL;
    end_request(c);
    c->from_ns = vv_now_ns();
    c->target = strdup(uri);
    return c->target ? c : NULL;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode code)
{
    (void)cls;
    (void)code;
    call *c = *con_cls;
    if (c) {
        if (c->patience_s)
            MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS);
        end_request(c);
        start_waiting(c);
    }
    *con_cls = NULL;
}

static enum MHD_Result read_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                   const char *value, size_t value_len)
{
    vv_request *rq = cls;
    const struct {
        const char *name;
        const char **value;
        unsigned *count;
    } known[] = {
        {"Host", &rq->host, &rq->host_count},
        {"Origin", &rq->origin, &rq->origin_count},
        {"Accept", &rq->accept, NULL},
        {"Accept-Encoding", &rq->accept_encoding, NULL},
        {"If-None-Match", &rq->if_none_match, NULL},
        {"Authorization", &rq->authorization, NULL},
        {"Cookie", &rq->cookie, NULL},
        {"Range", &rq->range, NULL},
        {"If-Range", &rq->if_range, NULL},
        {"Last-Event-ID", &rq->last_event_id, NULL},
    };
    (void)kind;
    (void)value_len;
    for (size_t i = 0; i < VV_ARRAY_LEN(known); i++) {
        if (name_len != strlen(known[i].name) || strncasecmp(name, known[i].name, name_len) != 0)
            continue;
        *known[i].value = value ? value : "";
        if (known[i].count)
            ++*known[i].count;
    }
    return MHD_YES;
}

static enum MHD_Result frame_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                    const char *value, size_t value_len)
{
    (void)kind;
    vv_framing_header(cls, name, name_len, value ? value : name + name_len, value_len);
    return MHD_YES;
}

/* This version parses in place, so that where texts lie tells how they were written. */
static bool parses_in_place(void)
{
    return strcmp(MHD_get_version(), "0.9.75") == 0;
}

static const char *frame_fault(const call *c, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t size = info && parses_in_place() ? info->header_size : 0;
    vv_framing f = vv_framing_begin(method, url, strlen(c->target), version, size);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, frame_header, &f);
    return vv_framing_end(&f);
}

/* A body that is produced while it is sent. The connection may be gone when it is freed. */
typedef struct {
    vv_body *body;
    call *call;
    struct MHD_Connection *connection;
} sending;

/*
 * The library takes the time that an answer needs to be made for its client's silence, and would hang up on who waited
 * for the longest. A silence begins anew where a timeout is set and there was none.
 */
static void restart_silence(sending *s)
{
    unsigned seconds = s->call->patience_s ? s->call->patience_s : TIMEOUT_SECONDS;
    MHD_set_connection_option(s->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    MHD_set_connection_option(s->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

static ssize_t read_body(void *cls, uint64_t pos, char *buf, size_t max)
{
    sending *s = cls;
    (void)pos;
    uint64_t from = vv_now_ns();
    ssize_t n = vv_body_read(s->body, buf, max);
    if (vv_now_ns() - from > SLOW_NS)
        restart_silence(s);
    if (n > 0)
        s->call->sent += (uint64_t)n;
    return n > 0 ? n : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_body(void *cls)
{
    sending *s = cls;
    vv_body_free(s->body);
    free(s);
}

static struct MHD_Response *make_stream(call *c, struct MHD_Connection *connection, vv_response *rs)
{
    sending *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (sending){rs->body, c, connection};
    struct MHD_Response *m = MHD_create_response_from_callback(rs->has_body_len ? rs->body_len : MHD_SIZE_UNKNOWN,
                                                               VV_ANSWER_PIECE, read_body, s, free_body);
    if (m)
        rs->body = NULL;
    else
        free(s);
    return m;
}

static struct MHD_Response *make_file(call *c, vv_response *rs, bool head)
{
    struct MHD_Response *m = MHD_create_response_from_fd_at_offset64(rs->body_len, rs->file, rs->file_off);
    rs->has_file = !m; /* the library closes it */
    c->sent = head ? 0 : rs->body_len;
    return m;
}

static struct MHD_Response *make_response(call *c, struct MHD_Connection *connection, vv_response *rs, bool head)
{
    if (rs->has_file)
        return make_file(c, rs, head);
    if (rs->body)
        return make_stream(c, connection, rs);
    /* A 304 or a redirect goes without its body. */
    bool empty = rs->status / 100 == 3;
    struct MHD_Response *m = MHD_create_response_from_buffer(
        empty ? 0 : rs->len, (void *)rs->bytes, rs->owned && !empty ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (m && !empty) {
        rs->owned = false;
        c->sent = head ? 0 : rs->len;
    }
    return m;
}

static enum MHD_Result send_response(call *c, struct MHD_Connection *connection, const char *method, vv_response *rs)
{
    bool unknown_len = rs->body && !rs->has_body_len, head = strcmp(method, "HEAD") == 0;
    struct MHD_Response *m = make_response(c, connection, rs, head);
    if (!m)
        return MHD_NO;
    /* After the headers of a chunked answer to HEAD the library sends the last chunk all the same. */
    if (head && unknown_len)
        MHD_set_response_options(m, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    for (size_t i = 0; i < rs->header_count; i++)
        MHD_add_response_header(m, rs->headers[i].name, rs->headers[i].value);
    snprintf(c->method, sizeof c->method, "%s", method);
    c->status = rs->status;
    enum MHD_Result result = MHD_queue_response(connection, rs->status, m);
    MHD_destroy_response(m);
    return result;
}

static enum MHD_Result answer(call *c, struct MHD_Connection *connection, const char *method, const char *fault)
{
    vv_http *h = c->http;
    stop_waiting(c);
    vv_request rq = {.method = method, .target = c->target, .socket = &c->fd, .stranger = c->stranger,
                     .stopping = atomic_load(&h->stopping), .fault = fault};
    vv_response rs = {0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_header, &rq);
    vv_server_handle(h->server, &rq, &rs);
    if (rs.patience_s
        && MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, rs.patience_s) == MHD_YES)
        c->patience_s = rs.patience_s;
    enum MHD_Result result = MHD_NO;
    if (!rs.has_file || vv_file_watch_enter(h->files, &c->file, rs.file, rs.file_off + rs.body_len, c->fd))
        result = send_response(c, connection, method, &rs);
    vv_response_done(&rs);
    return result;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **con_cls)
{
    vv_http *h = cls;
    call *c = *con_cls;
    (void)upload;
    if (!c)
        return MHD_NO;
    if (!c->counted) {
        c->counted = true;
        atomic_fetch_add(&h->active, 1);
    }
    if (!c->met) { /* headers only: a body may follow, and must be read before the answer */
        c->met = true;
        const char *fault = frame_fault(c, connection, url, method, version);
        return fault ? answer(c, connection, method, fault) : MHD_YES;
    }
    if (*upload_size) {
        c->uploaded += *upload_size;
        *upload_size = 0;
        return c->uploaded > UPLOAD_MAX ? MHD_NO : MHD_YES;
    }
    return answer(c, connection, method, NULL);
}

static vv_code set_guard(vv_http *h, const vv_http_options *o, vv_error *err)
{
    vv_guard g = vv_guard_init(h->listener.port);
    bool room = h->listener.local || vv_guard_allow(&g, h->listener.literal);
    if (h->listener.local)
        g.socket = h->listener.name + strlen("unix:");
    for (size_t i = 0; i < o->allow_host_count && room; i++) {
        if (!vv_guard_is_host(o->allow_hosts[i]))
            return vv_fail(err, VV_ERR_ARG, "\"%.200s\" is no host to allow: use a name or an address without a port, "
                           "IPv6 in brackets", o->allow_hosts[i]);
        room = vv_guard_allow(&g, o->allow_hosts[i]);
    }
    if (!room)
        return vv_fail(err, VV_ERR_ARG, "more allowed hosts than %d", VV_GUARD_HOSTS);
    vv_server_set_guard(h->server, &g);
    return VV_OK;
}

/*
 * As many connections as there are descriptors for: without one left, nobody could be answered, or even refused. LIMIT
 * where there are too few for any.
 */
static vv_code limit_connections(unsigned *ret, vv_error *err)
{
    struct rlimit r;
    const rlim_t want = CONNECTIONS + FILES;
    *ret = CONNECTIONS / 4;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return VV_OK;
    if (r.rlim_cur < want && r.rlim_cur < r.rlim_max) {
        struct rlimit more = {.rlim_cur = r.rlim_max < want ? r.rlim_max : want, .rlim_max = r.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            r = more;
    }
    rlim_t n = r.rlim_cur >= 2 * FILES ? r.rlim_cur - FILES : r.rlim_cur / 4;
    *ret = n > CONNECTIONS ? CONNECTIONS : (unsigned)n;
    return r.rlim_cur >= FILES_LEAST ? VV_OK
        : vv_fail(err, VV_ERR_LIMIT, "the system allows %llu open files here, a server needs %d: raise `ulimit -n`",
                  (unsigned long long)r.rlim_cur, FILES_LEAST);
}

static vv_code start_daemon(vv_http *h, vv_error *err)
{
    /* A thread for each connection: a fold may take seconds, and holds up nobody else. */
    h->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        on_request, h, MHD_OPTION_LISTEN_SOCKET, h->listener.fd, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_CONNECTION_LIMIT, h->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK, MHD_OPTION_END);
    return h->daemon ? VV_OK : vv_fail(err, VV_ERR_IO, "the HTTP library did not start");
}

/* The socket that was handed over, or one of our own. */
static vv_code listen_somewhere(vv_http *h, const vv_http_options *o, vv_error *err)
{
    if (vv_listen_is_handed())
        return o->listen ? vv_fail(err, VV_ERR_ARG, "--listen and a socket that was handed over (LISTEN_FDS) "
                                   "exclude each other")
                         : vv_listen_take(&h->listener, err);
    return vv_listen_open(&h->listener, o->listen ? o->listen : VV_HTTP_LISTEN, err);
}

vv_code vv_http_start(vv_http **ret, vv_server *server, const vv_http_options *o, vv_error *err)
{
    vv_http *h = calloc(1, sizeof *h);
    if (!h)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a server");
    h->server = server;
    h->log = o->log;
    h->listener.fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    atomic_store(&h->last_ns, vv_now_ns());
    vv_code rc = limit_connections(&h->connections, err);
    vv_server_limit_followers(server, h->connections / 2);
    if (rc == VV_OK)
        rc = listen_somewhere(h, o, err);
    if (rc == VV_OK && h->listener.reachable && !o->has_token)
        rc = vv_fail(err, VV_ERR_ARG, "%.100s can be reached by others: it needs a token (--token-file FILE)",
                     h->listener.name);
    if (rc == VV_OK)
        rc = set_guard(h, o, err);
    if (rc == VV_OK)
        rc = vv_file_watch_start(&h->files, err);
    if (rc == VV_OK)
        rc = start_daemon(h, err);
    if (rc != VV_OK) {
        vv_file_watch_stop(h->files);
        vv_listen_close(&h->listener);
        pthread_mutex_destroy(&h->lock);
        free(h);
        return rc;
    }
    *ret = h;
    return VV_OK;
}

const char *vv_http_url(const vv_http *h)
{
    return h->listener.name;
}

uint64_t vv_http_idle_ns(vv_http *h)
{
    return atomic_load(&h->active) ? 0 : vv_now_ns() - atomic_load(&h->last_ns);
}

void vv_http_refuse(vv_http *h)
{
    atomic_store(&h->stopping, true);
    vv_listen_hide(&h->listener);
    /* Quiescing alone leaves new clients in the backlog: shutting the socket refuses them. */
    MHD_socket fd = MHD_quiesce_daemon(h->daemon);
    if (fd != MHD_INVALID_SOCKET)
        shutdown(fd, SHUT_RDWR);
    vv_server_stop(h->server);
}

void vv_http_stop(vv_http *h, uint64_t drain_ns)
{
    if (!h)
        return;
    vv_http_refuse(h);
    uint64_t until = vv_now_ns() + drain_ns;
    while (atomic_load(&h->active) && vv_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    MHD_stop_daemon(h->daemon);
    vv_file_watch_stop(h->files);
    vv_listen_close(&h->listener);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
