/*
 * The interpreter's allocator. It tells the recorder which prototypes and coroutines are freed, and with `repeatable`
 * serves all memory from one region at a fixed address, so that two runs see the same addresses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A lua_Alloc; ud is unused. */
void *vl_alloc(void *ud, void *ptr, size_t old_size, size_t new_size);

/* From now on memory comes from the fixed region. False where it can't be had. Before the first allocation only. */
bool vl_alloc_fixed(void);
