/* Inside of vv_index: indexes in the cache directory that nobody has opened for a long time, of stores long gone. */
#pragma once

enum { VV_INDEX_UNUSED_DAYS = 90 };

/* Notes that the index at path was used now, and removes others beside it that were not for VV_INDEX_UNUSED_DAYS. */
void vv_index_tidy(const char *path);
