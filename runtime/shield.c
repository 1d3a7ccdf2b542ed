#include "config.h"

#include "runtime/shield.h"

#include <errno.h>
#include <time.h>

#include "base/attr.h"

static const int refusals[] = {SIGXFSZ, SIGPIPE};

void vv_shield_raise(vv_shield *s)
{
    sigset_t set;
    int os = errno;
    sigemptyset(&set);
    for (size_t i = 0; i < VV_ARRAY_LEN(refusals); i++)
        sigaddset(&set, refusals[i]);
    sigpending(&s->pending);
    pthread_sigmask(SIG_BLOCK, &set, &s->mask);
    errno = os;
}

void vv_shield_lower(const vv_shield *s)
{
    int os = errno;
    for (size_t i = 0; i < VV_ARRAY_LEN(refusals); i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, refusals[i]);
        if (!sigismember(&s->pending, refusals[i]))
            sigtimedwait(&one, NULL, &(struct timespec){0});
    }
    pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
    errno = os;
}
