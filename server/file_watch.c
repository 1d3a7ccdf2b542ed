#include "config.h"

#include "server/file_watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"

enum { PERIOD_MS = 250 };

struct vv_file_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    vv_watched_file *newest;
    bool stopping;
};

static bool is_short(const vv_watched_file *f)
{
    struct stat st;
    return fstat(f->file, &st) != 0 || (uint64_t)st.st_size < f->end;
}

static void wait_a_while(vv_file_watch *w)
{
    if (!w->newest) {
        pthread_cond_wait(&w->changed, &w->lock);
        return;
    }
    struct timespec until = vv_deadline(CLOCK_MONOTONIC, PERIOD_MS);
    while (!w->stopping && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0)
        ;
}

static void *watch(void *watch_of)
{
    vv_file_watch *w = watch_of;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        for (vv_watched_file *f = w->newest; f; f = f->older)
            if (is_short(f))
                shutdown(f->socket, SHUT_RDWR);
        wait_a_while(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

vv_code vv_file_watch_start(vv_file_watch **ret, vv_error *err)
{
    vv_file_watch *w = calloc(1, sizeof *w);
    if (!w)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a watch");
    pthread_mutex_init(&w->lock, NULL);
    vv_cond_init(&w->changed);
    if (pthread_create(&w->thread, NULL, watch, w) != 0) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        free(w);
        return vv_fail(err, VV_ERR_NOMEM, "no thread for a watch");
    }
    *ret = w;
    return VV_OK;
}

void vv_file_watch_stop(vv_file_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

bool vv_file_watch_enter(vv_file_watch *w, vv_watched_file *f, int fd, uint64_t end, int socket)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return false;
    *f = (vv_watched_file){.file = own, .end = end, .socket = socket, .watched = true};
    pthread_mutex_lock(&w->lock);
    f->older = w->newest;
    if (w->newest)
        w->newest->newer = f;
    else
        pthread_cond_signal(&w->changed);
    w->newest = f;
    pthread_mutex_unlock(&w->lock);
    return true;
}

void vv_file_watch_leave(vv_file_watch *w, vv_watched_file *f)
{
    if (!f->watched)
        return;
    pthread_mutex_lock(&w->lock);
    *(f->newer ? &f->newer->older : &w->newest) = f->older;
    if (f->older)
        f->older->newer = f->newer;
    pthread_mutex_unlock(&w->lock);
    close(f->file);
    *f = (vv_watched_file){.watched = false};
}
