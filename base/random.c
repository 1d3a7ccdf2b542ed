#include "config.h"

#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

bool vv_random(void *p, size_t n)
{
    ssize_t k;
    do
        k = getrandom(p, n, GRND_NONBLOCK);
    while (k < 0 && errno == EINTR);
    return k == (ssize_t)n;
}
