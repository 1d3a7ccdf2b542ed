/* What the dynamic linker does not look at before it trusts a shared object, for files that anybody may have named. */
#pragma once

#include <stdbool.h>

/* Whether the file has all that its head says is to be loaded: the linker maps what is not there, and the process dies
 * of the first access. True where that can't be found out; the linker then says why. */
bool vv_object_is_whole(const char *path);

/* Whether the file's head is that of a shared object, of any machine. True where that can't be found out. */
bool vv_object_is_shared(const char *path);

/* Whether an address that dlsym gave is code, and not a variable of that name. True where that is unknown. */
bool vv_object_is_code(const void *address);
