#include "config.h"

#include "base/os_thread.h"

#include <link.h>
#include <signal.h>
#include <unistd.h>

/* Larger than any frame of ours: no function gets past the guard without touching it. */
enum { GUARD = 64 << 10, LIBC_OWN = 16 << 10 };

static int add_tls(struct dl_phdr_info *info, size_t size, void *ret)
{
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)ret += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* Thread-local storage of whatever is loaded, which the C library takes out of a stack. */
static size_t tls_bytes(void)
{
    size_t n = LIBC_OWN;
    dl_iterate_phdr(add_tls, &n);
    return n;
}

static int start(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os = pthread_create(ret, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return os;
}

int vv_os_thread_start(pthread_t *ret, size_t stack, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    int os = pthread_attr_init(&attr);
    if (os)
        return os;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = stack + GUARD + tls_bytes();
    os = pthread_attr_setguardsize(&attr, GUARD);
    if (!os)
        os = pthread_attr_setstacksize(&attr, (size + page - 1) / page * page);
    if (!os)
        os = start(ret, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return os;
}
