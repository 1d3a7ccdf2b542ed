/*
 * Profilers out of shared objects: loaded when the host starts or by a request from another process, unloaded when they
 * have been detached.
 *
 * A plug-in's code is only unloaded where none of it can run any more: by `ended`, which the library calls on its own
 * thread after the last callback, or by the loader where the plug-in was refused.
 */
#include "config.h"

#include "control/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/deadline.h"
#include "base/file.h"
#include "control/listen.h"
#include "control/object.h"

/* CLOSE_GRACE_MS: how long the end of the host waits for a request that is being served. */
enum { DETACH_HINT_MS = 300, CLOSE_GRACE_MS = 2000, LINE_MAX_BYTES = VV_REMOTE_ANSWER_MAX };
unsigned vv_plugin_detach_wait_ms = 10000;

typedef struct plugin {
    char name[256];           /* the file's, without folder and ".so" */
    uint64_t serial;
    void *code;               /* of dlopen */
    varve_profiler *profiler; /* void once `ended` is set */
    bool loading, ended;
    struct plugin *next;
} plugin;

/* The host is one in a process, and so is this. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry went away */
    plugin *all;
    uint64_t serials;
    varve_host *host;
} at = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

typedef struct {
    char text[LINE_MAX_BYTES];
} line;

VV_PRINTF(2, 3) static bool fail(line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(l->text, sizeof l->text, fmt, ap);
    va_end(ap);
    return false;
}

static plugin *find(const char *name)
{
    plugin *p = at.all;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

static void name_of(const char *path, char *ret, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(ret, size, "%s", slash ? slash + 1 : path);
    size_t n = strlen(ret);
    if (n > 3 && strcmp(ret + n - 3, ".so") == 0)
        ret[n - 3] = '\0';
}

/* A place in the list under the file's name. */
static plugin *reserve(const char *path, line *why)
{
    plugin *p = calloc(1, sizeof *p);
    if (!p) {
        fail(why, "%s: no memory", path);
        return NULL;
    }
    name_of(path, p->name, sizeof p->name);
    p->loading = true;
    pthread_mutex_lock(&at.lock);
    bool taken = find(p->name);
    if (!taken) {
        p->serial = ++at.serials;
        p->next = at.all;
        at.all = p;
    }
    pthread_mutex_unlock(&at.lock);
    if (!taken)
        return p;
    fail(why, "%s: a plug-in named %s is attached already", path, p->name);
    free(p);
    return NULL;
}

/* The last of it. Its code goes first: whoever sees the name free may load the file anew. */
static void drop(plugin *p)
{
    if (p->code)
        dlclose(p->code);
    pthread_mutex_lock(&at.lock);
    plugin **link = &at.all;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    pthread_cond_broadcast(&at.changed);
    pthread_mutex_unlock(&at.lock);
    free(p);
}

static void on_ended(void *me)
{
    plugin *p = me;
    pthread_mutex_lock(&at.lock);
    p->ended = true;
    bool loading = p->loading;
    pthread_mutex_unlock(&at.lock);
    /* Who still loads it looks at `ended` afterwards. */
    if (!loading)
        drop(p);
}

static bool is_file(const char *path, line *why)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail(why, "%s: %s", path, strerror(errno));
    return S_ISREG(st.st_mode) || fail(why, "%s: not a file", path);
}

static bool open_code(plugin *p, const char *path, line *why)
{
    if (!is_file(path, why))
        return false;
    if (!vv_object_is_whole(path))
        return fail(why, "%s: the file is cut short", path);
    /* The linker opens files too, and what the program reads and prints must not meet those. */
    vv_standing s = vv_standing_in();
    p->code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    vv_standing_done(&s);
    if (p->code)
        return true;
    /* The message mostly begins with the path. */
    const char *message = dlerror();
    size_t n = strlen(path);
    if (strncmp(message, path, n) == 0 && strncmp(message + n, ": ", 2) == 0)
        message += n + 2;
    return fail(why, "%s: %s%s", path, vv_object_is_shared(path) ? "" : "not a shared object: ", message);
}

static bool ask_code(plugin *p, const char *path, const char *arguments, varve_plugin *ret, line *why)
{
    union {
        void *object;
        varve_plugin_open_fn *function;
    } entry = {dlsym(p->code, "varve_plugin_open")};
    if (!entry.object)
        return fail(why, "%s: not a plug-in, it has no varve_plugin_open", path);
    if (!vv_object_is_code(entry.object))
        return fail(why, "%s: not a plug-in, its varve_plugin_open is no function", path);
    varve_code code = entry.function(VARVE_CONTRACT_VERSION, arguments, ret);
    if (code != VARVE_OK)
        return fail(why, "%s: it refused to open (%s)", path, varve_code_name(code));
    if (!ret->callbacks)
        return fail(why, "%s: it has no callbacks", path);
    uint32_t version = ret->callbacks->version;
    if (version / 1000 != VARVE_CONTRACT_VERSION / 1000)
        return fail(why, "%s: made for version %u of the profiling contract, this is version %u", path, version,
                    VARVE_CONTRACT_VERSION);
    return true;
}

/* A profiler's place is free a moment after `ended` was called for it, which is all that one can wait for. */
static varve_code attach_patiently(const varve_attach_options *o, varve_profiler **ret)
{
    enum { TRIES = 50 };
    varve_code code;
    for (unsigned i = 0; (code = varve_host_attach(at.host, o, ret)) == VARVE_E_BUSY && i < TRIES; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return code;
}

static bool attach(plugin *p, const char *path, const varve_plugin *said, line *why)
{
    varve_attach_options o = {.size = sizeof o,
                              .callbacks = said->callbacks,
                              .me = said->me,
                              .notify_only = said->notify_only,
                              .ended = on_ended,
                              .ended_me = p};
    varve_profiler *profiler = NULL;
    varve_code code = attach_patiently(&o, &profiler);
    if (code == VARVE_E_REFUSED)
        return fail(why, "%s: it refused to start", path);
    if (code == VARVE_E_BUSY)
        return fail(why, "%s: %s is taken (%s)", path,
                    said->notify_only ? "every profiler's place" : "the main profiler's place", varve_code_name(code));
    if (code != VARVE_OK)
        return fail(why, "%s: it can't be attached (%s)", path, varve_code_name(code));
    pthread_mutex_lock(&at.lock);
    p->profiler = profiler;
    pthread_mutex_unlock(&at.lock);
    return true;
}

static bool load_path(const char *path, const char *arguments, line *why)
{
    plugin *p = reserve(path, why);
    if (!p)
        return false;
    varve_plugin said = {0};
    bool ok = open_code(p, path, why) && ask_code(p, path, arguments, &said, why) && attach(p, path, &said, why);
    pthread_mutex_lock(&at.lock);
    p->loading = false;
    bool over = !ok || p->ended;
    pthread_mutex_unlock(&at.lock);
    if (over)
        drop(p);
    return ok;
}

/* FILE.so or FILE.so=ARGS. */
static bool load_spec(const char *spec, size_t n, line *why)
{
    char *copy = strndup(spec, n), *path = NULL;
    if (!copy)
        return fail(why, "no memory for a plug-in");
    char *arguments = strchr(copy, '=');
    if (arguments)
        *arguments++ = '\0';
    path = realpath(copy, NULL);
    bool ok = path ? load_path(path, arguments ? arguments : "", why) : fail(why, "%s: %s", copy, strerror(errno));
    free(path);
    free(copy);
    return ok;
}

static bool load_and_tell(const char *spec, size_t n, varve_tell_fn *tell, void *me)
{
    line why;
    bool ok = load_spec(spec, n, &why);
    if (!ok && tell)
        tell(me, why.text);
    return ok;
}

uint32_t varve_plugins_load(varve_host *host, const char *const *specs, size_t count, varve_tell_fn *tell, void *me)
{
    at.host = host;
    uint32_t failed = 0;
    for (size_t i = 0; i < count; i++)
        failed += !load_and_tell(specs[i], strlen(specs[i]), tell, me);
    return failed;
}

uint32_t varve_plugins_load_list(varve_host *host, const char *list, varve_tell_fn *tell, void *me)
{
    at.host = host;
    uint32_t failed = 0;
    while (list && *list) {
        size_t n = strcspn(list, ":");
        if (n)
            failed += !load_and_tell(list, n, tell, me);
        list += n + (list[n] == ':');
    }
    return failed;
}

/* By its name, or by its file as that is given to be attached. */
static plugin *find_typed(const char *typed)
{
    char name[sizeof at.all->name];
    name_of(typed, name, sizeof name);
    plugin *p = find(typed);
    return p ? p : find(name);
}

/* Names those that are attached, as far as there is room. */
static void fail_unknown(const char *typed, line *why)
{
    enum { LISTED = 8, TAIL = 32 };
    fail(why, "no plug-in named %.255s is attached", typed);
    size_t n = strlen(why->text), listed = 0, more = 0;
    for (const plugin *p = at.all; p; p = p->next) {
        if (listed == LISTED || n + strlen(p->name) + TAIL > sizeof why->text)
            more++;
        else
            n += (size_t)snprintf(why->text + n, sizeof why->text - n, "%s%s", listed++ ? ", " : "; attached: ",
                                  p->name);
    }
    if (more)
        snprintf(why->text + n, sizeof why->text - n, ", %zu more", more);
}

/* The plug-in that is meant, under the lock: the only one where no name is given. */
static plugin *meant(const char *name, line *why)
{
    plugin *p = *name ? find_typed(name) : at.all;
    if (!p && *name)
        fail_unknown(name, why);
    else if (!p)
        fail(why, "no plug-in is attached");
    else if (!*name && p->next)
        fail(why, "several plug-ins are attached, %s and %s among them: say which", p->next->name, p->name);
    else if (p->profiler)
        return p;
    else
        fail(why, "%s is still being attached", p->name);
    return NULL;
}

static bool is_there(uint64_t serial)
{
    const plugin *p = at.all;
    while (p && p->serial != serial)
        p = p->next;
    return p;
}

/* Under the lock, which it lets go of meanwhile. */
static bool wait_until_gone(uint64_t serial)
{
    struct timespec until = vv_deadline(CLOCK_REALTIME, vv_plugin_detach_wait_ms);
    while (is_there(serial))
        if (pthread_cond_timedwait(&at.changed, &at.lock, &until) == ETIMEDOUT)
            return !is_there(serial);
    return true;
}

/* Done: the line is the plug-in's name. */
static vv_remote_outcome detach(const char *name, line *why)
{
    pthread_mutex_lock(&at.lock);
    vv_remote_outcome outcome = VV_REMOTE_REFUSED;
    const plugin *p = meant(name, why);
    varve_code code = VARVE_OK;
    char its_name[sizeof p->name];
    if (p) {
        memcpy(its_name, p->name, sizeof its_name);
        code = p->ended ? VARVE_OK : varve_host_request_detach(at.host, p->profiler, DETACH_HINT_MS);
        if (code == VARVE_OK || code == VARVE_E_DETACHING)
            outcome = wait_until_gone(p->serial) ? VV_REMOTE_DONE : VV_REMOTE_PENDING;
        else
            fail(why, "%s can't be detached (%s)", its_name, varve_code_name(code));
    }
    pthread_mutex_unlock(&at.lock);
    if (outcome == VV_REMOTE_PENDING)
        fail(why, "%s is told nothing any more, but a callback of it still runs after %u ms", its_name,
             vv_plugin_detach_wait_ms);
    else if (outcome == VV_REMOTE_DONE)
        snprintf(why->text, sizeof why->text, "%s", its_name);
    return outcome;
}

static vv_remote_outcome serve(void *ctx, const vv_remote_request *q, char *text, size_t size)
{
    (void)ctx;
    line why = {""};
    vv_remote_outcome outcome = VV_REMOTE_INVALID;
    char *subject = strndup(q->subject.n ? q->subject.p : "", q->subject.n);
    char *arguments = strndup(q->arguments.n ? q->arguments.p : "", q->arguments.n);
    if (!subject || !arguments)
        outcome = VV_REMOTE_REFUSED, fail(&why, "no memory");
    else if (q->verb == VV_REMOTE_DETACH)
        outcome = detach(subject, &why);
    else if (*subject == '/')
        outcome = load_path(subject, arguments, &why) ? VV_REMOTE_DONE : VV_REMOTE_REFUSED;
    free(subject);
    free(arguments);
    snprintf(text, size, "%s", why.text);
    return outcome;
}

varve_code varve_plugins_listen(varve_host *host)
{
    at.host = host;
    vv_error err = {0};
    vv_code rc = vv_listen_open(serve, NULL, &err);
    return rc == VV_OK ? VARVE_OK : rc == VV_ERR_EXISTS ? VARVE_E_BUSY : VARVE_E_NO_MEMORY;
}

void varve_plugins_close(void)
{
    vv_listen_close(CLOSE_GRACE_MS);
}
