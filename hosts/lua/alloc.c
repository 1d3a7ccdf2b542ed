#include "config.h"
#include "hosts/lua/alloc.h"

#include <lua.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hosts/lua/callid.h"
#include "hosts/lua/collect.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/live.h"
#include "hosts/lua/public.h"
#include "hosts/lua/unwind.h"

/*
 * The fixed region: a reservation of address space, cut from the bottom. Sizes are rounded up to 16 classes a power of
 * two; a freed block waits in its class's list. Which address a request gets depends on nothing but the requests before
 * it.
 */
#define REGION_AT UINT64_C(0x200000000000)
#define REGION_BYTES (UINT64_C(1) << 40)
#define SMALLEST 16u
#define STEPS 16u
#define CLASSES (STEPS * 48)
#define GIVE_BACK (256u << 10) /* free blocks from this size on return their pages */

static struct {
    char *at, *end;
    void *lists[CLASSES];
} region;

const void *vl_alloc_last_string;
static size_t thread_block; /* bytes of a coroutine's state, learned from the first one made */

bool vl_alloc_fixed(void)
{
    void *p = mmap((void *)(uintptr_t)REGION_AT, REGION_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != (void *)(uintptr_t)REGION_AT) {
        if (p != MAP_FAILED)
            munmap(p, REGION_BYTES);
        return false;
    }
    region.at = p;
    region.end = region.at + REGION_BYTES;
    return true;
}

/* The class of n bytes, and its size. */
static size_t class_of(size_t n, size_t *ret_size)
{
    if (n <= SMALLEST * STEPS) {
        size_t k = n ? (n - 1) / SMALLEST : 0;
        *ret_size = (k + 1) * SMALLEST;
        return k;
    }
    unsigned top = 63u - (unsigned)__builtin_clzll(n - 1); /* n - 1 has its highest bit there */
    size_t step = (size_t)1 << (top - 4);
    size_t k = (n - 1 - ((size_t)1 << top)) / step;
    *ret_size = ((size_t)1 << top) + (k + 1) * step;
    return STEPS + (top - 8) * STEPS + k;
}

static void *region_get(size_t n)
{
    size_t size, class = n < REGION_BYTES ? class_of(n, &size) : CLASSES;
    if (class >= CLASSES)
        return NULL;
    void *p = region.lists[class];
    if (p) {
        memcpy(&region.lists[class], p, sizeof p);
        return p;
    }
    if (size > (size_t)(region.end - region.at))
        return NULL;
    p = region.at;
    region.at += size;
    return p;
}

static void region_put(void *p, size_t n)
{
    size_t size, class = class_of(n, &size);
    if (size >= GIVE_BACK) {
        char *page = (char *)(((uintptr_t)p + 4096 + 4095) & ~(uintptr_t)4095), *last = (char *)p + size;
        last -= (uintptr_t)last & 4095;
        if (last > page)
            madvise(page, (size_t)(last - page), MADV_DONTNEED);
    }
    memcpy(p, &region.lists[class], sizeof p);
    region.lists[class] = p;
}

static void *region_resize(void *p, size_t old_size, size_t n)
{
    size_t old_class_size, size;
    if (p && n < REGION_BYTES && class_of(old_size, &old_class_size) == class_of(n, &size))
        return p;
    void *q = region_get(n);
    if (q && p) {
        memcpy(q, p, old_size < n ? old_size : n);
        region_put(p, old_size);
    }
    return q;
}

static void note_free(void *ptr, size_t size)
{
    if (!vl.private_layout)
        vl_public_freed(ptr);
    else if (size == sizeof(vl_proto))
        vl_code_freed(ptr);
    if (vl_unwind_remembers)
        vl_unwind_freed(ptr);
    if (size == thread_block) {
        vl_shadow *s = vl_ptrmap_get(&vl.threads, ptr);
        if (s)
            vl_live_thread_gone(s);
    }
}

static void give_back(void *ptr, size_t size)
{
    if (ptr && vl.L)
        note_free(ptr, size);
    if (ptr && vl_call_ids_kept)
        vl_call_id_freed(ptr);
    if (!region.at)
        free(ptr);
    else if (ptr)
        region_put(ptr, size);
}

static void *get(void *ptr, size_t old_size, size_t new_size)
{
    void *block = region.at ? region_resize(ptr, old_size, new_size) : realloc(ptr, new_size);
    if (!ptr && old_size == LUA_TTHREAD) /* a new block's old size is the kind of object */
        thread_block = new_size;
    if (!ptr && old_size == LUA_TSTRING)
        vl_alloc_last_string = block;
    return block;
}

/* The same while profilers want to know. */
static __attribute__((noinline)) void *told(void *ptr, size_t old_size, size_t new_size)
{
    uintptr_t old = (uintptr_t)ptr;
    vl_collect_look(ptr ? old_size : 0);
    if (!new_size) {
        if (ptr)
            vl_collect_tell_freed(old, old_size);
        give_back(ptr, old_size);
        return NULL;
    }
    void *block = get(ptr, old_size, new_size);
    if (block && old)
        vl_collect_tell_freed(old, old_size);
    if (block)
        vl_collect_tell_allocated((uintptr_t)block, new_size, old ? 0 : old_size);
    return block;
}

void *vl_alloc(void *ud, void *ptr, size_t old_size, size_t new_size)
{
    (void)ud;
    if (__builtin_expect(vl_collect_wanted(), 0))
        return told(ptr, old_size, new_size);
    if (new_size)
        return get(ptr, old_size, new_size);
    give_back(ptr, old_size);
    return NULL;
}
