#include "config.h"

#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HINT_FROM = 4 << 20 };

void vv_pages_hint(void *p, size_t n)
{
    if (n < HINT_FROM)
        return;
    /* Whole pages around the block: were only a part of its mapping advised, realloc would have to copy it. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p & ~(page - 1);
    (void)madvise((void *)from, ((uintptr_t)p + n - from + page - 1) & ~(page - 1), MADV_HUGEPAGE);
}
