/* Large pages for large blocks: a fault for each page of 4 KiB costs several times what filling it does. */
#pragma once

#include <stddef.h>

/*
 * Asks the system to back a block from malloc with large pages, where it is large enough to have some. Call it before
 * the block is filled. A hint: nothing changes where the system has none.
 */
void vv_pages_hint(void *p, size_t n);
